#define _GNU_SOURCE
#include "shim/base/owner.h"
#include "shim/base/watch.h"

#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "shim/base/apart.h"

enum { PATIENCE_S = 1, WAITS = 7, NAME = 65 }; /* together less than the writer is given at the end (process/end.c) */

static char name[NAME]; /* of the socket; "": no run of custream's */
static int fd = -1;
static char told[CS_WATCH_PACKET];

void cs_watch_read(void)
{
    const char *given = getenv(CS_WATCH_VARIABLE);
    snprintf(name, sizeof name, "%s", given ? given : "");
}

bool cs_watch_is_run(void) { return *name; }

/* For connecting, sending and receiving. */
static bool be_patient(void)
{
    const struct timeval time = {.tv_sec = PATIENCE_S};
    return !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) && !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

/* Abstract names belong to everybody. */
static bool is_our_users(void) { return cs_peer_is_us_or_root(fd, NULL); }

static void hang_up(void)
{
    if (fd >= 0) close(fd);
    fd = -1;
}

/* By read and write, which a filter of system calls allows if it allows anything. Our threads have SIGPIPE blocked. */
static void tell(const char *packet, size_t n)
{
    if (fd >= 0 && write(fd, packet, n) < 0) hang_up();
}
#define TELL(word) tell(cs_tell_##word, sizeof cs_tell_##word - 1)

void cs_watch_hello(bool quiet)
{
    struct sockaddr_un address;
    if (!*name || !strcmp(name, "-")) return;
    *told = 0;
    fd = cs_apart_keep(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (fd < 0) return;
    const socklen_t size = cs_watch_address(&address, name);
    if (!be_patient() || connect(fd, (struct sockaddr *)&address, size) || !is_our_users()) hang_up();
    else if (quiet) TELL(hello_quiet);
    else TELL(hello);
}

void cs_watch_file(const char *path, cs_u64 device, cs_u64 inode)
{
    char packet[CS_WATCH_PACKET];
    const int n = snprintf(packet, sizeof packet, "%s %llu %llu %s", cs_tell_file, (unsigned long long)device, (unsigned long long)inode, path);
    if (fd < 0 || n >= (int)sizeof packet || !strcmp(packet, told)) return;
    strcpy(told, packet);
    tell(packet, (size_t)n);
}

bool cs_watch_listens(void) { return fd >= 0; }

void cs_watch_rings(int memfd)
{
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof memfd)] = {0};
    struct iovec text = {(void *)(uintptr_t)cs_tell_rings, sizeof cs_tell_rings - 1};
    struct msghdr packet = {.msg_iov = &text, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *right = CMSG_FIRSTHDR(&packet);
    if (fd < 0 || memfd < 0) return;
    right->cmsg_level = SOL_SOCKET;
    right->cmsg_type = SCM_RIGHTS;
    right->cmsg_len = CMSG_LEN(sizeof memfd);
    memcpy(CMSG_DATA(right), &memfd, sizeof memfd);
    if (sendmsg(fd, &packet, MSG_NOSIGNAL) < 0) hang_up();
}

void cs_watch_exec(void) { TELL(exec); }
void cs_watch_stays(void) { TELL(stays); }

static bool answered(char *answer, size_t size)
{
    const ssize_t n = fd >= 0 ? read(fd, answer, size - 1) : -1;
    answer[n > 0 ? n : 0] = 0;
    return n > 0;
}

bool cs_watch_end(void)
{
    char answer[16];
    TELL(end);
    bool heard = answered(answer, sizeof answer);
    if (!heard) {
        TELL(spoke);
        heard = answered(answer, sizeof answer);
    }
    for (int i = 0; !strcmp(answer, cs_reply_wait) && i < WAITS; i++)
        if (!answered(answer, sizeof answer)) strcpy(answer, cs_reply_wait); /* it is at it, and will be done */
    if (heard && strcmp(answer, cs_reply_speak)) return true;
    TELL(speaks);
    return false;
}

void cs_watch_after_fork_in_child(void) { fd = -1; }
