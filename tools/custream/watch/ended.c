#define _GNU_SOURCE
#include "tools/custream/watch/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/base/compiler.h"

/* Of linux/pidfd.h, which is too old where this is built. */
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

/* The socket's own pidfd (Linux 6.5) is of no later process, and from 6.16 on also of a dead one.
 */
struct ending ending_of(int socket, pid_t pid)
{
    char file[64];
    struct ending ending = {.pidfd = -1};
    if (getsockopt(
            socket, SOL_SOCKET, SO_PEERPIDFD, &ending.pidfd, &(socklen_t){sizeof ending.pidfd}))
        ending.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    snprintf(file, sizeof file, "/proc/%d/stat", (int)pid);
    ending.stat = open(file, O_RDONLY | O_CLOEXEC);
    return ending;
}

void ending_close(struct ending *ending)
{
    if (ending->pidfd >= 0) close(ending->pidfd);
    if (ending->stat >= 0) close(ending->stat);
    *ending = (struct ending){.pidfd = -1, .stat = -1};
}

/* The last field, until the parent asks; 0 while threads still end, something else if stopped. */
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

void ending_begins(struct ending *ending) { look(ending, false); }

/* And from then on. */
static bool status_by_pidfd(int fd, int *status)
{
    struct pidfd_info_64 info = {.mask = INFO_EXIT};
    if (ioctl(fd, GET_INFO, &info) || !(info.mask & INFO_EXIT)) return false;
    *status = info.exit_code;
    return true;
}

static const char *signal_name(int number, char *room, size_t size)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
#define SIGNAL(name) {name, #name}
        SIGNAL(SIGHUP),
        SIGNAL(SIGINT),
        SIGNAL(SIGQUIT),
        SIGNAL(SIGILL),
        SIGNAL(SIGTRAP),
        SIGNAL(SIGABRT),
        SIGNAL(SIGBUS),
        SIGNAL(SIGFPE),
        SIGNAL(SIGKILL),
        SIGNAL(SIGUSR1),
        SIGNAL(SIGSEGV),
        SIGNAL(SIGUSR2),
        SIGNAL(SIGPIPE),
        SIGNAL(SIGALRM),
        SIGNAL(SIGTERM),
        SIGNAL(SIGXCPU),
        SIGNAL(SIGXFSZ),
        SIGNAL(SIGVTALRM),
        SIGNAL(SIGPROF),
        SIGNAL(SIGIO),
        SIGNAL(SIGPWR),
        SIGNAL(SIGSYS),
#undef SIGNAL
    };
    for (size_t i = 0; i < CS_COUNT(names); i++)
        if (names[i].number == number) return names[i].name;
    snprintf(room, size, "signal %d", number);
    return room;
}

const char *ending_name(struct ending *ending, char *room, size_t size)
{
    look(ending, true);
    if (!status_by_pidfd(ending->pidfd, &ending->status) && !ending->known)
        return "an unknown cause";
    return WIFSIGNALED(ending->status) ? signal_name(WTERMSIG(ending->status), room, size)
                                       : "exit_group";
}
