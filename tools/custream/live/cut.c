#define _GNU_SOURCE /* O_TMPFILE, SEEK_HOLE */
#include "tools/custream/live/live.h"
#include "shim/base/claim.h"
#include "shim/base/options.h"
#include "shim/base/owner.h"
#include "tools/custream/convert/rows.h"
#include "tools/custream/merge/out.h"
#include "tools/custream/merge/plan.h"
#include "tools/custream/program.h"
#include "tools/custream/trace/ends.h"
#include "tools/custream/trace/gz.h"
#include "tools/custream/verdict.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FD_ROOM = 32, TRIES = 100, PAUSE_NS = 10000000 };

static int64_t ns_of(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static bool known(const struct file_id *file) { return file->device || file->inode; }

static int look(const char *path, const struct file_id *file)
{
    struct stat about;
    const int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 ||
        (!fstat(fd, &about) && S_ISREG(about.st_mode) &&
            (!known(file) || (about.st_dev == file->device && about.st_ino == file->inode))))
        return fd;
    close(fd);
    return errno = ESTALE, -1;
}

/* Looks for the file among the descriptors of each thread: the thread that writes the trace has its
 * own table of descriptors. */
static int look_at_descriptors(int pid, const struct file_id *file)
{
    char pattern[64];
    glob_t all;
    int found = -1;
    snprintf(pattern, sizeof pattern, "/proc/%d/task/*/fd/*", pid);
    if (glob(pattern, GLOB_NOSORT, NULL, &all)) return -1;
    for (size_t i = 0; found < 0 && i < all.gl_pathc; i++) found = look(all.gl_pathv[i], file);
    globfree(&all);
    return found;
}

int trace_find(int pid, const char *trace, const struct file_id *file, char path[TRACE_ROOM])
{
    char root[64];
    if (*trace != '/') return errno = ENOENT, -1;
    snprintf(root, sizeof root, "/proc/%d/root", pid);
    const bool through = !access(root, F_OK); /* false: the process is gone, or not ours */
    snprintf(path, TRACE_ROOM, "%s%s", through ? root : "", trace);
    int fd = look(path, file);
    const int error = errno;
    if (fd < 0 && through && known(file))
        fd = look(trace, file); /* below /proc/PID/root, an absolute link leads to our root */
    if (fd < 0 && known(file)) fd = look_at_descriptors(pid, file);
    if (fd < 0) errno = error;
    return fd;
}

static int trace_readable(int fd)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int readable = fd < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int error = errno;
    if (fd >= 0) close(fd);
    return errno = error, readable;
}

struct extract extract_of(const struct peer *peer, const struct about *about, int64_t from)
{
    return (struct extract){.pid = peer->pid,
        .trace = about->trace,
        .file = {about->device, about->inode},
        .base = about->base,
        .events_end = about->events_end,
        .parts = (unsigned)about->parts,
        .from = from,
        .until = (int64_t)about->now};
}

/* --- where the output goes --- */

bool cut_possible(const char *command, const char *to)
{
    static struct cs_claim claim;
    if (!cs_trace_extension(to))
        return complained(command,
            "-o %s: allowed is a path ending in .json, .json.gz, .pftrace or .pftrace.gz", to);
    if (cs_claim(&claim, to, 0, &gz_inflate)) return cs_claim_drop(&claim), true;
    int length;
    const char *why = out_refusal(&claim, &length);
    return complained(command, "-o %s: cannot be written: %.*s", to, length, why);
}

/* --- whether a file is the process's trace --- */

/* Compares the base time. Device and inode do not tell: a process that is started anew with the
 * same file name writes into the same file. */
bool extract_is(int fd, const struct extract *extract)
{
    struct trace_head head;
    const bool is = trace_head(fd, &head) && (!extract->base || head.base == extract->base);
    errno = extract->base ? ESTALE : EILSEQ;
    return is;
}

static void say_why(const char *command, const struct extract *extract, int error)
{
    if (error == ESTALE)
        complain(command,
            "process %d: its trace is not at %s any more, or cannot be seen from here: what has "
            "that name is another file",
            extract->pid, extract->trace);
    else if (error == EILSEQ)
        complain(command, "process %d: its trace %s is left out: it does not begin as a trace does",
            extract->pid, extract->trace);
    else
        complain(
            command, "process %d: its trace %s: %s", extract->pid, extract->trace, strerror(error));
}

/* --- files as they are at one moment --- */

