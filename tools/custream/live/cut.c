#define _GNU_SOURCE /* O_TMPFILE, memfd_create */
#include "tools/custream/live/cut.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "shim/base/claim.h"
#include "shim/base/options.h"
#include "shim/base/unpack.h"
#include "tools/custream/command.h"
#include "tools/custream/merge/between.h"
#include "tools/custream/merge/out.h"
#include "tools/custream/merge/plan.h"
#include "tools/custream/reader.h"
#include "tools/custream/report/output.h"

enum { FD_ROOM = 32, TRIES = 100, PAUSE_NS = 10000000 };

bool duration_read(const char *text, int64_t *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"m", 6e10}, {"h", 3.6e12}};
    char *end;
    if (!isdigit((unsigned char)*text)) return false;
    const double number = strtod(text, &end);
    for (size_t i = 0; i < CS_COUNT(units); i++) {
        const double value = number * units[i].ns;
        if (strcmp(units[i].name, end) || !(value >= 1) || value > 1e17) continue;
        *ns = llrint(value);
        return true;
    }
    return false;
}

/* --- where it goes --- */

bool cut_possible(const char *command, const char *to)
{
    static const struct cs_inflate zlib = {inflateInit2_, inflate, inflateEnd};
    static struct cs_claim claim;
    if (!cs_trace_extension(to)) return complain(command, "-o %s: allowed is a path ending in .json, .json.gz, .pftrace or .pftrace.gz", to), false;
    if (cs_claim(&claim, to, 0, &zlib)) return cs_claim_drop(&claim), true;
    int length;
    const char *why = out_refusal(&claim, &length);
    return complain(command, "-o %s: cannot be written: %.*s", to, length, why), false;
}

