/* Makes the watcher so that the program does not notice. */
#define _GNU_SOURCE
#include "tools/custream/watch/inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/base/watch.h"

enum { WAITING_MOST = 1024 };

static int leash = -1; /* run's end of the pipe; a successful exec closes it */

/* --- in the watcher --- */

/* Closes all descriptors above stderr but those in `kept`. */
static void close_others(const int *kept, size_t count)
{
    DIR *all = opendir("/proc/self/fd");
    const int most = all ? 0 : (int)sysconf(_SC_OPEN_MAX);
    struct dirent *one = NULL;
    for (int next = STDERR_FILENO + 1;
        all ? (one = readdir(all)) != NULL : next < most && next < 1 << 16; next++) {
        const int fd = one ? atoi(one->d_name) : next;
        bool keep = fd <= STDERR_FILENO || (all && fd == dirfd(all));
        for (size_t i = 0; i < count; i++) keep |= fd == kept[i];
        if (!keep) close(fd);
    }
    if (all) closedir(all);
}

/* Of the program's descriptors the watcher keeps only stderr. The watcher takes no signals, and
 * ends by itself when the program has ended. */
static void let_go_of_the_program(const struct watched *watched)
{
    sigset_t all;
    struct rlimit files;
    const int kept[] = {watched->listener, watched->root, watched->leash},
              nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    setsid();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_DFL);
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
        if (fcntl(STDERR_FILENO, F_GETFD) < 0) dup2(nothing, STDERR_FILENO);
    }
    close_others(kept, CS_COUNT(kept));
    if (!getrlimit(RLIMIT_NOFILE, &files))
        files.rlim_cur = files.rlim_max,
        setrlimit(RLIMIT_NOFILE, &files); /* each process takes WATCH_OF_ONE descriptors */
    prctl(PR_SET_NAME, "custream-watch");
    if (chdir("/")) {} /* on failure the folder stays in use */
}

/* --- in run --- */

/* Moves the descriptor above 2, so that it never stands for a standard descriptor that was
 * closed. */
static int above(int fd)
{
    const int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd >= 0) close(fd);
    return high;
}

static int listen_at(const char *name)
{
    struct sockaddr_un address;
    const socklen_t size = cs_watch_address(&address, name);
    const int fd = above(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd >= 0 && !bind(fd, (struct sockaddr *)&address, size) && !listen(fd, WAITING_MOST))
        return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* Runs in the first child. Makes the watcher, says so through `gate`, and ends when an answer has
 * come. */
_Noreturn static void make_watcher(struct watched *watched, int gate)
{
    char word = 'w';
    const pid_t watcher = fork();
    if (!watcher) {
        let_go_of_the_program(watched);
        watch_run(watched);
    }
    if (watcher > 0 && write(gate, &word, 1) == 1 && read(gate, &word, 1)) {}
    _exit(0);
}

/* Makes the watcher as a grandchild. Once this process answers, the child ends, and the watcher
 * goes to the process that adopts orphans. If this process itself adopts orphans (a subreaper), it
 * stops adopting meanwhile. The child's end sends no signal: SIGCHLD is ignored, or the child was
 * made without a signal.
 *
 * SIGCHLD is ignored if this process has no other children: then the child's times are not added to
 * those of waited-for children. */
static bool fork_twice(struct watched *watched)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    int adopts = 0, gate[2];
    char word;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate)) return false;
    for (int i = 0; i < 2; i++) gate[i] = above(gate[i]);
    /* WNOWAIT: children from before the exec are left to the program, which may wait for them */
    const bool alone =
        waitid(P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT | __WALL) && errno == ECHILD;
    prctl(PR_GET_CHILD_SUBREAPER, &adopts);
    if (alone) sigaction(SIGCHLD, &ignore, &before);
    const pid_t child = (pid_t)syscall(SYS_clone, alone ? SIGCHLD : 0, NULL, NULL, NULL, NULL);
    if (!child) {
        close(gate[0]);
        make_watcher(watched, gate[1]);
    }
    close(gate[1]);
    const bool made = child > 0 && read(gate[0], &word, 1) == 1;
    if (adopts) prctl(PR_SET_CHILD_SUBREAPER, 0);
    if (made && write(gate[0], &word, 1) < 0) {}
    while (child > 0 && waitpid(child, NULL, __WALL) < 0 && errno == EINTR) {}
    if (adopts) prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (alone) sigaction(SIGCHLD, &before, NULL);
    close(gate[0]);
    return made;
}

static bool make(struct watched *watched, const char *name)
{
    int ends[2] = {-1, -1};
    watched->root_pid = getpid();
    watched->root = above((int)syscall(SYS_pidfd_open, watched->root_pid, 0));
    watched->listener = watched->root >= 0 ? listen_at(name) : -1;
    if (watched->listener >= 0 && !pipe2(ends, O_CLOEXEC))
        watched->leash = above(ends[0]), leash = above(ends[1]);
    const bool made = leash >= 0 && watched->leash >= 0 && fork_twice(watched);
    if (watched->root >= 0) close(watched->root);
    if (watched->listener >= 0) close(watched->listener);
    if (watched->leash >= 0) close(watched->leash);
    return made;
}

/* Whether a watcher listens already: one `custream run` inside another is the same run. */
static bool is_watched(void)
{
    struct sockaddr_un address;
    const char *name = getenv(CS_WATCH_VARIABLE);
    if (!name || !*name || !strcmp(name, "-")) return false;
    const socklen_t size = cs_watch_address(&address, name);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool there = fd >= 0 && !connect(fd, (struct sockaddr *)&address, size);
    if (fd >= 0) close(fd);
    return there;
}

/* Process 1 of a pid namespace adopts orphans, so a watcher would become its child: process 1 gets
 * no watcher. */
bool watch_start(const struct watch_plan *plan)
{
    char name[64];
    unsigned long long random = 0;
    if (!plan->report && is_watched()) return true;
    struct watched watched = {
        .plan = *plan, .listener = -1, .root = -1, .leash = -1, .folder = getcwd(NULL, 0)};
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
        random = (unsigned long long)(uintptr_t)&name;
    snprintf(name, sizeof name, "%d-%llx", (int)getpid(), random);
    /* With fewer descriptors the watcher could not read a process's file. */
    struct rlimit files;
    const bool enough =
        getrlimit(RLIMIT_NOFILE, &files) || files.rlim_max >= WATCH_KEPT_FREE + WATCH_OF_ONE;
    const bool made = !plan->off && getpid() != 1 && enough && make(&watched, name);
    free(watched.folder);
    return !setenv(CS_WATCH_VARIABLE, made ? name : "-", 1) && made;
}

void watch_cancel(void)
{
    if (leash >= 0 && write(leash, "x", 1) < 0) {}
}
