#define _GNU_SOURCE
#include "tools/custream/merge/out.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/options.h"
#include "tools/custream/convert/rows.h"
#include "tools/custream/command.h"
#include "tools/custream/program.h"
#include "tools/custream/trace/gz.h"

/* Files to remove if the process ends too early. Signals are blocked while these pointers
 * change. */
static const char *volatile unfinished, *volatile spooled, *volatile placeholder;
static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU};

/* Blocks the signals that end us. Returns the mask before, for signals_release(). */
static sigset_t signals_hold(void)
{
    sigset_t held, before;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) sigaddset(&held, ends[i]);
    sigprocmask(SIG_BLOCK, &held, &before);
    return before;
}

static void signals_release(sigset_t before) { sigprocmask(SIG_SETMASK, &before, NULL); }

static void tidy(void)
{
    if (unfinished) unlink(unfinished);
    if (spooled) unlink(spooled);
    if (placeholder) unlink(placeholder);
}

static void tidy_and_end(int number)
{
    tidy();
    signal(number, SIG_DFL);
    raise(number);
}

const char *out_refusal(const struct cs_claim *claim, int *length)
{
    static const char by_force[] = " (CUSTREAM_FORCE=on";
    const char *why = claim->refusal ? claim->refusal : strerror(errno),
               *force = strstr(why, by_force);
    *length = (int)(force ? (size_t)(force - why) : strlen(why));
    return why;
}

static bool fail(const struct out *out, const char *why)
{
    return complained(out->command, "%s: cannot be written: %s", out->path, why);
}

/* Opens the temporary file, whose name ends in `end`. Text that is to become packets is not
 * compressed. */
static bool temporary_open(struct out *out, const char *end)
{
    const size_t length = strlen(out->path);
    const bool packed =
        !out->raw && !out->packets && length > 3 && !strcmp(out->path + length - 3, ".gz");
    struct stat about;
    snprintf(
        out->temporary, sizeof out->temporary, "%s.%d.%s", out->claim.path, (int)getpid(), end);
    const int fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return complained(
            out->command, "%s: cannot be written: %s", out->temporary, strerror(errno));
    unfinished = out->temporary;
    if (!out->claim.made && !fstat(out->claim.fd, &about))
        (void)!fchown(fd, about.st_uid, about.st_gid), (void)!fchmod(fd, about.st_mode & 0777);
    out->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (out->fd >= 0 && (out->file = gzdopen(fd, packed ? "wb4" : "wbT")))
        return gzbuffer(out->file, 256 * 1024), true;
    close(fd);
    if (out->fd >= 0) close(out->fd);
    unlink(out->temporary);
    unfinished = NULL;
    return fail(out, "out of memory");
}

bool out_open(struct out *out, const char *command, const char *path, enum out_of of,
    char *const *inputs, size_t count)
{
    const char *extension = of == OUT_OF_ROWS ? cs_trace_extension(path) : NULL;
    *out = (struct out){.command = command,
        .path = path,
        .raw = of == OUT_OF_BYTES,
        .packets = extension && cs_trace_extension_is_packets(extension)};
    const sigset_t before = signals_hold();
    if (!cs_claim(&out->claim, out->path, 0, &gz_inflate)) {
        int length;
        const char *why = out_refusal(&out->claim, &length);
        signals_release(before);
        return complained(command, "%s: cannot be written: %.*s", path, length, why);
    }
    if (out->claim.made) placeholder = out->claim.path;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (signal(ends[i], tidy_and_end) == SIG_IGN) signal(ends[i], SIG_IGN);
    atexit(tidy);             /* out_of_memory() exits */
    signal(SIGXFSZ, SIG_IGN); /* a write beyond a limit fails instead, and the command complains */
    size_t same = 0;
    while (same < count && !is_file_at(out->claim.fd, inputs[same])) same++;
    if (same < count)
        complain(command,
            "%s: is one of the traces to merge; the merged one needs a file of its own", path);
    const bool good = same == count && temporary_open(out, "part");
    if (!good) {
        cs_claim_drop(&out->claim);
        placeholder = NULL;
    }
    signals_release(before);
    return good;
}

void out_put(void *of, const char *text, size_t length)
{
    struct out *out = of;
    if (!length || out->failed) return;
    errno = 0;
    if (gzwrite(out->file, text, (unsigned)length) == (int)length) return;
    out->failed = true;
    out->error = errno;
}

/* Writes what is still buffered, which may fail too. */
static bool closed(struct out *out)
{
    errno = 0;
    if (gzclose(out->file) != Z_OK && !out->failed) out->failed = true, out->error = errno;
    return !out->failed || fail(out, out->error ? strerror(out->error) : "write error");
}

/* Converts the text, all of which has been put, to packets in another temporary file. */
static bool become_packets(struct out *out)
{
    static char text[sizeof out->temporary];
    char error[256];
    if (!closed(out)) return false;
    snprintf(text, sizeof text, "%s", out->temporary);
    spooled = text;
    out->packets = false;
    close(out->fd);
    /* temporary_open() overwrites out->temporary, to which `unfinished` points. The text's old name
     * is in `spooled`. */
    bool good = temporary_open(out, "packets");
    if (good && rows_convert(text, ROWS_PACKETS, out_put, out, error) == JSON_BROKEN) {
        complain(out->command, "%s: %s", out->path, error);
        gzclose(out->file);
        close(out->fd);
        unlink(out->temporary);
        good = false;
    }
    unlink(text);
    spooled = NULL;
    return good;
}

bool out_close(struct out *out, bool good)
{
    if (!good) gzclose(out->file);
    good = good && (!out->packets || become_packets(out)) && closed(out);
    if (good && fsync(out->fd) && errno != EINVAL) good = fail(out, strerror(errno));
    if (good && !cs_claim_stands(&out->claim))
        good = complained(out->command,
            "%s: another file has come to this name meanwhile, which stays", out->path);
    if (good && rename(out->temporary, out->claim.path)) good = fail(out, strerror(errno));
    close(out->fd);
    const sigset_t before = signals_hold();
    unfinished = placeholder = NULL;
    if (good) {
        close(out->claim.fd);
    } else {
        unlink(out->temporary);
        cs_claim_drop(&out->claim);
    }
    signals_release(before);
    return good;
}
