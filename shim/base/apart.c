#define _GNU_SOURCE
#include "shim/base/apart.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/keep.h"
#include "shim/base/log.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
enum { UNSHARE = 1 << 1 }; /* CLOSE_RANGE_UNSHARE */

static void close_all(void)
{
    struct rlimit most;
    DIR *all = opendir("/proc/thread-self/fd");
    for (struct dirent *one; all && (one = readdir(all));)
        if (atoi(one->d_name) != dirfd(all) && *one->d_name != '.') close(atoi(one->d_name));
    if (all) closedir(all);
    else if (!getrlimit(RLIMIT_NOFILE, &most))
        for (rlim_t fd = 0; fd < most.rlim_cur && fd < 1 << 20; fd++) close((int)fd);
}

/* Kernels before 5.9 copy the table first, and then the copies are closed. */
static bool part_with_descriptors(void)
{
    if (!syscall(SYS_close_range, 0, ~0u, UNSHARE)) return true;
    if (unshare(CLONE_FILES)) return false;
    close_all();
    return true;
}

bool cs_apart(void)
{
    if (!part_with_descriptors()) return false;
    CS_KEEP_ERRNO;
    if (unshare(CLONE_FS)) {} /* then a chroot of the program's is ours too, and what is open already stays open */
    cs_log_apart();
    return true;
}

int cs_apart_keep(int fd)
{
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (high >= 0) close(fd);
    return high >= 0 ? high : fd;
}