static bool is_the_trace(const char *command, const char *to, int trace, const char *name)
{
    struct stat a, b;
    if (stat(to, &a) || fstat(trace, &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino) return false;
    return complain(command, "-o %s: the process itself writes to %s; name another file", to, name), true;
}

/* --- files as they are at one moment --- */

static int scratch(const char *to)
{
    char folder[TRACE_ROOM];
    snprintf(folder, sizeof folder, "%s", to);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    const int fd = open(slash ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd >= 0 ? fd : memfd_create("custream", MFD_CLOEXEC);
}

/* The bytes from `at` to `end`, `down` before the same place. */
static bool move_bytes(int from, int to, off_t at, off_t end, off_t down)
{
    static char bytes[256 * 1024];
    while (at < end) {
        const ssize_t got = pread(from, bytes, end - at < (off_t)sizeof bytes ? (size_t)(end - at) : sizeof bytes, at);
        if (got <= 0) return !got;
        for (ssize_t done = 0, n; done < got; done += n)
            if ((n = pwrite(to, bytes + done, (size_t)(got - done), at + done - down)) <= 0) return false;
        at += got;
    }
    return true;
}

static bool copy_bytes(int from, int to, off_t at, off_t end) { return move_bytes(from, to, at, end, 0); }

/* Times of files go in steps of a few milliseconds: one that was written just now may be written again and seem the same. */
static bool is_at_rest(const struct stat *before, const struct stat *after, bool patient)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t age = (int64_t)(now.tv_sec - after->st_mtim.tv_sec) * 1000000000 + now.tv_nsec - after->st_mtim.tv_nsec;
    const bool same = before->st_size == after->st_size && before->st_mtim.tv_sec == after->st_mtim.tv_sec && before->st_mtim.tv_nsec == after->st_mtim.tv_nsec;
    return same && (!patient || age > 2 * PAUSE_NS);
}

/* The file as it is at one moment, of which `sure` bytes never change. What is behind them, the last events and the trailer, is copied until nobody has
 * written meanwhile. -1 with errno. */
static int snapshot(int file, off_t sure, const char *to)
{
    struct stat before, after;
    const int fd = scratch(to);
    bool good = fd >= 0 && copy_bytes(file, fd, 0, sure), done = false;
    for (int try = 0; try < TRIES && good && !done; try++) {
        if (try) nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
        good = !fstat(file, &before) && !ftruncate(fd, sure) && copy_bytes(file, fd, sure, before.st_size) && !fstat(file, &after);
        done = good && is_at_rest(&before, &after, try < TRIES / 2);
    }
    if (done) return fd;
    if (good) errno = EBUSY;
    const int error = errno;
    if (fd >= 0) close(fd);
    return errno = error, -1;
}

/* --- the files of one process --- */

struct taken {
    char **paths, **shown; /* /proc/self/fd/N, and the name that it stands for */
    int *fds, *pids;       /* pids: whose it is */
    size_t count, capacity[4];
};

static void take(struct taken *taken, int fd, const char *name, int pid)
{
    char path[FD_ROOM];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    taken->paths = array_room(taken->paths, taken->count, &taken->capacity[0], sizeof *taken->paths);
    taken->shown = array_room(taken->shown, taken->count, &taken->capacity[1], sizeof *taken->shown);
    taken->fds = array_room(taken->fds, taken->count, &taken->capacity[2], sizeof *taken->fds);
    taken->pids = array_room(taken->pids, taken->count, &taken->capacity[3], sizeof *taken->pids);
    taken->fds[taken->count] = fd;
    taken->pids[taken->count] = pid;
    if (!(taken->paths[taken->count] = strdup(path)) || !(taken->shown[taken->count] = strdup(name))) out_of_memory();
    taken->count++;
}

static void taken_free(struct taken *taken)
{
    for (size_t i = 0; i < taken->count; i++) {
        if (taken->fds[i] >= 0) close(taken->fds[i]);
        free(taken->paths[i]);
        free(taken->shown[i]);
    }
    free(taken->paths);
    free(taken->shown);
    free(taken->fds);
    free(taken->pids);
}

/* "trace.7.json" of "trace.json", and "trace.7-4711.json": parts that have ended. */
static bool is_part(const char *name, const char *stem, size_t n, const char *extension)
{
    if (strncmp(name, stem, n) || name[n] != '.' || !isdigit((unsigned char)name[n + 1])) return false;
    const char *at = name + n + 1 + strspn(name + n + 1, "0123456789");
    if (*at == '-') at += 1 + strspn(at + 1, "0123456789-");
    return !strcmp(at, extension);
}

/* The header's first line, which has the time base: parts of one process have the same. */
static bool time_base(int fd, char base[32])
{
    char path[FD_ROOM];
    struct reader reader;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool found = reader_open(&reader, path) && reader_next(&reader) > 0;
    const char *at = found ? strstr(reader.line, "\"baseTimeNanoseconds\":") : NULL;
    found = at && sscanf(at + strlen("\"baseTimeNanoseconds\":"), "%31[0-9]", base) == 1;
    reader_close(&reader);
    return found;
}

/* Parts that ended in that time or later. One that goes away meanwhile was the oldest; the newest may have got a part's name by now, and is there already. */
static void take_parts(struct taken *taken, const struct extract *extract, const char *path, int newest)
{
    char own[32], its[32], name[TRACE_ROOM + NAME_MAX], shown[TRACE_ROOM + NAME_MAX];
    struct stat about, known;
    const char *extension = cs_trace_extension(path), *slash = strrchr(path, '/');
    if (!extension || !slash || fstat(newest, &known) || !time_base(newest, own)) return;
    const int folder = (int)(slash + 1 - path), shown_folder = (int)(strrchr(extract->trace, '/') + 1 - extract->trace);
    snprintf(name, sizeof name, "%.*s", folder, path);
    DIR *files = opendir(name);
    for (struct dirent *file; files && (file = readdir(files));) {
        if (!is_part(file->d_name, slash + 1, (size_t)(extension - slash - 1), extension)) continue;
        snprintf(name + folder, sizeof name - (size_t)folder, "%s", file->d_name);
        snprintf(shown, sizeof shown, "%.*s%s", shown_folder, extract->trace, file->d_name);
        const int fd = trace_readable(open(name, O_PATH | O_CLOEXEC | O_NOFOLLOW));
        const bool late = fd >= 0 && !fstat(fd, &about) && S_ISREG(about.st_mode) && (int64_t)about.st_mtim.tv_sec * 1000000000 + 1000000000 >= extract->from;
        const bool again = late && about.st_dev == known.st_dev && about.st_ino == known.st_ino;
        if (late && !again && time_base(fd, its) && !strcmp(own, its)) take(taken, fd, shown, extract->pid);
        else if (fd >= 0) close(fd);
    }
    if (files) closedir(files);
}

/* Of one that has ended: parts have gone on from the one that was told of. */
static int open_by_base(const struct extract *extract, char path[TRACE_ROOM])
{
    char its[32];
    const int fd = trace_readable(trace_find(extract->pid, extract->trace, &(struct file_at){0}, path));
    if (fd < 0 || (extract->base && time_base(fd, its) && strtoull(its, NULL, 10) == extract->base)) return fd;
    close(fd);
    return errno = ESTALE, -1;
}

/* Asked again once it is open: it may have become another file in between, of which other bytes are sure. */
int extract_open(const char *command, struct extract *extract, char path[TRACE_ROOM])
{
    enum { TOGETHER_MS = 3000, EACH_MS = 100 }; /* one that does not answer keeps nobody waiting: what it said before counts then */
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
        const bool told = there && peer_ask(&peer, "about") && peer_hear_about(&peer, &about) && about.base == extract->base;
        peer_close(&peer);
        const bool same = !told || (about.file.device == extract->file.device && about.file.inode == extract->file.inode);
        if (same && !told && fd < 0) fd = open_by_base(extract, path), error = errno;
        else if (same) fd = trace_readable(fd), error = fd < 0 && errno != EBADF ? errno : error;
        if (same || strcmp(about.trace, extract->trace)) break;
        if (fd >= 0) close(fd);
        extract->file = about.file;
        extract->events_end = about.events_end;
    }
    if (fd >= 0) return fd;
    if (error == ESTALE) complain(command, "process %d: its trace is not at %s any more, or cannot be seen from here: what has that name is another file", extract->pid, extract->trace);
    else complain(command, "process %d: its trace %s: %s", extract->pid, extract->trace, strerror(error));
    return -1;
}

