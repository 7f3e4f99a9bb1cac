#define _GNU_SOURCE
#include "tools/custream/live/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/owner.h"

enum { PATIENCE_MS = 20000, STOPPED_MS = 1000, LOOK_MS = 100, PAUSE_MS = 10 };

/* Says in peer->error why something failed. Is false. */
#define FAIL(peer, ...) \
    ({ \
        snprintf((peer)->error, sizeof (peer)->error, __VA_ARGS__); \
        false; \
    })

/* --- which process --- */

/* Reads the last number of the line "NAME:" of /proc/PID/status. False: there is none. */
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

size_t proc_read(int pid, const char *name, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    FILE *file = fopen(path, "re");
    const size_t n = file ? fread(text, 1, room - 2, file) : 0;
    if (file) fclose(file);
    text[n] = text[n + 1] = 0;
    return n;
}

/* Returns the state in /proc/PID/stat: R, S, T, Z and so on; 0: not known. */
static char state_of(int pid)
{
    char text[512];
    proc_read(pid, "stat", text, sizeof text);
    const char *end = strrchr(text, ')');
    return end && end[1] ? end[2] : 0;
}

bool peer_ended(int pid)
{
    const char state = state_of(pid);
    return !state || state == 'Z' || state == 'X';
}

/* Returns a hash of the process's auxv, which the kernel makes anew at each exec, with the
 * addresses of the new program. */
unsigned long long peer_image(int pid)
{
    char bytes[1024];
    unsigned long long sum = 0xcbf29ce484222325;
    const size_t n = proc_read(pid, "auxv", bytes, sizeof bytes);
    for (size_t i = 0; i < n; i++) sum = (sum ^ (unsigned char)bytes[i]) * 0x100000001b3;
    return n ? sum : 0;
}

bool peer_is_stopped(int pid)
{
    const char state = state_of(pid);
    return state == 'T' || state == 't';
}

static bool namespace_of(int pid, const char *kind, char text[64])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, kind);
    ssize_t n = readlink(path, text, 63);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

bool peer_find(struct peer *peer, int pid)
{
    int group = pid;
    *peer = (struct peer){.pid = pid, .own_pid = pid, .fd = -1};
    if (access("/proc/self/status", R_OK)) return true; /* without /proc nothing more is known */
    if (!status_number(pid, "Tgid", &group)) return FAIL(peer, "no process %d", pid);
    peer->pid = group; /* `pid` may be a thread's number */
    if (!status_number(group, "Uid", &peer->uid))
        peer->uid = -1; /* "Uid" has four numbers; the last is the fsuid */
    if (!status_number(group, "NSpid", &peer->own_pid)) peer->own_pid = group;
    if (!namespace_of(group, "pid", peer->namespace_))
        return errno == EACCES || errno == EPERM ? FAIL(peer, "process %d: not permitted", pid)
                                                 : FAIL(peer, "no process %d", pid);
    /* An abstract socket belongs to a network namespace. */
    char own[64], its[64], path[64];
    if (!namespace_of(getpid(), "net", own) || !namespace_of(group, "net", its) ||
        !strcmp(own, its))
        return true;
    snprintf(path, sizeof path, "/proc/%d/ns/net", group);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool ok = fd >= 0 && !setns(fd, CLONE_NEWNET);
    if (fd >= 0) close(fd);
    return ok || FAIL(peer,
                     "process %d has a network of its own (a container's): run this command in "
                     "there, or as root",
                     group);
}

/* Returns the number of seccomp filters of the main thread. Before Linux 5.9 it returns the seccomp
 * mode, which is 0 without filters. */
static int filters_of(int pid)
{
    int n = 0;
    return status_number(pid, "Seccomp_filters", &n) || status_number(pid, "Seccomp", &n) ? n : 0;
}

/* Compares the process's filters with the filters of this command: in a container, the container's
 * filters apply to both processes. */
bool peer_has_shut_itself_in(int pid)
{
    const char state = state_of(pid);
    return state && state != 'Z' && filters_of(pid) > filters_of(getpid());
}

