#define _GNU_SOURCE
#include "shim/out/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/append.h"
#include "shim/base/claim.h"
#include "shim/base/environment.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/plain.h"
#include "shim/out/gzip.h"

void cs_process_name(char name[256])
{
    char exe[PATH_MAX] = ""; /* readlink() puts no end behind it */
    const char *slash = readlink("/proc/self/exe", exe, sizeof exe - 1) > 0 ? strrchr(exe, '/') : NULL;
    snprintf(name, 256, "%.255s", slash ? slash + 1 : "unknown");
}

/* All processes of a run would have the same name, but for the ones that come late. */
static void rank_is_missing(const char *variable, const char *pattern)
{
    char names[256];
    size_t n = 0;
    for (size_t i = 0; cs_rank_variables[i]; i++) n = cs_append(names, sizeof names, n, "%s%s", i ? ", " : "", cs_rank_variables[i]);
    cs_log_once(CS_LOG_WARN, "%s=%.200s: %%r is 0, since no launcher has set a rank (%s)", variable, pattern, names);
}

void cs_path_expand(const char *variable, const char *pattern, char *path, size_t size)
{
    const int rank = cs_process_rank(&(int){0});
    bool asks = false;
    size_t used = 0;
    path[0] = 0;
    for (const char *p = pattern; *p && used + 1 < size; p++) {
        char piece[256] = {*p, 0};
        if (*p == '%') switch (*++p) {
            case 'p': snprintf(piece, sizeof piece, "%d", (int)getpid()); break;
            case 'r': snprintf(piece, sizeof piece, "%d", rank < 0 ? 0 : rank), asks = true; break;
            case 'h': gethostname(piece, sizeof piece - 1); break;
            case 'e': cs_process_name(piece); break;
            default: break;
            }
        used = cs_append(path, size, used, "%s", piece);
    }
    if (asks && rank < 0) rank_is_missing(variable, pattern);
}

/* The name that nobody has chosen carries the rank, where there is one: "custream-app-4711-r3.json". */
static void put_rank(const char *pattern, char *path, size_t size)
{
    char tail[16];
    const int rank = cs_process_rank(&(int){0});
    const size_t stem = cs_path_stem(path);
    if (rank < 0 || strcmp(pattern, cs_option_info[CS_OPTION_TRACE].preset)) return;
    snprintf(tail, sizeof tail, "%s", path + stem);
    snprintf(path + stem, size - stem, "-r%d%s", rank, tail);
}

/* Reads a small file of /proc; its length, 0 if it can't be read. */
static size_t slurp(const char *file, char *text, size_t size)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : 0;
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

/* What an interpreter of Python runs: its script or module. NULL: the program is on the command line, or comes from a terminal. `end`: of the arguments. */
static const char *script_of(const char *arg, const char *end)
{
    for (arg += strlen(arg) + 1; arg < end; arg += strlen(arg) + 1) {
        if (*arg != '-') return arg;
        const char *const taking = arg[1] == '-' ? NULL : strpbrk(arg + 1, "cmWX"); /* the options with a value, here or in the next argument */
        if (!taking) continue;
        if (*taking == 'c') return NULL;
        if (!taking[1]) arg += strlen(arg) + 1;
        if (*taking == 'm') return taking[1] ? taking + 1 : arg < end ? arg : NULL;
    }
    return NULL;
}

void cs_process_shown_name(char name[256])
{
    char arguments[4096];
    cs_process_name(name);
    if (strncmp(name, "python", 6)) return;
    const size_t length = slurp("/proc/self/cmdline", arguments, sizeof arguments);
    const char *script = length ? script_of(arguments, arguments + length) : NULL, *slash = script ? strrchr(script, '/') : NULL;
    if (slash && slash[1]) script = slash + 1;
    if (script && *script) snprintf(name, 256, "%.255s", script);
}

const char *cs_process_command_line(void)
{
    static char line[CS_COMMAND_LINE];
    static bool known; /* read for the first part: later a filter of the program's may forbid that */
    const size_t length = known ? 0 : slurp("/proc/self/cmdline", line, sizeof line);
    for (size_t i = 0; i + 1 < length; i++)
        if (!line[i]) line[i] = ' ';
    known = true;
    return line;
}

