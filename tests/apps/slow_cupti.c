/* libslow_cupti.so: the simulated CUPTI, to which it is linked, for a process that takes SLOW_CUPTI_MS to load it; NVIDIA's takes a while, too. */
#include <stdlib.h>
#include <time.h>

__attribute__((constructor)) static void begin(void)
{
    const char *given = getenv("SLOW_CUPTI_MS");
    const long ms = given ? atol(given) : 500;
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}
