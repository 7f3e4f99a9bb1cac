/*
 * The library's own open, close and the like: the bare system calls. Hidden, so all calls in the library come here, and nobody else's do.
 *
 * A program, or another preload library, may define these functions itself and remember what stands behind each number: network stacks in
 * user space, profilers of files, sanitizers. Our threads have a table of their own (base/apart.h), where the same numbers are other files.
 * A close of our 0 would be taken for one of the program's. None of these functions is a cancellation point.
 *
 * A preload in front of this library is destroyed before it, and what it defines may not be called any more at our end. So all that asks the kernel or has a
 * state is here, and what is no system call alone is the C library's own function. What allocates, makes threads or opens libraries is not here: that must be
 * seen. Functions of memory and text are not here either.
 *
 * So the library's clock is the kernel's, also where a preload fakes the program's (libfaketime). All times of a trace must be of one clock: the GPU's times, the
 * processor's counter, the time stamps of files, the kernel's time limits and the other processes of a run know no other.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/direct.h"
#include "shim/base/realdl.h"

CS_READ_MOSTLY static __typeof__(&syscall) _Atomic next; /* two threads may look at once: each finds the same */

void cs_direct_alone(void) { cs_store(&next, (__typeof__(&syscall))cs_glibc_symbol("syscall")); }

/* The C library's, or that of who stands behind us: a program that defines this name itself may mean something else by it. Reads six words, as that one does,
   however many were given: what stands there instead is passed on, and the kernel does not look at it. */
