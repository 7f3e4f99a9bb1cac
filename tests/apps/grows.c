/*
 * grows KIND N BATCHES: does as much work BATCHES times over, and notes after each the resident
 * memory of the process in KiB.
 *
 *     threads     N threads, one after the other, each of which launches on its own default stream
 *     streams     N streams, one after the other, each launched to
 *     events      N events, one after the other, each recorded
 *     graphs      N graphs, one after the other, each captured, launched and destroyed
 *     waits       nothing, but for as long
 */
#include "tests/apps/app.h"

static CUfunction empty;
static CUstream stream;

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

static void *short_thread(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    LAUNCH(empty, CU_STREAM_PER_THREAD);
    OK(cuStreamSynchronize, CU_STREAM_PER_THREAD);
    return unused;
}

static void one_thread(void)
{
    pthread_t thread;
    THREAD(&thread, short_thread, NULL);
    pthread_join(thread, NULL);
}

static void one_stream(void)
{
    CUstream made;
    OK(cuStreamCreate, &made, CU_STREAM_NON_BLOCKING);
    LAUNCH(empty, made);
    OK(cuStreamSynchronize, made);
    OK(cuStreamDestroy_v2, made);
}

static void one_event(void)
{
    CUevent event;
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    OK(cuEventRecord, event, stream);
    OK(cuEventSynchronize, event);
    OK(cuEventDestroy_v2, event);
}

static void one_graph(void)
{
    CUgraph graph;
    CUgraphExec exec;
    OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    LAUNCH(empty, stream);
    OK(cuStreamEndCapture, stream, &graph);
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    OK(cuGraphLaunch, exec, stream);
    OK(cuStreamSynchronize, stream);
    OK(cuGraphExecDestroy, exec);
    OK(cuGraphDestroy, graph);
}

static void nothing(void) {}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*once)(void);
    } kinds[] = {{"threads", one_thread}, {"streams", one_stream}, {"events", one_event},
        {"graphs", one_graph}, {"waits", nothing}};
    void (*once)(void) = NULL;
    for (size_t i = 0; argc == 4 && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(argv[1], kinds[i].name)) once = kinds[i].once;
    if (!once) return 2;
    app_start(0);
    empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    for (long batch = 0; batch < atol(argv[3]); batch++) {
        for (long i = 0; i < atol(argv[2]); i++) once();
        for (int round = 0; round < 3; round++)
            app_flush(); /* the writer has read what is there, and given back what has ended */
        NOTE("rss_kib", "%ld", resident_kib());
    }
    app_report();
    return 0;
}
