/* Runs the watcher, which hears of traces and says what has become of them. */
#define _GNU_SOURCE
#include "tools/custream/watch/inside.h"
#include "shim/base/owner.h"
#include "shim/base/watch.h"
#include "tools/custream/verdict.h"
#include "shim/base/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { EXEC_S = 3 };

/* --- how a process ended --- */

/* The pidfd and the open /proc/PID/stat of a process; -1: not open. `status`: the status as
 * waitpid() gives it, if `known`. */
struct ending {
    int pidfd, stat, status;
    bool known;
};

/* A copy from linux/pidfd.h: that header may be too old on the machine that builds this. */
struct pidfd_info_64 {
    uint64_t mask, cgroup;
    uint32_t pid, tgid, ppid, ids[8];
    int32_t exit_code;
};
#define GET_INFO  _IOWR(0xFF, 11, struct pidfd_info_64)
#define INFO_EXIT 8u
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Reads the exit status from /proc/PID/stat, whose last field has it until the parent waits. The
 * field is 0 while threads still end, and means something else in a stopped process. */
static void look(struct ending *ending, bool over)
{
    char text[1024];
    const ssize_t n = ending->stat >= 0 ? pread(ending->stat, text, sizeof text - 1, 0) : -1;
    text[n > 0 ? n : 0] = 0;
    const char *end = strrchr(text, ')'), *last = strrchr(text, ' ');
    if (!end || strlen(end) < 3 ||
        (over ? !strchr("ZX", end[2]) : strchr("Tt", end[2]) || !atoi(last)))
        return;
    ending->status = atoi(last);
    ending->known = true;
}

static const char *signal_name(int number, char *room, size_t size)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
#define SIGNAL(name) {name, #name}
        SIGNAL(SIGHUP), SIGNAL(SIGINT), SIGNAL(SIGQUIT), SIGNAL(SIGILL), SIGNAL(SIGTRAP),
        SIGNAL(SIGABRT), SIGNAL(SIGBUS), SIGNAL(SIGFPE), SIGNAL(SIGKILL), SIGNAL(SIGUSR1),
        SIGNAL(SIGSEGV), SIGNAL(SIGUSR2), SIGNAL(SIGPIPE), SIGNAL(SIGALRM), SIGNAL(SIGTERM),
        SIGNAL(SIGXCPU), SIGNAL(SIGXFSZ), SIGNAL(SIGVTALRM), SIGNAL(SIGPROF), SIGNAL(SIGIO),
        SIGNAL(SIGPWR), SIGNAL(SIGSYS)
#undef SIGNAL
    };
    for (size_t i = 0; i < CS_COUNT(names); i++)
        if (names[i].number == number) return names[i].name;
    snprintf(room, size, "signal %d", number);
    return room;
}

/* Returns what ended a process, once its pidfd is readable: a signal's name; "exit_group" for an
 * exit that the library did not see; or "an unknown cause", as before Linux 6.16 only the parent
 * surely gets the status. */
static const char *ending_name(struct ending *ending, char *room, size_t size)
{
    struct pidfd_info_64 info = {.mask = INFO_EXIT};
    look(ending, true);
    if (!ioctl(ending->pidfd, GET_INFO, &info) && info.mask & INFO_EXIT)
        ending->status = info.exit_code, ending->known = true;
    if (!ending->known) return "an unknown cause";
    return WIFSIGNALED(ending->status) ? signal_name(WTERMSIG(ending->status), room, size)
                                       : "exit_group";
}

/* --- processes --- */

/* A process that uses CUDA: from its connection to its end. */
struct process {
    struct process *next;
    int fd; /* -1: the process has hung up */
    pid_t pid;
    struct ending ending;
    bool quiet, ended; /* ended: the library has finished the file */
    /* the trace of which the watcher will tell unless the process does; path NULL: none */
    struct told_trace unsaid;
    time_t execs; /* when the process was about to become another program; 0: it was not */
    char *path;   /* NULL: no file so far */
    struct file_id id;
    int folder; /* the file's folder, if the path leads the watcher to another one; else -1 */
    int rings;  /* the memfd of the process's rings; -1: there is none */
};