/* Says in `error` why the process does not listen. Returns false. */
static bool nobody(struct peer *peer)
{
    char path[64], line[PATH_MAX + 128];
    bool preloaded = false;
    if (state_of(peer->pid) == 'Z') return FAIL(peer, "process %d has ended", peer->pid);
    snprintf(path, sizeof path, "/proc/%d/maps", peer->pid);
    FILE *file = fopen(path, "re");
    while (file && !preloaded && fgets(line, sizeof line, file))
        preloaded = strstr(line, "/libcustream_shim");
    if (file) fclose(file);
    if (preloaded)
        return FAIL(peer,
            "process %d does not listen: it has called no CUDA yet, or CUSTREAM_CTL or "
            "CUSTREAM_TRACE=off keeps it from that%s",
            peer->pid,
            peer_has_shut_itself_in(peer->pid) ? ", or a seccomp filter of its own" : "");
    return FAIL(peer, "process %d does not run under custream", peer->pid);
}

/* --- asking --- */

long peer_clock_ms(void)
{
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static long patience_ends(const struct peer *peer, long began)
{
    return peer->until ? peer->until : began + PATIENCE_MS;
}

/* Connects. False with fd -1: the process cannot be asked; with fd: its queue is full for now. */
static bool connect_once(struct peer *peer)
{
    struct sockaddr_un address;
    socklen_t length = cs_control_address(&address, peer->own_pid, peer->namespace_);
    if (peer->fd < 0) peer->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (peer->fd < 0) return FAIL(peer, "%s", strerror(errno));
    if (!connect(peer->fd, (struct sockaddr *)&address, length)) {
        struct ucred its;
        socklen_t size = sizeof its;
        if (getsockopt(peer->fd, SOL_SOCKET, SO_PEERCRED, &its, &size) || its.pid == peer->pid ||
            !its.pid)
            return true;
        FAIL(peer, "process %d does not listen: process %d has taken its place", peer->pid,
            (int)its.pid); /* any process may take the socket's name */
    } else if (errno == EAGAIN) return FAIL(peer, "process %d: too many ask it at once", peer->pid);
    else if (errno == ECONNREFUSED) nobody(peer);
    else if (errno == EACCES || errno == EPERM) FAIL(peer, "process %d: not permitted", peer->pid);
    else FAIL(peer, "process %d: %s", peer->pid, strerror(errno));
    return peer_close(peer), false;
}

static bool request_send(struct peer *peer, const char *request)
{
    if (send(peer->fd, request, strlen(request), MSG_NOSIGNAL) >= 0 || errno == EPIPE ||
        errno == ECONNRESET)
        return true;
    FAIL(peer, "process %d: %s", peer->pid, strerror(errno));
    return peer_close(peer), false;
}

void peers_ask(struct peer *const *each, size_t count, const char *request)
{
    const long began = peer_clock_ms();
    bool *done = array_zeros(count, sizeof *done);
    for (size_t left = count; left;) {
        left = 0;
        for (size_t i = 0; i < count; i++) {
            if (done[i]) continue;
            const bool connected = connect_once(each[i]);
            done[i] =
                connected || each[i]->fd < 0 || peer_clock_ms() > patience_ends(each[i], began);
            if (connected) request_send(each[i], request);
            else if (done[i]) peer_close(each[i]);
            left += !done[i];
        }
        if (left) nanosleep(&(struct timespec){0, PAUSE_MS * 1000000}, NULL);
    }
    free(done);
}

bool peer_ask(struct peer *peer, const char *request)
{
    if (peer->fd >= 0) return request_send(peer, request);
    peers_ask(&peer, 1, request);
    return peer->fd >= 0;
}

bool peer_hear(struct peer *peer, char answer[CS_CONTROL_ANSWER])
{
    struct pollfd one = {.fd = peer->fd, .events = POLLIN};
    const long began = peer_clock_ms(), until = patience_ends(peer, began);
    for (;;) {
        const long left = until - peer_clock_ms();
        const int wait = left < 0 ? 0 : left < LOOK_MS ? (int)left : LOOK_MS;
        if (poll(&one, 1, wait) > 0) break;
        const long now = peer_clock_ms();
        if ((now >= until || now - began > STOPPED_MS) && peer_is_stopped(peer->pid))
            return FAIL(peer, "process %d is stopped; nothing was done", peer->pid);
        if (now >= until) return FAIL(peer, "process %d does not answer", peer->pid);
    }
    ssize_t n = recv(peer->fd, answer, CS_CONTROL_ANSWER - 1, 0);
    if (n <= 0)
        return peer_has_shut_itself_in(peer->pid)
                   ? nobody(peer)
                   : FAIL(peer, "process %d ended before it answered", peer->pid);
    answer[n] = 0;
    answer[strcspn(answer, "\n")] = 0;
    return true;
}

void peer_close(struct peer *peer)
{
    if (peer->fd >= 0) close(peer->fd);
    peer->fd = -1;
}

/* --- what a process says of itself --- */

/* Returns the value of a field; "": the process does not send it, as its custream is older. */
static const char *field(const struct about *about, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = about->line; *at; at += strlen(at) + 1)
        if (!strncmp(at, name, n) && at[n] == '=') return at + n + 1;
    return "";
}

