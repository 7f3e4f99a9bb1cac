/* Preloaded behind the shim: its threads cannot be made, as where a limit on processes is reached
 * just then. The program's own can. NO_THREAD=3: only its third. NO_THREAD=3+: its third and all
 * later ones. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static int refused(void)
{
    static int asked;
    const char *which = getenv("NO_THREAD");
    const int i = __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED), wanted = which ? atoi(which) : 1;
    return i == wanted || (i > wanted && (!which || strchr(which, '+')));
}

int pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *data)
{
    static __typeof__(&pthread_create) real;
    Dl_info caller;
    if (dladdr(__builtin_return_address(0), &caller) &&
        strstr(caller.dli_fname, "libcustream_shim") && refused())
        return EAGAIN;
    if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, run, data);
}
