#define _GNU_SOURCE
#include "shim/base/owner.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/keep.h"

enum { OVERFLOW_UID = 65534 }; /* linux/highuid.h: what the system has unless somebody changed it */

/* The first bytes of a file of /proc as a text; "": it cannot be read. */
static void read_text(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
    text[n > 0 ? n : 0] = 0;
    if (fd >= 0) close(fd);
}

/* The first namespace, or one that is like it. */
static bool all_are_mapped(void)
{
    char text[64], *at = text;
    read_text("/proc/self/uid_map", text, sizeof text);
    return !strtoul(at, &at, 10) && !strtoul(at, &at, 10) && strtoul(at, &at, 10) == 0xffffffff;
}

bool cs_owner_is_machines_root(uid_t uid)
{
    CS_KEEP_ERRNO;
    return !uid && all_are_mapped();
}

bool cs_owner_is_one(uid_t uid)
{
    CS_KEEP_ERRNO;
    char text[64];
    if (all_are_mapped()) return true;
    read_text("/proc/sys/kernel/overflowuid", text, sizeof text);
    return uid != (*text ? (uid_t)strtoul(text, NULL, 10) : OVERFLOW_UID);
}

bool cs_owner_is_us(uid_t uid) { return uid == geteuid() && cs_owner_is_one(uid); }
bool cs_owner_is_us_or_root(uid_t uid) { return !uid || cs_owner_is_us(uid); }
bool cs_owner_serves_us(uid_t uid) { return !geteuid() || cs_owner_is_us(uid); }

/* O_NOATIME may be set by the owner of a file alone, by what the kernel knows of both: whether they are mapped does not matter. open(2). */
static bool kernel_says_ours(int fd)
{
    CS_KEEP_ERRNO;
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || flags & O_NOATIME || fcntl(fd, F_SETFL, flags | O_NOATIME)) return false;
    if (fcntl(fd, F_SETFL, flags)) {} /* it stays set, which changes nothing for us */
    return true;
}

bool cs_file_is_ours(int fd, uid_t uid) { return cs_owner_is_us(uid) || (uid == geteuid() && kernel_says_ours(fd)); }
bool cs_file_serves_us(int fd, uid_t uid) { return cs_owner_serves_us(uid) || cs_file_is_ours(fd, uid); }

bool cs_name_is_ours(int at, const char *name, const struct stat *file)
{
    CS_KEEP_ERRNO;
    struct stat opened;
    if (cs_owner_is_us(file->st_uid) || file->st_uid != geteuid()) return cs_owner_is_us(file->st_uid);
    const int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const bool same = fd >= 0 && !fstat(fd, &opened) && opened.st_dev == file->st_dev && opened.st_ino == file->st_ino;
    const bool ours = same && kernel_says_ours(fd);
    if (fd >= 0) close(fd);
    return ours;
}

/* Only who may look into the process learns its namespace: another user of the machine stays out, and so does root of a namespace around ours. */
static bool is_in_our_namespace(pid_t pid)
{
    CS_KEEP_ERRNO;
    struct stat own, its;
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    return !stat("/proc/self/ns/user", &own) && !stat(path, &its) && own.st_dev == its.st_dev && own.st_ino == its.st_ino;
}

static bool peer_is(int fd, pid_t *pid, bool (*who)(uid_t))
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) return false;
    if (pid) *pid = peer.pid;
    return who(peer.uid) || (peer.uid == geteuid() && is_in_our_namespace(peer.pid));
}

bool cs_peer_is_us_or_root(int fd, pid_t *pid) { return peer_is(fd, pid, cs_owner_is_us_or_root); }
bool cs_peer_serves_us(int fd, pid_t *pid) { return peer_is(fd, pid, cs_owner_serves_us); }