const char *answer_behind(const char *answer, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(answer, word, n) || !strchr(" \t", answer[n])) return NULL;
    return answer + n + !!answer[n];
}

/* Reads an answer to the request "about", "record" or "end". False: it is no such answer. */
static bool about_read(struct about *about, const char *answer)
{
    const size_t length = strlen(answer);
    const char *fields = answer_behind(answer, cs_answer_ok);
    if (!fields || fields[-1] != '\t' || length + 2 > sizeof about->line) return false;
    memcpy(about->line, answer, length + 1);
    about->line[length + 1] = 0; /* an empty text ends the fields */
    for (char *tab = about->line; (tab = strchr(tab, '\t'));) *tab++ = 0;
#define INT(name) about->name = atoi(field(about, #name));
#define NUMBER(name) about->name = strtoull(field(about, #name), NULL, 10);
#define TEXT(name) about->name = field(about, #name);
#include "shim/base/control.def"
    return true;
}

bool peer_hear_about(struct peer *peer, struct about *about)
{
    static char answer[CS_CONTROL_ANSWER];
    if (!peer_hear(peer, answer)) return false;
    if (about_read(about, answer)) return true;
    if (strstr(answer, cs_answer_unknown))
        return FAIL(peer, "process %d runs under another version of custream than this one, %s",
            peer->pid, CUSTREAM_VERSION_STRING);
    return FAIL(
        peer, "process %d: %.400s", peer->pid, answer_behind(answer, cs_answer_error) ?: answer);
}

/* --- all processes that listen --- */

/* Connects to a name. Returns whether the process that listens there serves this user, and has the
 * number and the pid namespace in the name; if so, `peer` becomes that process. */
static bool is_listener(struct peer *peer, const char *name)
{
    struct peer real;
    pid_t pid;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path + 1, name, strlen(name));
    const socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    if (connect(peer->fd, (struct sockaddr *)&address, length)) return false;
    if (!cs_peer_serves_us(peer->fd, &pid) || pid <= 0)
        return false; /* pid 0: the process is in a pid namespace that this command does not see */
    if (!peer_find(&real, (int)pid) ||
        cs_control_address(&address, real.own_pid, real.namespace_) != length ||
        strcmp(address.sun_path + 1, name))
        return false;
    const int fd = peer->fd;
    *peer = real;
    peer->fd = fd;
    return true;
}

size_t peers_each(void (*found)(void *of, struct peer *peer), void *of)
{
    /* LISTENING: the flag SO_ACCEPTCON in a row of the file; SPARE: descriptors that stay free,
     * for /proc and for traces */
    enum { LISTENING = 0x10000, SPARE = 16 };
    FILE *file = fopen("/proc/net/unix", "re");
    char *line = NULL;
    size_t room = 0, left_out = 0;
    while (file && getline(&line, &room, file) > 0) {
        unsigned flags = 0;
        int at = 0;
        if (sscanf(line, "%*s %*s %*s %x %*s %*s %*s @%n", &flags, &at) != 1 || !at ||
            !(flags & LISTENING))
            continue;
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line + at, "custream/", 9)) continue;
        struct peer peer = {
            .fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
        struct rlimit most;
        if (!getrlimit(RLIMIT_NOFILE, &most) &&
            (peer.fd < 0 || (rlim_t)peer.fd + SPARE >= most.rlim_cur)) {
            most.rlim_cur = most.rlim_max;
            setrlimit(RLIMIT_NOFILE, &most);
        }
        const bool room = peer.fd >= 0 && (getrlimit(RLIMIT_NOFILE, &most) ||
                                              (rlim_t)peer.fd + SPARE < most.rlim_cur);
        left_out += !room;
        if (room && strlen(line + at) < sizeof((struct sockaddr_un *)NULL)->sun_path &&
            is_listener(&peer, line + at))
            found(of, &peer);
        else peer_close(&peer);
    }
    free(line);
    if (file) fclose(file);
    return left_out;
}
