/*
 * A library that somebody else preloads, behind the shim: says when it sees execve and _exit, counts memory that is populated ahead ("note populated
 * KIB"; by threads that are not the shim's own, and the most of these at once: "note awaited KIB", "note awaited_at_once KIB"), and with OTHER_SLOW_MAPS makes each mapping without reserve take 20 ms, so that the shim's start can be met half-way. With OTHER_HOLDS_EXIT
 * _exit makes a file of that name and waits until it is gone, so that the shim can be met at its end.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { POPULATE_WRITE = 23 };
static long populated, awaited, at_once;

static void say(const char *text, size_t n)
{
    ssize_t ignored = write(STDERR_FILENO, text, n);
    (void)ignored;
}

int execve(const char *path, char *const argv[], char *const envp[])
{
    static const char text[] = "other preload: execve\n";
    say(text, sizeof text - 1);
    return ((__typeof__(&execve))dlsym(RTLD_NEXT, "execve"))(path, argv, envp);
}

void _exit(int status)
{
    static const char text[] = "other preload: _exit\n";
    const char *held = getenv("OTHER_HOLDS_EXIT");
    say(text, sizeof text - 1);
    if (held) close(open(held, O_WRONLY | O_CREAT, 0600));
    while (held && !access(held, F_OK)) nanosleep(&(struct timespec){0, 1000000}, NULL);
    ((__typeof__(&_exit))dlsym(RTLD_NEXT, "_exit"))(status);
    __builtin_unreachable();
}

int madvise(void *at, size_t bytes, int advice)
{
    char thread[16] = "";
    if (advice == POPULATE_WRITE) {
        __atomic_fetch_add(&populated, (long)bytes, __ATOMIC_RELAXED);
        prctl(PR_GET_NAME, thread);
    }
    if (*thread && strncmp(thread, "custream", 8)) {
        long most = __atomic_load_n(&at_once, __ATOMIC_RELAXED);
        __atomic_fetch_add(&awaited, (long)bytes, __ATOMIC_RELAXED);
        while ((long)bytes > most && !__atomic_compare_exchange_n(&at_once, &most, (long)bytes, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
    }
    return (int)syscall(SYS_madvise, at, bytes, advice);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (flags & MAP_NORESERVE && getenv("OTHER_SLOW_MAPS")) nanosleep(&(struct timespec){0, 20000000}, NULL);
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

__attribute__((destructor)) static void at_end(void)
{
    if (populated) fprintf(stderr, "note populated %ld\nnote awaited %ld\nnote awaited_at_once %ld\n", populated >> 10, awaited >> 10, at_once >> 10);
}
