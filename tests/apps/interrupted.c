/*
 * interrupted N: a signal arrives in the middle of the process's first call that is recorded, and
 * its handler calls CUDA too. It comes where the shim asks the kernel for memory or for its signals
 * back, or the C library for a key, some of it with its locks held; the Nth time that it does, from
 * 0. libother_preload.so, behind the shim, sees its system calls.
 */
#include "tests/apps/app.h"
#include "tests/apps/step.h"

static int armed, handled, left; /* left: times to go */
static pthread_t first;
static struct step_code shim = {.library = "libcustream_shim"};

static void handler(int unused)
{
    const int saved = errno;
    int version;
    (void)unused;
    handled++;
    CU(cuDriverGetVersion, &version);
    CU(cuCtxSetCurrent, NULL);
    errno = saved;
}

static void interrupt(const void *caller)
{
    if (armed && step_is_in((uintptr_t)caller, &shim) && pthread_equal(pthread_self(), first) &&
        !left--)
        raise(SIGUSR1);
}

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    static int (*behind)(pthread_key_t *, void (*)(void *));
    if (!behind) behind = (__typeof__(behind))dlsym(RTLD_NEXT, "pthread_key_create");
    interrupt(__builtin_return_address(0));
    return behind(key, destructor);
}

static void made(long number, const void *caller)
{
    if (number == SYS_mmap || number == SYS_rt_sigprocmask) interrupt(caller);
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = handler};
    left = argc == 2 ? atoi(argv[1]) : 0;
    sigaction(SIGUSR1, &action, NULL);
    first = pthread_self();
    step_find(&shim);
    void (**other_made)(long, const void *) = dlsym(RTLD_DEFAULT, "other_made");
    if (!other_made) return 3;
    *other_made = made;
    OK(cuInit, 0);
    if (!dlsym(app_driver, "cuCtxSetCurrent"))
        return 2; /* by which the shim meets the driver: a handler finds it still cold */
    armed = 1;
    OK(cuDevicePrimaryCtxRetain, &app_context, 0);
    armed = 0;
    app_start(0);
    LAUNCH(app_kernel("empty_kernel"), NULL);
    OK(cuCtxSynchronize);
    NOTE("handled", "%d", handled);
    return 0;
}
