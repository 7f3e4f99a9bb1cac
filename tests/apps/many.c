/*
 * many live N     N streams alive at once, each launched to, then destroyed
 * many churn N    N streams, one after the other
 * many events N   N events alive at once
 * many threads N  N threads one after the other, each using its own default stream
 * Notes the resident memory of the process in KiB at the end.
 */
#include "tests/apps/app.h"

static CUfunction empty;

static long resident_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
    if (file) fclose(file);
    return kib;
}

static void live(long n)
{
    CUstream *streams = calloc((size_t)n, sizeof *streams);
    for (long i = 0; i < n; i++) OK(cuStreamCreate, &streams[i], CU_STREAM_NON_BLOCKING);
    for (long i = n; i-- > 0;) LAUNCH(empty, streams[i]);
    for (long i = n; i-- > 0;)
        OK(cuStreamDestroy_v2, streams[i]); /* newest first: quick on the simulated GPU */
    free(streams);
}

static void churn(long n)
{
    CUstream stream;
    for (long i = 0; i < n; i++) {
        OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
        OK(cuStreamDestroy_v2, stream);
    }
}

static void many_events(long n)
{
    CUevent *events = calloc((size_t)n, sizeof *events);
    for (long i = 0; i < n; i++) OK(cuEventCreate, &events[i], CU_EVENT_DISABLE_TIMING);
    for (long i = 0; i < n; i++) OK(cuEventDestroy_v2, events[i]);
    free(events);
}

static void *short_thread(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    LAUNCH(empty, CU_STREAM_PER_THREAD);
    return unused;
}

static void threads(long n)
{
    pthread_t thread;
    for (long i = 0; i < n; i++) {
        THREAD(&thread, short_thread, NULL);
        pthread_join(thread, NULL);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    long n = atol(argv[2]);
    app_start(0);
    empty = app_kernel("empty_kernel");
    if (!strcmp(argv[1], "live")) live(n);
    else if (!strcmp(argv[1], "churn")) churn(n);
    else if (!strcmp(argv[1], "events")) many_events(n);
    else if (!strcmp(argv[1], "threads")) threads(n);
    else return 2;
    NOTE("rss_kib", "%ld", resident_kib());
    app_report();
    return 0;
}