__attribute__((no_sanitize("address"))) CS_HIDDEN long syscall(long number, ...)
{
    long given[6];
    va_list rest;
    if (!cs_load(&next)) cs_store(&next, (__typeof__(&syscall))cs_symbol_behind("syscall"));
    va_start(rest, number);
    for (size_t i = 0; i < CS_COUNT(given); i++) given[i] = va_arg(rest, long);
    va_end(rest);
    return cs_load(&next)(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

/* --- names --- */

#define MODE_OF(flags, mode)                                                                                                                         \
    mode_t mode = 0;                                                                                                                                 \
    if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) {                                                                                   \
        va_list rest;                                                                                                                                \
        va_start(rest, flags);                                                                                                                       \
        mode = va_arg(rest, mode_t);                                                                                                                 \
        va_end(rest);                                                                                                                                \
    }

CS_HIDDEN int open(const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

CS_HIDDEN int openat(int folder, const char *path, int flags, ...)
{
    MODE_OF(flags, mode)
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

CS_HIDDEN int fstatat(int folder, const char *restrict path, struct stat *restrict to, int flags)
{
    return (int)syscall(SYS_newfstatat, folder, path, to, flags);
}

CS_HIDDEN int stat(const char *restrict path, struct stat *restrict to) { return fstatat(AT_FDCWD, path, to, 0); }
CS_HIDDEN int lstat(const char *restrict path, struct stat *restrict to) { return fstatat(AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW); }
CS_HIDDEN int access(const char *path, int how) { return (int)syscall(SYS_faccessat, AT_FDCWD, path, how); }

CS_HIDDEN ssize_t readlinkat(int folder, const char *restrict path, char *restrict to, size_t n)
{
    return syscall(SYS_readlinkat, folder, path, to, n);
}

CS_HIDDEN ssize_t readlink(const char *restrict path, char *restrict to, size_t n) { return readlinkat(AT_FDCWD, path, to, n); }
CS_HIDDEN int unlinkat(int folder, const char *path, int flags) { return (int)syscall(SYS_unlinkat, folder, path, flags); }
CS_HIDDEN int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
CS_HIDDEN int linkat(int at, const char *from, int there, const char *to, int flags) { return (int)syscall(SYS_linkat, at, from, there, to, flags); }
CS_HIDDEN int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

CS_HIDDEN int renameat2(int at, const char *from, int there, const char *to, unsigned flags)
{
    return (int)syscall(SYS_renameat2, at, from, there, to, flags);
}

CS_HIDDEN int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

/* --- open files --- */

CS_HIDDEN int close(int fd) { return (int)syscall(SYS_close, fd); }
CS_HIDDEN ssize_t read(int fd, void *to, size_t n) { return syscall(SYS_read, fd, to, n); }
CS_HIDDEN ssize_t write(int fd, const void *from, size_t n) { return syscall(SYS_write, fd, from, n); }
CS_HIDDEN ssize_t pread(int fd, void *to, size_t n, off_t at) { return syscall(SYS_pread64, fd, to, n, at); }
CS_HIDDEN ssize_t pwritev(int fd, const struct iovec *pieces, int n, off_t at) { return syscall(SYS_pwritev, fd, pieces, (long)n, at, 0L); }
CS_HIDDEN int ftruncate(int fd, off_t size) { return (int)syscall(SYS_ftruncate, fd, size); }
CS_HIDDEN int fchmod(int fd, mode_t mode) { return (int)syscall(SYS_fchmod, fd, mode); }
CS_HIDDEN int flock(int fd, int how) { return (int)syscall(SYS_flock, fd, how); }
CS_HIDDEN int fstat(int fd, struct stat *to) { return fstatat(fd, "", to, AT_EMPTY_PATH); }
CS_HIDDEN int fstatfs(int fd, struct statfs *to) { return (int)syscall(SYS_fstatfs, fd, to); }

/* Of those with a third word that the library uses, all but one have a number there. */
CS_HIDDEN int fcntl(int fd, int what, ...)
{
    va_list rest;
    va_start(rest, what);
    const long number = what == F_SETLK ? (long)va_arg(rest, struct flock *) : va_arg(rest, int);
    va_end(rest);
    return (int)syscall(SYS_fcntl, fd, what, number);
}

CS_HIDDEN int ioctl(int fd, unsigned long what, ...)
{
    va_list rest;
    va_start(rest, what);
    void *const to = va_arg(rest, void *);
    va_end(rest);
    return (int)syscall(SYS_ioctl, fd, what, to);
}

CS_HIDDEN int poll(struct pollfd *all, nfds_t n, int ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    return (int)syscall(SYS_ppoll, all, n, ms < 0 ? NULL : &time, NULL, (size_t)0);
}

/* --- sockets --- */

CS_HIDDEN int socket(int family, int type, int protocol) { return (int)syscall(SYS_socket, family, type, protocol); }
CS_HIDDEN int bind(int fd, const struct sockaddr *name, socklen_t size) { return (int)syscall(SYS_bind, fd, name, size); }
CS_HIDDEN int connect(int fd, const struct sockaddr *name, socklen_t size) { return (int)syscall(SYS_connect, fd, name, size); }
CS_HIDDEN int listen(int fd, int clients) { return (int)syscall(SYS_listen, fd, clients); }

CS_HIDDEN int accept4(int fd, struct sockaddr *restrict name, socklen_t *restrict size, int flags)
{
    return (int)syscall(SYS_accept4, fd, name, size, flags);
}

CS_HIDDEN int getsockopt(int fd, int level, int name, void *restrict to, socklen_t *restrict size)
{
    return (int)syscall(SYS_getsockopt, fd, level, name, to, size);
}

CS_HIDDEN int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    return (int)syscall(SYS_setsockopt, fd, level, name, value, size);
}

CS_HIDDEN ssize_t recv(int fd, void *to, size_t n, int flags) { return syscall(SYS_recvfrom, fd, to, n, flags, NULL, NULL); }
CS_HIDDEN ssize_t sendmsg(int fd, const struct msghdr *packet, int flags) { return syscall(SYS_sendmsg, fd, packet, flags); }
CS_HIDDEN ssize_t send(int fd, const void *from, size_t n, int flags) { return syscall(SYS_sendto, fd, from, n, flags, NULL, 0); }

CS_HIDDEN int shutdown(int fd, int how) { return (int)syscall(SYS_shutdown, fd, how); }

/* --- memory --- */

CS_HIDDEN void *mmap(void *at, size_t n, int can, int how, int fd, off_t from) { return (void *)syscall(SYS_mmap, at, n, can, how, fd, from); }
CS_HIDDEN int munmap(void *at, size_t n) { return (int)syscall(SYS_munmap, at, n); }
CS_HIDDEN int mprotect(void *at, size_t n, int can) { return (int)syscall(SYS_mprotect, at, n, can); }
CS_HIDDEN int madvise(void *at, size_t n, int how) { return (int)syscall(SYS_madvise, at, n, how); }
CS_HIDDEN int munlock(const void *at, size_t n) { return (int)syscall(SYS_munlock, at, n); }

CS_HIDDEN void *mremap(void *at, size_t n, size_t more, int how, ...)
{
    va_list rest;
    va_start(rest, how);
    void *const to = va_arg(rest, void *);
    va_end(rest);
    return (void *)syscall(SYS_mremap, at, n, more, how, to);
}

/* --- processes and threads --- */

CS_HIDDEN pid_t getpid(void) { return (pid_t)syscall(SYS_getpid); }
CS_HIDDEN uid_t geteuid(void) { return (uid_t)syscall(SYS_geteuid); }
CS_HIDDEN gid_t getegid(void) { return (gid_t)syscall(SYS_getegid); }
CS_HIDDEN int getrlimit(__rlimit_resource_t which, struct rlimit *to) { return (int)syscall(SYS_prlimit64, 0, which, NULL, to); }
CS_HIDDEN int unshare(int what) { return (int)syscall(SYS_unshare, what); }
CS_HIDDEN int nanosleep(const struct timespec *time, struct timespec *left) { return (int)syscall(SYS_nanosleep, time, left); }
CS_HIDDEN int sched_yield(void) { return (int)syscall(SYS_sched_yield); }
CS_HIDDEN int sched_getscheduler(pid_t tid) { return (int)syscall(SYS_sched_getscheduler, tid); }
CS_HIDDEN int sched_setscheduler(pid_t tid, int how, const struct sched_param *to) { return (int)syscall(SYS_sched_setscheduler, tid, how, to); }

CS_HIDDEN int prctl(int what, ...)
{
    va_list rest;
    long given[4];
    va_start(rest, what);
    for (size_t i = 0; i < CS_COUNT(given); i++) given[i] = va_arg(rest, long);
    va_end(rest);
    return (int)syscall(SYS_prctl, what, given[0], given[1], given[2], given[3]);
}

CS_HIDDEN ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n, const struct iovec *from, unsigned long m, unsigned long how)
{
    return syscall(SYS_process_vm_readv, pid, to, n, from, m, how);
}

/* The kernel's set of signals is the first word of the C library's. */
enum { SET = sizeof(long) };
CS_HIDDEN int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict before)
{
    return syscall(SYS_rt_sigprocmask, how, set, before, (size_t)SET) ? errno : 0;
}
CS_HIDDEN int sigpending(sigset_t *to) { return (int)syscall(SYS_rt_sigpending, to, (size_t)SET); }
CS_HIDDEN int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict to, const struct timespec *restrict time)
{
    return (int)syscall(SYS_rt_sigtimedwait, set, to, time, (size_t)SET);
}

/* --- what is no system call alone --- */

#define OWN(result, name, parameters, arguments)                                                               \
    CS_HIDDEN result name parameters                                                                           \
    {                                                                                                          \
        CS_READ_MOSTLY static __typeof__(&name) _Atomic own;                                                   \
        if (CS_UNLIKELY(!cs_load(&own))) cs_store(&own, (__typeof__(&name))cs_glibc_symbol(#name));            \
        return cs_load(&own) arguments;                                                                        \
    }

OWN(int, clock_gettime, (clockid_t which, struct timespec *to), (which, to)) /* without the kernel, where that can be */
OWN(int, pthread_setcancelstate, (int state, int *before), (state, before))
#ifndef __SANITIZE_THREAD__ /* which is to see them */
OWN(int, pthread_mutex_lock, (pthread_mutex_t *mutex), (mutex))
OWN(int, pthread_mutex_unlock, (pthread_mutex_t *mutex), (mutex))
#endif
