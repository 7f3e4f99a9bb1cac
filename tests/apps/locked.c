/*
 * locked         all memory is locked, that to come too: each page of it is there from the
 * beginning locked late    all that is there after the first launch is locked locked rested  the
 * same after 16 threads have launched and ended, and the library has given up what it can of their
 * rings
 *
 * Notes how many kB are there in the end.
 */
#include "app.h"

#include <sys/mman.h>

enum { RESTING_KB = 8 << 10 }; /* one ring of 4 MiB, and what is in front of the rings */
static CUfunction kernel;

static void launch_many(int n)
{
    for (int i = 0; i < n; i++) LAUNCH(kernel, NULL);
    OK(cuCtxSynchronize);
}

static void *launches(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    launch_many(40000); /* what fills a ring of 4 MiB */
    return unused;
}

/* Of the library's file of rings, kB that are there; 0: there is no such file. */
static long rings_kb(void)
{
    char line[4352];
    long sum = 0;
    int is_rings = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (strchr("0123456789abcdef", *line)) is_rings = !!strstr(line, "custream-rings");
        if (is_rings && !strncmp(line, "Rss:", 4)) sum += strtol(line + 4, NULL, 10);
    }
    if (maps) fclose(maps);
    return sum;
}

/* Their states are free again once the library has read what they did, and their rings rest a
 * second later. */
static void threads_come_and_go(void)
{
    pthread_t threads[16];
    for (int i = 0; i < 16; i++) THREAD(&threads[i], launches, NULL);
    for (int i = 0; i < 16; i++) pthread_join(threads[i], NULL);
    while (rings_kb() > RESTING_KB) app_sleep_ms(10);
}

/* Few may lock that much: for others, what it comes to is that each page that could be written is
 * there. */
static void lock_all(void)
{
    char line[512], mode[8];
    size_t from, to;
    if (!mlockall(MCL_CURRENT)) return;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%zx-%zx %7s", &from, &to, mode) == 3 && !strncmp(mode, "rw", 2))
            madvise((void *)from, to - from, 23 /* MADV_POPULATE_WRITE */);
    if (maps) fclose(maps);
}

int main(int argc, char **argv)
{
    const int rested = argc > 1 && !strcmp(argv[1], "rested"),
              late = rested || (argc > 1 && !strcmp(argv[1], "late"));
    char line[256];
    if (!late) mlockall(MCL_CURRENT | MCL_FUTURE);
    app_start(0);
    kernel = app_kernel("k");
    LAUNCH(kernel, NULL);
    OK(cuCtxSynchronize);
    if (rested) threads_come_and_go();
    if (late) lock_all();
    launch_many(20000);
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmRSS:", 6)) NOTE("kB", "%ld", strtol(line + 6, NULL, 10));
    app_report();
    return 0;
}
