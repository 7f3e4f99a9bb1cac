/*
 * The C library's functions that moved into libc.so.6 with glibc 2.32 and 2.34, as this library calls them.
 *
 * Their versions of that time would keep the library from loading with an older glibc. There they are in libpthread and libdl. Naming these as needed would
 * put two more libraries into every process, so each function here is a weak reference to the old version. The loader binds it in every newer glibc, and in
 * an older one where the program has libpthread and libdl. Where they come later, with the driver, the function is looked up when it is called.
 *
 * A row: the function, its version on x86-64 (aarch64 has them all since 2.17), its parameters, its result, and what it does where there is none.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include "shim/base/compiler.h"
#include "shim/base/realdl.h"

#ifdef __x86_64__
#define VERSION(x86_64) "GLIBC_" x86_64
#else
#define VERSION(x86_64) "GLIBC_2.17"
#endif

#define MOVED(result, name, version, parameters, arguments, otherwise)                      \
    extern __typeof__(name) bound_##name __attribute__((weak));                             \
    __asm__(".symver bound_" #name "," #name "@" VERSION(version));                         \
    CS_HIDDEN result name parameters                                                        \
    {                                                                                       \
        __typeof__(name) *function = bound_##name;                                          \
        if (!function) function = (__typeof__(name) *)cs_glibc_symbol(#name);               \
        if (!function) return otherwise;                                                    \
        return function arguments;                                                          \
    }

MOVED(void *, dlopen, "2.2.5", (const char *path, int mode), (path, mode), NULL)
MOVED(char *, dlerror, "2.2.5", (void), (), NULL)
MOVED(int, dladdr, "2.2.5", (const void *address, Dl_info *info), (address, info), 0)

MOVED(int, pthread_create, "2.2.5", (pthread_t *restrict thread, const pthread_attr_t *restrict how, void *(*run)(void *), void *restrict given),
      (thread, how, run, given), EAGAIN)
MOVED(int, pthread_detach, "2.2.5", (pthread_t thread), (thread), EINVAL)
MOVED(int, pthread_attr_setstacksize, "2.2.5", (pthread_attr_t *how, size_t size), (how, size), EINVAL)

/* Without libpthread there is one thread. */
static int once_alone(pthread_once_t *control, void (*init)(void))
{
    if (*control == PTHREAD_ONCE_INIT) *control = PTHREAD_ONCE_INIT + 2, init();
    return 0;
}
MOVED(int, pthread_once, "2.2.5", (pthread_once_t * control, void (*init)(void)), (control, init), once_alone(control, init))
MOVED(int, pthread_key_create, "2.2.5", (pthread_key_t * key, void (*ends)(void *)), (key, ends), EAGAIN)
MOVED(int, pthread_setspecific, "2.2.5", (pthread_key_t key, const void *value), (key, value), EINVAL)