static struct watch {
    struct watched *watched;
    struct process *processes;
    size_t count, most; /* count: processes now; most: how many the descriptors allow */
    struct told told;
    int asks;      /* the socket of the program while it waits for the report; else -1 */
    int reporting; /* the pidfd of the process that makes the report; -1: no process makes one */
    pid_t reporter;
    bool met; /* some process used CUDA */
    bool root_gone;
} watch = {.asks = -1, .reporting = -1};

/* Returns the time in seconds, never 0. */
static time_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1;
}

static void unsaid_free(struct process *process)
{
    free((char *)(uintptr_t)process->unsaid.path);
    cJSON_Delete(process->unsaid.trailer);
    process->unsaid = (struct told_trace){0};
}

static void process_free(struct process *process)
{
    watch.count--;
    const int fds[] = {
        process->fd, process->ending.pidfd, process->ending.stat, process->folder, process->rings};
    for (size_t i = 0; i < CS_COUNT(fds); i++)
        if (fds[i] >= 0) close(fds[i]);
    unsaid_free(process);
    free(process->path);
    free(process);
}

/* Accepts one connection. False: there is none, or no further process can be watched. The
 * connection of a further process waits until a watched process has gone. */
static bool take_in(int listener)
{
    if (watch.count >= watch.most) return false;
    pid_t pid = 0;
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct process *process = fd >= 0 ? calloc(1, sizeof *process) : NULL;
    const bool ours = process && cs_peer_is_us_or_root(fd, &pid);
    if (!ours) {
        if (fd >= 0 && pid) watch.told.stranger = pid;
        if (fd >= 0) close(fd);
        free(process);
        return fd >= 0;
    }
    *process =
        (struct process){.fd = fd, .pid = pid, .folder = -1, .rings = -1, .ending = {.pidfd = -1}};
    /* The pidfd of the socket (Linux 6.5) never means a later process with the same number. From
     * Linux 6.16 on, the socket of a dead process has a pidfd too. */
    struct ending *ending = &process->ending;
    char file[64];
    if (getsockopt(
            fd, SOL_SOCKET, SO_PEERPIDFD, &ending->pidfd, &(socklen_t){sizeof ending->pidfd}))
        ending->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    snprintf(file, sizeof file, "/proc/%d/stat", (int)pid);
    ending->stat = open(file, O_RDONLY | O_CLOEXEC);
    /* The oldest process is heard first: it may have become the program that connects now. */
    struct process **last = &watch.processes;
    while (*last) last = &(*last)->next;
    *last = process;
    watch.count++;
    return true;
}

static void unsaid_tell(struct process *process)
{
    if (process->unsaid.path) tell_trace(&watch.told, &process->unsaid);
    unsaid_free(process);
}

/* Finishes the trace of a process that has ended, or has executed another program. `by`: what ended
 * the process before its file was complete; NULL: the file was complete. `speaks`: the process
 * tells of the trace itself. */
static void process_over(struct process *process, const char *by, bool speaks)
{
    if (process->path) {
        char within[PATH_MAX + 64];
        const bool apart = process->folder >= 0;
        snprintf(within, sizeof within, "/proc/self/fd/%d%s", process->folder,
            strrchr(process->path, '/'));
        const char *path = apart ? within : process->path;
        const bool there = finish_is_there(path, process->id);
        cJSON *trailer = finish_file(path, process->id, by, process->rings);
        process->unsaid = (struct told_trace){
            process->path, trailer, by, process->quiet, apart, there || trailer};
        process->path = NULL;
        if (!speaks) unsaid_tell(process);
    }
}

/* --- the report --- */

static void report_over(void)
{
    waitpid(watch.reporter, NULL, 0);
    close(watch.reporting);
    watch.reporting = -1;
    if (watch.asks >= 0 && write(watch.asks, cs_reply_done, sizeof cs_reply_done - 1) < 0) {}
    if (watch.asks >= 0) close(watch.asks);
    watch.asks = -1;
}

