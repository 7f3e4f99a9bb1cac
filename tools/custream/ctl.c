/*
 * custream ctl: asks a process that runs under custream to record or not, to bring its file up to date, to take another policy, or how it is.
 */
#define _GNU_SOURCE
#include "tools/custream/command.h"

#include "shim/base/control.h"
#include "shim/base/options.h"
#include "shim/policy/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, STOPPED_MS = 1000, LOOK_MS = 100 };

void ctl_usage(void)
{
    puts("usage: custream ctl PID on|off|flush|status\n"
         "       custream ctl PID policy FILE\n\n"
         "Controls a process of this user that runs under custream:\n\n"
         "  on      record from now on, whatever CUSTREAM_WINDOW says; with CUSTREAM_TRACE=off, begin a file\n"
         "  off     stop recording, and write what was recorded\n"
         "  flush   bring the file up to date, and print its path\n"
         "  status  what is recorded and why not; the file, streams, losses, policy, source of GPU times\n"
         "  policy  use the policy in FILE (- is standard input) for streams that are created from now on;\n"
         "          waits and delays (STREAMS=sync, JITTER) begin and end at once, for all streams\n\n"
         "A process listens after its first CUDA call, if it records or changes something (CUSTREAM_CTL).\n"
         "Exit status: 0 done; 1 the process refused; 2 wrong usage, or the process cannot be reached.");
}

static bool fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("custream ctl: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

/* --- what is asked --- */

static const char *const words[] = {
#define WORD(word) #word,
    CS_CONTROL_WORDS(WORD)
#undef WORD
};

static bool word_ok(const char *word)
{
    size_t best = 0, fewest = SIZE_MAX;
    for (size_t i = 0; i < CS_COUNT(words); i++) {
        size_t edits = cs_edits(word, strlen(word), words[i], strlen(words[i]));
        bool begins_so = *word && !strncmp(word, words[i], strlen(word));
        if (!edits) return !strcmp(word, words[i]) || fail("'%s' is written %s", word, words[i]);
        if (edits < fewest || (edits == fewest && begins_so)) fewest = edits, best = i;
    }
    if (fewest <= 2) return fail("'%.60s' is nothing that can be asked; did you mean %s?", word, words[best]);
    return fail("'%.60s' is nothing that can be asked: on, off, flush, status or policy FILE", word);
}

static bool pid_read(const char *text, int *pid)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || n < 1 || n > INT_MAX) return fail("'%.60s' is no process id", text);
    *pid = (int)n;
    return true;
}

/* Reads at most `room` bytes; false after a line that says why not. */
static bool slurp(const char *name, char *text, size_t room, size_t *length)
{
    bool is_input = !strcmp(name, "-");
    int fd = is_input ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : 1;
    for (*length = 0; got > 0 && *length < room; *length += got > 0 ? (size_t)got : 0) got = read(fd, text + *length, room - *length);
    int error = errno;
    if (fd >= 0 && !is_input) close(fd);
    if (got < 0) return fail("%s: %s", name, strerror(error));
    if (*length == room) return fail("%s: longer than %zu KiB", name, room >> 10);
    text[*length] = 0;
    return true;
}

/* The policy behind the word, if the process will take it as far as we know. */
static bool policy_add(char *request, const char *name)
{
    char error[CS_POLICY_LINE], *json = request + strlen(strcpy(request, "policy "));
    struct cs_policy_file file;
    size_t length;
    if (!slurp(name, json, CS_CONTROL_REQUEST - 16, &length)) return false;
    if (memchr(json, 0, length)) return fail("%s: not text", name);
    if (!cs_policy_file_parse(&file, strcmp(name, "-") ? name : "standard input", json, length, true, error, sizeof error)) return fail("%s", error);
    cs_policy_file_finish(&file);
    return true;
}

/* --- the process --- */

struct process {
    int pid;     /* as this command knows it */
    int own_pid; /* as the process knows itself: in its pid namespace */
    char namespace_[64];
};

/* A line of /proc/PID/status: the last word behind "Name:". False where there is none. */
static bool status_number(int pid, const char *name, int *out)
{
    char path[64], line[256];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) || line[strlen(name)] != ':') continue;
        char *last = strrchr(line, '\t');
        found = last && sscanf(last, "%d", out) == 1;
    }
    if (file) fclose(file);
    return found;
}

static char state_of(int pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[n] = 0;
    char *end = strrchr(text, ')');
    return end && end[1] ? end[2] : 0;
}

static bool namespace_of(int pid, const char *kind, char text[64])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, kind);
    ssize_t n = readlink(path, text, 63);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Abstract sockets belong to a network namespace: into the process's, where that is another one. */