static bool extract_take(const char *command, const char *to, struct taken *taken, struct extract *extract)
{
    char path[TRACE_ROOM];
    const int file = extract_open(command, extract, path);
    if (file < 0) return false;
    const bool bad = is_the_trace(command, to, file, extract->trace);
    const int fd = bad ? -1 : snapshot(file, (off_t)extract->events_end, to);
    if (fd >= 0) {
        if (extract->parts) take_parts(taken, extract, path, file);
        take(taken, fd, extract->trace, extract->pid);
    } else if (!bad) complain(command, "%s: %s", extract->trace, strerror(errno));
    close(file);
    return fd >= 0;
}

/* --- the newest file, or its end --- */

/* The offset behind the first newline from there on, or behind the line that has the word; -1: there is none near. */
static off_t line_behind(int file, off_t at, const char *word)
{
    static char text[256 * 1024];
    const ssize_t got = pread(file, text, sizeof text - 1, at);
    if (got <= 0) return -1;
    text[got] = 0;
    const char *from = word ? strstr(text, word) : text, *newline = from ? strchr(from, '\n') : NULL;
    return newline ? at + (newline - text) + 1 : -1;
}

/* The header and the last bytes, from the begin of a line on. -1 with errno, also where somebody writes meanwhile. */
static int tail_snapshot(int file, off_t size, off_t most)
{
    struct stat before, after;
    const off_t head = line_behind(file, 0, "\"traceEvents\":["), from = line_behind(file, size - most, NULL);
    if (head < 0 || from < head) return errno = EINVAL, -1;
    const int fd = scratch("/dev/shm/");
    bool good = fd >= 0 && copy_bytes(file, fd, 0, head), done = false;
    for (int try = 0; try < TRIES && good && !done; try++) {
        if (try) nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
        good = !fstat(file, &before) && !ftruncate(fd, head) && move_bytes(file, fd, from, before.st_size, from - head) && !fstat(file, &after);
        done = good && is_at_rest(&before, &after, false);
    }
    if (good) return fd; /* of one that is written all the time, the end is torn: its last whole event counts */
    const int error = errno;
    if (fd >= 0) close(fd);
    return errno = error, -1;
}