/* Begins the report, only once. Returns whether a report is being made. */
static bool report_begins(void)
{
    if (!watch.watched->plan.report || watch.reporting >= 0) return watch.reporting >= 0;
    watch.watched->plan.report = false;
    if (watch.told.file_count) watch.reporter = fork();
    if (watch.told.file_count && !watch.reporter) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        if (chdir(watch.watched->folder ? watch.watched->folder : "/")) {}
        tell_report(&watch.told);
        _exit(0);
    }
    if (watch.reporter > 0) watch.reporting = (int)syscall(SYS_pidfd_open, watch.reporter, 0);
    return watch.reporting >= 0;
}

/* --- what a process says --- */

static void answer(const struct process *process, const char *word)
{
    if (write(process->fd, word, strlen(word)) < 0) {} /* the process has ended meanwhile */
}

/* Handles the word that the process has finished its file. Sends `wait` first, and then looks for
 * `spoke` (base/watch.h). */
static void process_ends(struct process *process)
{
    char next[sizeof cs_tell_spoke];
    process->ended = true;
    if (!watch.root_gone) answer(process, cs_reply_wait);
    const bool speaks = watch.root_gone || (recv(process->fd, next, sizeof next,
                                                MSG_PEEK | MSG_DONTWAIT) == sizeof next - 1 &&
                                               !memcmp(next, cs_tell_spoke, sizeof next - 1));
    process_over(process, NULL, speaks);
    if (speaks) answer(process, cs_reply_speak);
    else if (process->pid == watch.watched->root_pid && report_begins())
        watch.asks = fcntl(process->fd, F_DUPFD_CLOEXEC, 3);
    else answer(process, cs_reply_done);
}

/* Opens the file's folder if the path leads the watcher to another folder, because the process has
 * mounts or a root of its own. An open folder stays reachable when the process has ended. Returns
 * -1 if process and watcher get to the same folder, or if the folder cannot be opened. */
static int folder_apart(const struct process *process)
{
    char path[PATH_MAX + 64];
    struct stat its, ours;
    const int n = (int)(strrchr(process->path, '/') - process->path) + 1,
              root = snprintf(path, sizeof path, "/proc/%d/root", (int)process->pid);
    snprintf(path + root, sizeof path - (size_t)root, "%.*s", n, process->path);
    const int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return -1; /* the process has ended, or may not be looked into */
    if (!fstat(folder, &its) &&
        (stat(path + root, &ours) || its.st_dev != ours.st_dev || its.st_ino != ours.st_ino))
        return folder;
    close(folder);
    return -1;
}

static void hear(struct process *process, const char *packet)
{
    const bool quiet = !strcmp(packet, cs_tell_hello_quiet);
    if (quiet || !strcmp(packet, cs_tell_hello)) watch.met = true, process->quiet = quiet;
    else if (!strncmp(packet, cs_tell_file, sizeof cs_tell_file - 1)) {
        const char *text = packet + sizeof cs_tell_file - 1;
        struct file_id id;
        int n = 0;
        if (sscanf(text, "%llu %llu %n", &id.device, &id.inode, &n) < 2 || text[n] != '/') return;
        free(process->path);
        process->path = strdup(text + n);
        process->id = id;
        if (process->folder >= 0) close(process->folder);
        process->folder = process->path ? folder_apart(process) : -1;
    } else if (!strcmp(packet, cs_tell_exec)) process->execs = now();
    else if (!strcmp(packet, cs_tell_stays)) process->execs = 0;
    else if (!strcmp(packet, cs_tell_end)) process_ends(process);
    else if (!strcmp(packet, cs_tell_speaks)) process->unsaid.quiet = true, unsaid_tell(process);
}

