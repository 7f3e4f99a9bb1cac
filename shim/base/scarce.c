#define _GNU_SOURCE
#include "shim/base/scarce.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/keep.h"
#include "shim/base/owner.h"

enum { OURS = 5 /* four, and one of CUPTI's */, TIMES = 4, WANTED = TIMES * OURS };

/* Of a small file of the kernel's, up to its end or what has room. False: it can't be read. */
static bool slurp(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* --- RLIMIT_NPROC --- */

/* Threads of a process if it is that user's, by what the kernel counts: the real user. */
static unsigned long threads_of(const char *pid, unsigned user)
{
    char path[300], text[2048];
    unsigned owner = 0;
    snprintf(path, sizeof path, "/proc/%s/status", pid);
    if (!slurp(path, text, sizeof text)) return 0;
    const char *uid = strstr(text, "\nUid:"), *threads = strstr(text, "\nThreads:");
    if (!uid || !threads || sscanf(uid, "\nUid: %u", &owner) != 1 || owner != user) return 0;
    return strtoul(threads + sizeof "\nThreads:" - 1, NULL, 10);
}

static bool user_has_no_more(void)
{
    struct rlimit limit;
    char text[128];
    unsigned long all = 0, own = 0;
    const unsigned user = (unsigned)syscall(SYS_getuid);
    if (getrlimit(RLIMIT_NPROC, &limit) || limit.rlim_cur == RLIM_INFINITY || cs_owner_is_machines_root(user)) return false; /* he has no such limit */
    if (slurp("/proc/loadavg", text, sizeof text) && sscanf(text, "%*s %*s %*s %*u/%lu", &all) == 1 && limit.rlim_cur >= all + WANTED) return false;
    DIR *processes = opendir("/proc");
    for (struct dirent *one; processes && own + WANTED <= limit.rlim_cur && (one = readdir(processes));)
        if (*one->d_name >= '1' && *one->d_name <= '9') own += threads_of(one->d_name, user);
    if (processes) closedir(processes);
    return own + WANTED > limit.rlim_cur;
}

/* --- pids.max --- */

enum { ROOM = 768 }; /* bytes of a group's path: it is asked on the program's thread, whose stack may be small. A longer one counts as without a limit. */

static bool number_in(const char *folder, const char *file, unsigned long *number)
{
    char path[ROOM + 32], text[32];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (!slurp(path, text, sizeof text) || *text < '0' || *text > '9') return false; /* "max" */
    *number = strtoul(text, NULL, 10);
    return true;
}

/* Of a group, or one that it is in: each has its own limit. */
static bool group_has_no_more(const char *root, const char *group)
{
    char folder[ROOM];
    unsigned long most, now;
    if (snprintf(folder, sizeof folder, "%s%s", root, group) >= (int)sizeof folder) return false;
    for (char *slash; strlen(folder) >= strlen(root); *slash = 0) {
        if (number_in(folder, "pids.max", &most) && number_in(folder, "pids.current", &now) && now + WANTED > most) return true;
        slash = strrchr(folder, '/');
    }
    return false;
}

static bool groups_have_no_more(void)
{
    char text[2 * ROOM];
    bool none = false;
    if (!slurp("/proc/self/cgroup", text, sizeof text)) return false;
    for (char *line = text, *end; !none && line && *line; line = end) { /* "0::/group", and of version 1 "7:pids:/group" */
        if ((end = strchr(line, '\n'))) *end++ = 0;
        char *kinds = strchr(line, ':'), *group = kinds ? strchr(kinds + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        if (!kinds[1]) none = group_has_no_more("/sys/fs/cgroup", group);
        else if (strstr(kinds, "pids")) none = group_has_no_more("/sys/fs/cgroup/pids", group);
    }
    return none;
}

bool cs_threads_are_scarce(void)
{
    CS_KEEP_ERRNO;
    return user_has_no_more() || groups_have_no_more();
}
