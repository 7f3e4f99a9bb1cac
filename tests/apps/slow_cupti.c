/* libslow_cupti.so: the simulated CUPTI, to which it is linked, for a process that takes
 * SLOW_CUPTI_MS to load it, and SLOW_CUPTI_START_MS to have its first attribute set; NVIDIA's takes
 * a while, too. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static void wait_for(const char *name, long otherwise)
{
    const char *given = getenv(name);
    const long ms = given ? atol(given) : otherwise;
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

__attribute__((constructor)) static void begin(void) { wait_for("SLOW_CUPTI_MS", 200); }

/* The loader's lock is free meanwhile: threads of the program can do what they like. */
int cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value);
int cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value)
{
    int (*real)(int, size_t *, void *) = dlsym(RTLD_NEXT, "cuptiActivitySetAttribute");
    wait_for("SLOW_CUPTI_START_MS", 0);
    return real(attribute, bytes, value);
}

/* libstuck_cupti.so: a flush does not come back. */
#ifdef STUCK
int cuptiActivityFlushAll(uint32_t flag);
int cuptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    wait_for("STUCK_CUPTI_MS", 60000);
    return 0;
}
#endif
