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

struct ending ending_of(pid_t pid)
{
    char file[64];
    struct ending ending = {.pidfd = (int)syscall(SYS_pidfd_open, pid, 0)};
    snprintf(file, sizeof file, "/proc/%d/stat", (int)pid);
    ending.stat = open(file, O_RDONLY | O_CLOEXEC);
    return ending;
}

void ending_close(struct ending *ending)
{
    if (ending->pidfd >= 0) close(ending->pidfd);
    if (ending->stat >= 0) close(ending->stat);
    *ending = (struct ending){-1, -1};
}

/* Until the parent has asked: the last field. */
static bool status_by_proc(int fd, int *status)
{
    char text[1024];
    const ssize_t n = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : -1;
    text[n > 0 ? n : 0] = 0;
    const char *end = strrchr(text, ')'), *last = strrchr(text, ' ');
    if (!end || strlen(end) < 3 || !strchr("ZX", end[2])) return false;
    *status = atoi(last);
    return true;
}

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
        SIGNAL(SIGHUP), SIGNAL(SIGINT), SIGNAL(SIGQUIT), SIGNAL(SIGILL), SIGNAL(SIGTRAP), SIGNAL(SIGABRT), SIGNAL(SIGBUS), SIGNAL(SIGFPE),
        SIGNAL(SIGKILL), SIGNAL(SIGUSR1), SIGNAL(SIGSEGV), SIGNAL(SIGUSR2), SIGNAL(SIGPIPE), SIGNAL(SIGALRM), SIGNAL(SIGTERM), SIGNAL(SIGXCPU),
        SIGNAL(SIGXFSZ), SIGNAL(SIGVTALRM), SIGNAL(SIGPROF), SIGNAL(SIGIO), SIGNAL(SIGPWR), SIGNAL(SIGSYS),
#undef SIGNAL
    };
    for (size_t i = 0; i < CS_COUNT(names); i++)
        if (names[i].number == number) return names[i].name;
    snprintf(room, size, "signal %d", number);
    return room;
}

const char *ending_name(const struct ending *ending, char *room, size_t size)
{
    int status;
    if (!status_by_proc(ending->stat, &status) && !status_by_pidfd(ending->pidfd, &status)) return "an unknown cause";
    return WIFSIGNALED(status) ? signal_name(WTERMSIG(status), room, size) : "exit_group";
}