static int taken_now(int file, const char *name, off_t sure, off_t most, bool *partly)
{
    struct stat about;
    const char *extension = cs_trace_extension(name);
    if (most && extension && !strcmp(extension, ".json") && !fstat(file, &about) && about.st_size > most) {
        const int fd = tail_snapshot(file, about.st_size, most);
        if (fd >= 0) return *partly = true, fd;
    }
    return snapshot(file, sure, "/dev/shm/");
}

/* Of parts that have ended, the one that ended last. */
static int last_part(struct taken *taken)
{
    struct timespec latest = {0, 0};
    int found = -1;
    for (size_t i = 0; i < taken->count; i++) {
        struct stat about;
        if (fstat(taken->fds[i], &about)) continue;
        const bool later = about.st_mtim.tv_sec != latest.tv_sec ? about.st_mtim.tv_sec > latest.tv_sec : about.st_mtim.tv_nsec > latest.tv_nsec;
        if (found < 0 || later) latest = about.st_mtim, found = taken->fds[i];
    }
    return found;
}

size_t newest_take(const char *command, struct extract *extract, off_t most, int **files, bool *partly)
{
    char path[TRACE_ROOM];
    size_t count = 0;
    *partly = false;
    *files = NULL;
    const int file = extract_open(command, extract, path);
    if (file < 0) return 0;
    struct taken parts = {0};
    const int newest = taken_now(file, extract->trace, (off_t)extract->events_end, most, partly);
    if (newest < 0) complain(command, "%s: %s", extract->trace, strerror(errno));
    else if (extract->parts && !*partly) take_parts(&parts, extract, path, file);
    if (!(*files = calloc(parts.count + 1, sizeof **files))) out_of_memory();
    if (newest >= 0) (*files)[count++] = newest;
    if (most) {
        const int part = last_part(&parts), fd = part >= 0 ? taken_now(part, extract->trace, 0, most, partly) : -1;
        if (fd >= 0) (*files)[count++] = fd;
    } else
        for (size_t i = 0; i < parts.count; i++) (*files)[count++] = parts.fds[i], parts.fds[i] = -1; /* they have ended, and change no more */
    taken_free(&parts);
    close(file);
    return count;
}

/* --- out of the files --- */

bool cut_write(const char *command, const char *to, struct extract *extracts, size_t count, struct cut_reach *cut)
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
    }
    struct refusal *refusals = calloc(taken.count + 1, sizeof *refusals);
    if (!refusals) out_of_memory();
    const bool good = cut->missing < count && merge_between(to, taken.paths, taken.shown, taken.count, cut->from, cut->until, &cut->begin, refusals);
    for (int i = 0, last = 0; i < (int)taken.count; i++) {
        if (!*refusals[i].why) continue;
        complain(command, "process %d: its trace %s is left out: %s", taken.pids[i], taken.shown[i], refusals[i].why);
        cut->missing += taken.pids[i] != last;
        last = taken.pids[i];
    }
    free(refusals);
    taken_free(&taken);
    return good;
}

bool copy_write(const char *command, const char *to, const struct extract *extract)
{
    struct taken taken = {0};
    struct reader reader;
    struct out out;
    const char *at;
    char base[32];
    size_t length;
    int got = -1;
    if (!extract_take(command, to, &taken, &(struct extract){.pid = extract->pid, .trace = extract->trace, .file = extract->file, .base = extract->base})) return false;
    if (!reader_open(&reader, taken.paths[0])) complain(command, "%s: %s", extract->trace, reader.error);
    else if (!time_base(taken.fds[0], base)) complain(command, "process %d: its trace %s is none", extract->pid, extract->trace);
    else if (out_open(&out, to, taken.paths, 1)) {
        while ((got = reader_bytes(&reader, &at, &length)) > 0) out_put(&out, at, length);
        if (got < 0 && reader.cut) got = 0; /* it was killed while it wrote, and its file ends there */
        if (got < 0) complain(command, "%s: %s", extract->trace, reader.error);
        if (!out_close(&out, !got)) got = -1;
    }
    reader_close(&reader);
    taken_free(&taken);
    return !got;
}
