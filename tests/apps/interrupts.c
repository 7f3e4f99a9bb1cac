/* Preloaded: sends the process a signal as soon as its N-th new file is there
 * (INTERRUPTS=N:SIGNAL), before anybody has noted the file's name. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long made(long fd, int flags)
{
    static int left = -1, number;
    const char *given = getenv("INTERRUPTS");
    if (left < 0 && (!given || sscanf(given, "%d:%d", &left, &number) != 2)) left = 0;
    if (fd >= 0 && flags & O_CREAT && flags & O_EXCL && left && !--left) kill(getpid(), number);
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return (int)made(((__typeof__(&open))dlsym(RTLD_NEXT, "open"))(path, flags, mode), flags);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return (int)made(
        ((__typeof__(&openat))dlsym(RTLD_NEXT, "openat"))(folder, path, flags, mode), flags);
}