static bool network_enter(int pid)
{
    char own[64], its[64], path[64];
    if (!namespace_of(getpid(), "net", own) || !namespace_of(pid, "net", its) || !strcmp(own, its)) return true;
    snprintf(path, sizeof path, "/proc/%d/ns/net", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && !setns(fd, CLONE_NEWNET);
    if (fd >= 0) close(fd);
    return ok || fail("process %d has a network of its own (a container's): run custream ctl in there, or as root", pid);
}

static bool process_find(int pid, struct process *process)
{
    int group = pid;
    *process = (struct process){.pid = pid, .own_pid = pid};
    if (access("/proc/self/status", R_OK)) return true; /* no /proc: nothing is known beforehand */
    if (!status_number(pid, "Tgid", &group)) return fail("no process %d", pid);
    process->pid = group; /* of a thread's number, its process */
    if (!status_number(group, "NSpid", &process->own_pid)) process->own_pid = group;
    if (!namespace_of(group, "pid", process->namespace_)) return errno == EACCES || errno == EPERM ? fail("process %d: not permitted", pid) : fail("no process %d", pid);
    return network_enter(group);
}

/* Why nobody listens. */
static bool nobody(int pid)
{
    char path[64], line[PATH_MAX + 128];
    bool preloaded = false;
    if (state_of(pid) == 'Z') return fail("process %d has ended", pid);
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *file = fopen(path, "re");
    while (file && !preloaded && fgets(line, sizeof line, file)) preloaded = strstr(line, "/libcustream_shim");
    if (file) fclose(file);
    if (preloaded) return fail("process %d does not listen: it has called no CUDA yet, or CUSTREAM_CTL or CUSTREAM_TRACE=off keeps it from that", pid);
    return fail("process %d does not run under custream", pid);
}

/* --- asking --- */

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Anybody may take a name: only the process itself is to be told. */
static bool is_the_process(int fd, const struct process *process)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) return true;
    return peer.pid == process->pid || !peer.pid || fail("process %d does not listen: process %d has taken its place", process->pid, (int)peer.pid);
}

static bool process_connect(const struct process *process, int *fd)
{
    struct sockaddr_un address;
    socklen_t length = cs_control_address(&address, process->own_pid, process->namespace_);
    *fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0) return fail("%s", strerror(errno));
    for (long until = now_ms() + PATIENCE_MS; connect(*fd, (struct sockaddr *)&address, length);) {
        if (errno == ECONNREFUSED) return nobody(process->pid);
        if (errno == EACCES || errno == EPERM) return fail("process %d: not permitted", process->pid);
        if (errno != EAGAIN) return fail("process %d: %s", process->pid, strerror(errno));
        if (now_ms() > until) return fail("process %d: too many ask it at once", process->pid);
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    return is_the_process(*fd, process);
}

static bool hear(int fd, const struct process *process, char answer[CS_CONTROL_ANSWER])
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    for (long began = now_ms(), waited = 0; poll(&one, 1, LOOK_MS) <= 0; waited = now_ms() - began) {
        char state = state_of(process->pid);
        if (waited > STOPPED_MS && (state == 'T' || state == 't')) return fail("process %d is stopped; nothing was done", process->pid);
        if (waited > PATIENCE_MS) return fail("process %d does not answer", process->pid);
    }
    ssize_t n = recv(fd, answer, CS_CONTROL_ANSWER - 1, 0);
    if (n <= 0) return fail("process %d ended before it answered", process->pid);
    answer[n] = 0;
    answer[strcspn(answer, "\n")] = 0;
    return true;
}

static int ask(const struct process *process, const char *request)
{
    static char answer[CS_CONTROL_ANSWER];
    int fd = -1;
    bool ok = process_connect(process, &fd);
    if (ok && send(fd, request, strlen(request), MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET) ok = fail("process %d: %s", process->pid, strerror(errno));
    ok = ok && hear(fd, process, answer);
    if (fd >= 0) close(fd);
    if (!ok) return STATUS_UNUSABLE;
    if (!strncmp(answer, "ok ", 3) || !strcmp(answer, "ok")) {
        puts(answer[2] ? answer + 3 : "ok");
        return STATUS_OK;
    }
    fail("process %d: %s", process->pid, strncmp(answer, "error ", 6) ? answer : answer + 6);
    return STATUS_BROKEN;
}

int command_ctl(int argc, char **argv)
{
    static char request[CS_CONTROL_REQUEST];
    struct process process;
    int pid = 0;
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) return ctl_usage(), STATUS_OK;
    if (argc < 3) return fail("which process, and what? 'custream help ctl' says more"), STATUS_UNUSABLE;
    if (!pid_read(argv[1], &pid) || !word_ok(argv[2])) return STATUS_UNUSABLE;
    bool policy = !strcmp(argv[2], "policy");
    if (policy && argc != 4) return fail("policy takes one FILE (- is standard input)"), STATUS_UNUSABLE;
    if (!policy && argc != 3) return fail("%s takes nothing more", argv[2]), STATUS_UNUSABLE;
    if (policy ? !policy_add(request, argv[3]) : !strcpy(request, argv[2])) return STATUS_UNUSABLE;
    return process_find(pid, &process) ? ask(&process, request) : STATUS_UNUSABLE;
}
