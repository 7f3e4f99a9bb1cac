/*
 * A library that somebody else preloads in front of the shim: it is destroyed first, and the
 * functions that it stands in front of can't be called any more: when the shim does, the process
 * dies. FRONT_FROZEN=1: CLOCK_MONOTONIC stands still for all who ask it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/apps/step.h"

static struct step_code shim = {.library = "libcustream_shim"};
static volatile int gone;

static void called_by(const void *caller)
{
    if (gone && step_is_in((uintptr_t)caller, &shim)) __builtin_trap();
}

#define FRONT(result, name, parameters, arguments) \
    result name parameters \
    { \
        static __typeof__(&name) real; \
        if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, #name); \
        called_by(__builtin_return_address(0)); \
        return real arguments; \
    }

FRONT(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left))
FRONT(pid_t, getpid, (void), ())
FRONT(uid_t, geteuid, (void), ())
FRONT(int, madvise, (void *at, size_t n, int how), (at, n, how))
FRONT(int, mprotect, (void *at, size_t n, int can), (at, n, can))
FRONT(int, munlock, (const void *at, size_t n), (at, n))
FRONT(int, munmap, (void *at, size_t n), (at, n))
FRONT(void *, mmap, (void *at, size_t n, int can, int how, int fd, off_t from),
    (at, n, can, how, fd, from))
FRONT(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
FRONT(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex))
FRONT(int, pthread_setcancelstate, (int state, int *before), (state, before))
FRONT(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *before), (how, set, before))
FRONT(long, sysconf, (int which), (which))

int clock_gettime(clockid_t which, struct timespec *to)
{
    static __typeof__(&clock_gettime) real;
    static const char *frozen;
    if (!real)
        real = (__typeof__(real))dlsym(RTLD_NEXT, "clock_gettime"), frozen = getenv("FRONT_FROZEN");
    called_by(__builtin_return_address(0));
    if (!frozen || which != CLOCK_MONOTONIC) return real(which, to);
    *to = (struct timespec){.tv_sec = 1000};
    return 0;
}

__attribute__((constructor)) static void begin(void) { step_find(&shim); }
__attribute__((destructor)) static void end(void) { gone = 1; }
