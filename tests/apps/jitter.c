/*
 * jitter WHAT: programs whose operations a policy delays.
 *
 *   missing ROUNDS   one stream writes, another reads what it wrote, and does not wait for it
 *   waiting ROUNDS   likewise, with an event between them
 *   many             every kind of operation on streams of several threads, on default streams, and
 * in a capture
 */
#include "tests/apps/app.h"

enum { STREAMS = 4, ROUNDS = 48 };
static unsigned char *memory;
#define AT(i) ((CUdeviceptr)(size_t)(memory + (i)))
static CUfunction empty, fill;

static void race(int rounds, int waits)
{
    CUstream writer, reader;
    CUevent written;
    OK(cuStreamCreate, &writer, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreate, &reader, CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &written, CU_EVENT_DISABLE_TIMING);
    for (int round = 0; round < rounds; round++) {
        CUdeviceptr to = AT(0);
        unsigned value = (unsigned)round + 1, count = 1;
        void *parameters[] = {&to, &value, &count};
        OK(cuLaunchKernel, fill, 1, 1, 1, 1, 1, 1, 0, writer, parameters, NULL);
        if (waits) {
            OK(cuEventRecord, written, writer);
            OK(cuStreamWaitEvent, reader, written, 0);
        }
        OK(cuMemcpyAsync, AT(8), AT(0), 4, reader);
        OK(cuStreamSynchronize, reader);
        printf("round %d %s\n", round, *(unsigned *)(memory + 8) == value ? "right" : "wrong");
        OK(cuStreamSynchronize, writer);
    }
}

/* --- many --- */

static CUstream streams[STREAMS];
static CUgraphExec exec;
static pthread_barrier_t meet;

static void operate(CUstream stream, CUevent event, int n)
{
    switch (n % 6) {
    case 0: LAUNCH(empty, stream); break;
    case 1: OK(cuMemcpyAsync, AT(16), AT(20), 1, stream); break;
    case 2: OK(cuMemsetD8Async, AT(24), 1, 1, stream); break;
    case 3: OK(cuEventRecord, event, stream); break;
    case 4: OK(cuStreamWaitEvent, stream, event, 0); break;
    case 5: OK(cuGraphLaunch, exec, stream); break;
    }
}

static void *worker(void *slot)
{
    CUevent event;
    OK(cuCtxSetCurrent, app_context);
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    for (int turn = 0; turn < STREAMS;
        turn++) { /* who is the n-th on a default stream is settled here */
        pthread_barrier_wait(&meet);
        if (turn == (int)(size_t)slot) OK(cuMemsetD8_v2_ptds, AT(30), 1, 1);
    }
    for (int n = 0; n < ROUNDS; n++) {
        operate(streams[(size_t)slot], event, n);
        if (n % 4 == 0) OK(cuMemsetD8Async_ptsz, AT(32), 1, 1, NULL);
        if (n % 4 == 1) OK(cuMemcpyAsync, AT(34), AT(36), 1, CU_STREAM_PER_THREAD);
        if (n % 4 == 2) OK(cuMemsetD8_v2_ptds, AT(38), 1, 1);
        CU(cuStreamQuery, NULL); /* no operation, and neither is what follows */
        OK(cuStreamSynchronize, streams[(size_t)slot]);
    }
    OK(cuStreamSynchronize_ptsz,
        NULL); /* what comes later than the end of the thread has no stream any more */
    return NULL;
}

static void many(void)
{
    pthread_t threads[STREAMS];
    CUgraph graph;
    size_t nodes;
    pthread_barrier_init(&meet, NULL, STREAMS);
    for (int i = 0; i < STREAMS; i++) OK(cuStreamCreate, &streams[i], CU_STREAM_NON_BLOCKING);
    OK(cuStreamBeginCapture_v2, streams[0], CU_STREAM_CAPTURE_MODE_RELAXED);
    for (int i = 0; i < 8; i++) LAUNCH(empty, streams[0]);
    for (int i = 0; i < 8; i++) LAUNCH(empty, streams[1]); /* meanwhile */
    OK(cuStreamEndCapture, streams[0], &graph);
    OK(cuGraphGetNodes, graph, NULL, &nodes);
    printf("nodes %zu\n", nodes);
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    for (int i = 0; i < 8; i++) OK(cuMemsetD8Async, AT(40), 1, 1, NULL);
    for (size_t i = 0; i < STREAMS; i++) THREAD(&threads[i], worker, (void *)i);
    for (int i = 0; i < STREAMS; i++) pthread_join(threads[i], NULL);
    OK(cuCtxSynchronize);
    errno = 4711;
    LAUNCH(empty, streams[0]);
    printf("errno %d\n", errno);
    OK(cuCtxSynchronize);
}

int main(int argc, char **argv)
{
    app_start(0);
    empty = app_kernel("empty");
    fill = app_kernel("fill");
    OK(cuMemAllocHost_v2, (void **)&memory, 64);
    memset(memory, 0, 64);
    if (argc > 2 && !strcmp(argv[1], "missing")) race(atoi(argv[2]), 0);
    else if (argc > 2 && !strcmp(argv[1], "waiting")) race(atoi(argv[2]), 1);
    else if (argc > 1 && !strcmp(argv[1], "many")) many();
    else return 2;
    app_report();
    return 0;
}