/* Parent and start (clock ticks after boot) of a process. The command name in parentheses may hold anything, so fields count from its end. */
static bool process_stat(pid_t pid, pid_t *parent, unsigned long long *start)
{
    char file[64], text[1024];
    snprintf(file, sizeof file, "/proc/%d/stat", (int)pid);
    if (!slurp(file, text, sizeof text)) return false;
    const char *p = strrchr(text, ')');
    int ppid;
    if (!p || sscanf(p + 2, "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ppid, start) != 2) return false;
    *parent = ppid;
    return true;
}

static bool is_preloaded(pid_t pid)
{
    char file[64];
    static char text[1 << 17]; /* the writer thread's alone */
    snprintf(file, sizeof file, "/proc/%d/environ", (int)pid);
    size_t n = slurp(file, text, sizeof text);
    for (const char *p = text; p < text + n; p += strlen(p) + 1)
        if (!strncmp(p, "LD_PRELOAD=", 11) && strstr(p, "libcustream_shim")) return true;
    return false;
}

/* Seconds since the epoch at which this run began: the start of the eldest ancestor that has the preload too, else of this process. Starts are known in
 * clock ticks. An ancestor's counts from the tick's begin, so that no file of the run is taken for an older one; our own from its end, since nobody
 * of our run can have written a file yet, but the run before may just have ended. */
static double run_start(void)
{
    unsigned long long start = 0, s;
    pid_t pid = getpid(), parent;
    if (!process_stat(pid, &parent, &start)) return 0;
    start++;
    for (int depth = 0; depth < 64 && parent > 1 && is_preloaded(parent); depth++) {
        pid = parent;
        if (!process_stat(pid, &parent, &s)) break;
        start = s;
    }
    struct timespec wall, boot;
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_BOOTTIME, &boot);
    double booted = (double)(wall.tv_sec - boot.tv_sec) + (double)(wall.tv_nsec - boot.tv_nsec) * 1e-9;
    return booted + (double)start / (double)getauxval(AT_CLKTCK);
}

/* It is locked by one that lives, or was written since the run began. */
bool cs_path_is_taken(const struct cs_claim *claim)
{
    enum { TICK_MS = 30 }; /* generously: the kernel tells a process's start in ticks of its own */
    struct stat st;
    char own[32];
    if (flock(claim->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) return true;
    if (fstat(claim->fd, &st) || !st.st_size) return false;
    double before_start = run_start() - ((double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec * 1e-9);
    if (before_start <= 0 || before_start > TICK_MS * 1e-3) return before_start <= 0;
    /* Just before the start: an earlier run's, or of the program that this process was until it called exec. That one has our pid. */
    snprintf(own, sizeof own, "\"pid\":%d,", (int)getpid());
    return strstr(claim->head, own);
}

size_t cs_path_stem(const char *path)
{
    const char *extension = cs_trace_extension(path);
    return extension ? (size_t)(extension - path) : strlen(path);
}

bool cs_path_is_packets(const char *path)
{
    const char *extension = cs_trace_extension(path);
    return extension && cs_trace_extension_is_packets(extension);
}

static const char *why;

const char *cs_path_why(void) { return why; }

/* The file of that name, if it is for us: empty and locked. -1: `next` tells whether another name may do. */
static int open_one(const char *name, char *path, size_t size, bool is_asked_for, bool *next)
{
    static struct cs_claim claim; /* the writer thread's alone */
    unsigned how = cs_option_is(CS_OPTION_FORCE, "on") ? CS_CLAIM_FORCE : 0;
    *next = false;
    if (!cs_claim(&claim, name, how, cs_gzip_inflate())) {
        *next = claim.refusal && !is_asked_for;
        why = claim.refusal ?: cs_plain_error(errno);
        return -1;
    }
    const bool taken = cs_path_is_taken(&claim); /* also where we made it: another process was faster to lock it */
    if (taken || !cs_claim_stands(&claim)) {
        if (taken) close(claim.fd);
        else cs_claim_drop(&claim); /* its name may be as it was, and could not be looked at */
        *next = true;
        why = cs_plain_error(EEXIST);
        return -1;
    }
    if (ftruncate(claim.fd, 0)) { /* where that is not allowed, no trace could be kept valid */
        why = cs_plain_error(errno);
        cs_claim_drop(&claim);
        return -1;
    }
    snprintf(path, size, "%s", claim.path);
    return claim.fd;
}

int cs_path_open(const char *pattern, char *path, size_t size)
{
    char plain[PATH_MAX], name[PATH_MAX + 64];
    bool next = true;
    int fd = -1;
    cs_path_expand("CUSTREAM_TRACE", pattern, plain, sizeof plain);
    put_rank(pattern, plain, sizeof plain);
    snprintf(path, size, "%s", plain);
    int stem = (int)cs_path_stem(plain);
    for (int attempt = 0; attempt < 1000 && next; attempt++) {
        if (attempt == 0) snprintf(name, sizeof name, "%s", plain);
        if (attempt == 1) snprintf(name, sizeof name, "%.*s-%d%s", stem, plain, (int)getpid(), plain + stem);
        if (attempt > 1) snprintf(name, sizeof name, "%.*s-%d-%d%s", stem, plain, (int)getpid(), attempt, plain + stem);
        fd = open_one(name, path, size, attempt == 0, &next);
    }
    return fd;
}