/* Receives one packet, and the memfd that may come with it. */
static ssize_t receive(struct process *process, char *packet, size_t size)
{
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
    struct iovec text = {packet, size};
    struct msghdr message = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    const ssize_t n = recvmsg(process->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *right = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    int came;
    if (!right || right->cmsg_level != SOL_SOCKET || right->cmsg_type != SCM_RIGHTS ||
        right->cmsg_len != CMSG_LEN(sizeof came))
        return n;
    memcpy(&came, CMSG_DATA(right), sizeof came);
    if (process->rings >= 0) close(process->rings);
    process->rings = came;
    return n;
}

/* Reads all packets that have come from a process. */
static void listen_to(struct process *process)
{
    static char packet[CS_WATCH_PACKET + 1];
    ssize_t n;
    while (process->fd >= 0 && (n = receive(process, packet, sizeof packet - 1))) {
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n < 0) break;
        packet[n] = 0;
        hear(process, packet);
    }
    if (process->fd >= 0) { /* the process's parent may not have waited yet: then the exit status
                               can still be read */
        look(&process->ending, false);
        close(process->fd);
    }
    process->fd = -1;
    unsaid_tell(process);
    if (process->execs && !process->ended && now() - process->execs < EXEC_S)
        process_over(process, "exec", false);
}

/* --- the loop --- */

static bool is_ready(int fd)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) > 0;
}

/* Removes processes that have ended. A process without a pidfd counts as ended when it hangs up. */
static void sweep(void)
{
    char name[32];
    for (struct process **at = &watch.processes, *process; (process = *at);) {
        const bool over =
            process->ending.pidfd >= 0 ? is_ready(process->ending.pidfd) : process->fd < 0;
        if (over) {
            listen_to(process);
            if (!process->ended)
                process_over(process, ending_name(&process->ending, name, sizeof name), false);
            *at = process->next;
            process_free(process);
        } else {
            at = &process->next;
        }
    }
}

/* Handles all that has come, without waiting. */
static void catch_up(void)
{
    while (is_ready(watch.watched->listener) && take_in(watch.watched->listener)) {}
    for (struct process *process = watch.processes; process; process = process->next)
        if (process->fd >= 0) listen_to(process);
    sweep();
}

static void wait_for_news(void)
{
    static struct pollfd *all;
    static size_t capacity;
    size_t n = 0;
    const int first[] = {watch.count < watch.most ? watch.watched->listener : -1,
        watch.root_gone ? -1 : watch.watched->root, watch.reporting};
    for (size_t i = 0; i < CS_COUNT(first); i++) {
        array_add(all, n, capacity, (struct pollfd){.fd = first[i], .events = POLLIN});
    }
    for (struct process *process = watch.processes; process; process = process->next) {
        array_add(all, n, capacity, (struct pollfd){.fd = process->fd, .events = POLLIN});
        array_add(all, n, capacity, (struct pollfd){.fd = process->ending.pidfd, .events = POLLIN});
    }
    poll(all, n, -1);
}

/* Says the closing lines, as the program has ended. Files of processes that live on are finished
 * later, without a word. */
static void root_ends(void)
{
    const struct watch_plan *plan = &watch.watched->plan;
    watch.root_gone = true;
    watch.met |= is_ready(watch.watched->listener); /* true: a process waits to be taken in */
    tell_end(&watch.told, watch.met, plan);
    if (report_begins()) {
        poll(&(struct pollfd){.fd = watch.reporting, .events = POLLIN}, 1, -1);
        report_over();
    }
    dup2(STDOUT_FILENO, STDERR_FILENO);
}

_Noreturn void watch_run(struct watched *watched)
{
    char word;
    struct rlimit files;
    watch.watched = watched;
    watch.most =
        !getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur > WATCH_KEPT_FREE + WATCH_OF_ONE
            ? (files.rlim_cur - WATCH_KEPT_FREE) / WATCH_OF_ONE
            : 1;
    watch.told = (struct told){
        .folder = watched->folder ? watched->folder : "", .quiet = watched->plan.quiet};
    signal(SIGPIPE, SIG_IGN);
    /* read() returns 0 if exec has worked. All signals are blocked, so none ends the read. */
    const bool started = !read(watched->leash, &word, 1);
    close(watched->leash);
    while (started && (!watch.root_gone || watch.processes)) {
        wait_for_news();
        catch_up();
        if (watch.reporting >= 0 && is_ready(watch.reporting)) report_over();
        if (watch.root_gone || !is_ready(watched->root)) continue;
        catch_up(); /* reads what the program said before it ended */
        root_ends();
    }
    _exit(0);
}
