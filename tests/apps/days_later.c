/* Preloaded in front of the library: its clocks are 150 days further from the moment on at which the file DAYS_LATER exists. */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    static const char *file;
    if (!real) file = getenv("DAYS_LATER"), real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const int result = real(clock, time);
    if (!result && file && !access(file, F_OK) && (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC)) time->tv_sec += 150 * 24 * 60 * 60;
    return result;
}