/* Returns an open file without a name, on the file system of `to`. A memfd will not do, as a trace
 * may be too long for memory. */
static int scratch(const char *to)
{
    char name[TRACE_ROOM];
    snprintf(name, sizeof name - 32, "%s", to);
    char *slash = strrchr(name, '/'), *behind = slash ? slash + 1 : name;
    strcpy(behind, ".");
    int fd = open(name, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    strcpy(behind, ".custream-XXXXXX");
    if ((fd = mkostemp(name, O_CLOEXEC)) >= 0) unlink(name);
    return fd;
}

static bool copy_bytes(int from, int to, off_t at, off_t end)
{
    ssize_t n = 1;
    if (lseek(to, at, SEEK_SET) < 0) return false;
    while (at < end && n > 0) n = sendfile(to, from, &at, (size_t)(end - at));
    return n >= 0;
}

/* Copies the file as it is at one moment. The first `events_end` bytes never change; the rest is
 * copied again until nobody writes meanwhile. Returns the open copy, or -1 with errno. */
static int snapshot(int file, const struct extract *extract, const char *to)
{
    struct stat before, after;
    const off_t sure = (off_t)extract->events_end;
    if (fstat(file, &before)) return -1;
    /* Another user's file may grow without end. If it has holes, it is no trace. */
    off_t left = INT64_MAX;
    if (!cs_owner_is_us(before.st_uid))
        left = lseek(file, 0, SEEK_HOLE) < before.st_size ? 0 : 2 * before.st_size + (1 << 30);
    if (!left) return errno = EILSEQ, -1;
    const int fd = scratch(to);
    bool good = fd >= 0 && copy_bytes(file, fd, 0, sure < left ? sure : left), done = false;
    for (int try = 0; try < TRIES && good && !done; try++) {
        if (try) nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
        if (fstat(file, &before) || (left -= try ? before.st_size - sure : before.st_size) < 0)
            break;
        good = !ftruncate(fd, sure) && copy_bytes(file, fd, sure, before.st_size) &&
               !fstat(file, &after);
        if (!good) break;
        /* The copy is done if nobody wrote meanwhile. File times go in steps, so two writes may
         * have the same time. In the first half of the tries, the last write must therefore be
         * older than a step. */
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        const int64_t written = ns_of(after.st_mtim);
        done = before.st_size == after.st_size && ns_of(before.st_mtim) == written &&
               (try >= TRIES / 2 || ns_of(now) - written > 2 * PAUSE_NS);
    }
    if (good) errno = left < 0 ? EFBIG : EBUSY;
    if (done && extract_is(file, extract)) return fd;
    const int error = errno;
    if (fd >= 0) close(fd);
    return errno = error, -1;
}

/* --- the files of one process --- */

struct taken {
    struct one {
        int fd, pid;                /* an open file of a trace, and its process */
        char path[FD_ROOM], *shown; /* /proc/self/fd/N, and the name for people */
    } *each;
    size_t count, capacity;
};

static void take(struct taken *taken, int fd, const char *name, int pid)
{
    struct one one = {.fd = fd, .pid = pid, .shown = kept(name)};
    snprintf(one.path, sizeof one.path, "/proc/self/fd/%d", fd);
    array_add(taken->each, taken->count, taken->capacity, one);
}

static void taken_free(struct taken *taken)
{
    for (size_t i = 0; i < taken->count; i++) {
        if (taken->each[i].fd >= 0) close(taken->each[i].fd);
        free(taken->each[i].shown);
    }
    free(taken->each);
}

/* Whether a part that has ended may have this name: "trace.7.json" or "trace.7-4711.json" for
 * "trace.json". */
static bool is_part(const char *name, const char *stem, size_t n, const char *extension)
{
    if (strncmp(name, stem, n) || name[n] != '.' || !isdigit((unsigned char)name[n + 1]))
        return false;
    const char *at = name + n + 1 + strspn(name + n + 1, "0123456789");
    if (*at == '-') at += 1 + strspn(at + 1, "0123456789-");
    return !strcmp(at, extension);
}

/* Opens the folder of the parts: the folder in the trace's path, or if that was renamed, the folder
 * of the open file. */
static DIR *parts_open(const char *path, int newest, char folder[TRACE_ROOM])
{
    char link[FD_ROOM];
    snprintf(folder, TRACE_ROOM, "%s", path);
    strrchr(folder, '/')[1] = 0;
    DIR *files = opendir(folder);
    if (files) return files;
    snprintf(link, sizeof link, "/proc/self/fd/%d", newest);
    const ssize_t n = readlink(link, folder, TRACE_ROOM - 1);
    folder[n > 0 ? n : 0] = 0;
    if (*folder != '/') return NULL;
    strrchr(folder, '/')[1] = 0;
    return opendir(folder);
}

/* Takes the parts that ended in the span or later. By now the newest file may be a part and have a
 * part's name: it is not taken twice. */
static void take_parts(struct taken *taken, struct extract *extract, const char *path, int newest)
{
    struct trace_head own, its;
    char folder[TRACE_ROOM], name[TRACE_ROOM + NAME_MAX], shown[TRACE_ROOM + NAME_MAX];
    struct stat about, known;
    const char *extension = cs_trace_extension(path), *slash = strrchr(path, '/');
    if (!extension || !slash || fstat(newest, &known) || !trace_head(newest, &own)) return;
    const int shown_folder = (int)(strrchr(extract->trace, '/') + 1 - extract->trace);
    DIR *files = parts_open(path, newest, folder);
    extract->apart = !files;
    for (struct dirent *file; files && (file = readdir(files));) {
        if (!is_part(file->d_name, slash + 1, (size_t)(extension - slash - 1), extension)) continue;
        snprintf(name, sizeof name, "%s%s", folder, file->d_name);
        snprintf(shown, sizeof shown, "%.*s%s", shown_folder, extract->trace, file->d_name);
        const int fd = trace_readable(open(name, O_PATH | O_CLOEXEC | O_NOFOLLOW));
        const bool late = fd >= 0 && !fstat(fd, &about) && S_ISREG(about.st_mode) &&
                          ns_of(about.st_mtim) + 1000000000 >= extract->from;
        const bool again = late && about.st_dev == known.st_dev && about.st_ino == known.st_ino;
        if (late && !again && trace_head(fd, &its) && own.base == its.base)
            take(taken, fd, shown, extract->pid);
        else if (fd >= 0) close(fd);
    }
    if (files) closedir(files);
}

/* Opens the trace, then asks the process again: it may write another file by now. Returns -1 with
 * errno. */
static int extract_find(struct extract *extract, char path[TRACE_ROOM])
{
    /* TOGETHER_MS: how long the answers of all processes may take together; EACH_MS: how long each
     * answer may take at least. For a process that does not answer in time, its earlier answer
     * counts. */
    enum { TOGETHER_MS = 3000, EACH_MS = 100 };
    static long until;
    struct about about;
    int fd = -1, error = 0;
    if (!until) until = peer_clock_ms() + TOGETHER_MS;
    for (int try = 0; try < TRIES; try++) {
        struct peer peer;
        fd = trace_find(extract->pid, extract->trace, &extract->file, path);
        error = errno;
        const bool there = peer_find(&peer, extract->pid);
        peer.until = until > peer_clock_ms() + EACH_MS ? until : peer_clock_ms() + EACH_MS;
        const bool told = there && peer_ask(&peer, cs_ask_about) &&
                          peer_hear_about(&peer, &about) && about.base == extract->base;
        peer_close(&peer);
        const bool same =
            !told || (about.device == extract->file.device && about.inode == extract->file.inode);
        if (same && !told && fd < 0 && extract->base)
            fd = trace_find(extract->pid, extract->trace, &(struct file_id){0}, path),
            error = errno;
        if (same) fd = trace_readable(fd), error = fd < 0 && errno != EBADF ? errno : error;
        if (same || strcmp(about.trace, extract->trace)) break;
        if (fd >= 0) close(fd);
        extract->file = (struct file_id){about.device, about.inode};
        extract->events_end = about.events_end;
    }
    if (fd >= 0 && extract_is(fd, extract)) return fd;
    if (fd >= 0) error = errno, close(fd);
    return errno = error, -1;
}

int extract_keep(const struct extract *extract, const char *to)
{
    char path[TRACE_ROOM];
    struct extract now = *extract;
    const int file = extract_find(&now, path), fd = file >= 0 ? snapshot(file, &now, to) : -1;
    if (file >= 0) close(file);
    return fd;
}

static bool extract_take(
    const char *command, const char *to, struct taken *taken, struct extract *extract)
{
    char path[TRACE_ROOM];
    const int file = extract_find(extract, path);
    if (file >= 0 && is_file_at(file, to)) {
        close(file);
        return complained(command, "-o %s: the process itself writes to %s; name another file", to,
            extract->trace);
    }
    int fd = file >= 0 ? snapshot(file, extract, to) : -1;
    const int error = errno;
    if (fd < 0 && extract->kept > 0) fd = extract->kept, extract->kept = 0;
    if (fd >= 0) {
        char room[256];
        struct cs_verdict found = {0};
        cJSON *trailer = finish_trailer(fd);
        if (trailer) verdict_read(&found, trailer, room, sizeof room);
        cJSON_Delete(trailer);
        extract->complete = found.complete;
        if (extract->parts) take_parts(taken, extract, path, file >= 0 ? file : fd);
        take(taken, fd, extract->trace, extract->pid);
    } else say_why(command, extract, error);
    if (file >= 0) close(file);
    return fd >= 0;
}

/* --- the newest file --- */

size_t newest_take(const char *command, struct extract *extract, off_t most, int **files)
{
    char path[TRACE_ROOM];
    size_t count = 0;
    struct taken parts = {0};
    *files = NULL;
    const int file = extract_find(extract, path);
    if (file < 0) return say_why(command, extract, errno), 0;
    if (extract->parts) take_parts(&parts, extract, path, file);
    *files = array_zeros(parts.count + 1, sizeof **files);
    (*files)[count++] = file;
    struct stat about;
    const char *extension = cs_trace_extension(extract->trace);
    const bool enough = most && extension && !strcmp(extension, ".json") && !fstat(file, &about) &&
                        about.st_size > most; /* no part is needed */
    int64_t latest = INT64_MIN;
    size_t last = parts.count; /* the part that ended last */
    for (size_t i = 0; i < parts.count; i++) {
        struct stat part;
        if (fstat(parts.each[i].fd, &part) || ns_of(part.st_mtim) <= latest) continue;
        latest = ns_of(part.st_mtim);
        last = i;
    }
    for (size_t i = 0; i < parts.count; i++) {
        if (enough || (most && i != last)) continue;
        (*files)[count++] = parts.each[i].fd;
        parts.each[i].fd = -1;
    }
    taken_free(&parts);
    return count;
}

/* --- writing a cut --- */

bool cut_write(const char *command, const char *to, struct extract *extracts, size_t count,
    struct cut_reach *cut)
{
    struct taken taken = {0};
    *cut = (struct cut_reach){.from = INT64_MAX, .until = INT64_MIN};
    for (size_t i = 0; i < count; i++) {
        if (!extract_take(command, to, &taken, &extracts[i])) {
            cut->missing++;
            continue;
        }
        if (extracts[i].from < cut->from) cut->from = extracts[i].from;
        if (extracts[i].until > cut->until) cut->until = extracts[i].until;
        cut->apart |= extracts[i].apart;
    }
    struct refusal *refusals = array_zeros(taken.count, sizeof *refusals);
    char **paths = array_zeros(2 * taken.count, sizeof *paths), **shown = paths + taken.count;
    for (size_t i = 0; i < taken.count; i++) {
        paths[i] = taken.each[i].path;
        shown[i] = taken.each[i].shown;
    }
    const bool good = cut->missing < count && merge_between(to, paths, shown, taken.count,
                                                  cut->from, cut->until, &cut->begin, refusals);
    for (int i = 0, last = 0; i < (int)taken.count; i++) {
        if (!*refusals[i].why) continue;
        complain(command, "process %d: its trace %s is left out: %s", taken.each[i].pid, shown[i],
            refusals[i].why);
        cut->missing += taken.each[i].pid != last;
        last = taken.each[i].pid;
    }
    free(paths);
    free(refusals);
    taken_free(&taken);
    return good;
}

bool copy_write(const char *command, const char *to, struct extract *extract)
{
    struct taken taken = {0};
    struct out out;
    char error[256];
    bool good = false;
    extract->events_end = extract->parts = 0;
    if (!extract_take(command, to, &taken, extract)) return false;
    if (out_open(&out, "custream merge", to, OUT_OF_ROWS, (char *[]){taken.each[0].path}, 1)) {
        good = rows_convert(taken.each[0].path, ROWS_AS_CUT, out_put, &out, error) != JSON_BROKEN;
        if (!good) complain(command, "%s: %s", extract->trace, error);
        good = out_close(&out, good);
    }
    taken_free(&taken);
    return good;
}
