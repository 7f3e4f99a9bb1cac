/*
 * audit_doubts NAME: a program that depends on the legacy default stream in a way that records do
 * not tell, and how its data came out: "right" or "wrong". As it is, each is right. Under
 * per-thread default streams each is wrong, if copies last (CUSTREAM_FAKE_COPY_NS): what comes
 * second does not wait. `late` is for those in which chance decides: the second is called for when
 * the first has ended.
 *
 * audit_doubts NAME late
 */
#include "tests/apps/app.h"

enum { SIZE = 1 << 16 };

static CUstream stream, apart;
static unsigned char *first, *second; /* pinned */
static volatile unsigned *flag;       /* likewise */
static CUdeviceptr seven, other, one; /* seven: full of sevens. one: 1, as a number */
static int late;

#define ADDRESS(host) ((CUdeviceptr)(size_t)(host))

static int all_seven(const unsigned char *data)
{
    for (int i = 0; i < SIZE; i++)
        if (data[i] != 7) return 0;
    return 1;
}

static int memset_pinned(void)
{
    OK(cuMemsetD8Async, ADDRESS(first), 7, SIZE, stream);
    OK(cuStreamSynchronize, NULL);
    return all_seven(first);
}

static int copy_to_pinned(void)
{
    OK(cuMemcpyDtoDAsync_v2, ADDRESS(first), seven, SIZE, stream);
    OK(cuStreamSynchronize, NULL);
    return all_seven(first);
}

static int copy_from_pinned(void)
{
    memset(first, 7, SIZE);
    OK(cuMemcpyDtoDAsync_v2, other, ADDRESS(first), SIZE, stream);
    OK(cuStreamSynchronize, NULL);
    memset(first, 1, SIZE);
    OK(cuCtxSynchronize);
    OK(cuMemcpyDtoH_v2, second, other, SIZE);
    return all_seven(second);
}

/* The host polls what the second operation writes. */
static int copied_flag(void)
{
    OK(cuMemcpyDtoHAsync_v2, second, other, SIZE, stream);
    OK(cuMemcpyDtoHAsync_v2, first, seven, SIZE, stream);
    OK(cuMemcpyDtoHAsync_v2, (void *)(size_t)flag, one, 4, NULL);
    while (!*flag) {}
    return all_seven(first);
}

static int set_flag(void)
{
    OK(cuMemcpyDtoHAsync_v2, second, other, SIZE, stream);
    OK(cuMemcpyDtoHAsync_v2, first, seven, SIZE, stream);
    OK(cuMemsetD32Async, ADDRESS(flag), 1, 1, NULL);
    while (!*flag) {}
    return all_seven(first);
}

static int elapsed(void)
{
    CUevent begin, end;
    float ms;
    OK(cuEventCreate, &begin, CU_EVENT_DEFAULT);
    OK(cuEventCreate, &end, CU_EVENT_DEFAULT);
    OK(cuEventRecord, begin, NULL);
    OK(cuMemcpyDtoHAsync_v2, first, seven, SIZE, stream);
    OK(cuEventRecord, end, NULL);
    while (CU(cuEventElapsedTime, &ms, begin, end) == CUDA_ERROR_NOT_READY) {}
    return all_seven(first);
}

/* The time of the copy is asked from events on the default stream; the data are waited for where
 * they are made. */
static int measured(void)
{
    CUevent begin, end;
    float ms;
    OK(cuEventCreate, &begin, CU_EVENT_DEFAULT);
    OK(cuEventCreate, &end, CU_EVENT_DEFAULT);
    OK(cuEventRecord, begin, NULL);
    OK(cuMemcpyDtoHAsync_v2, first, seven, SIZE, stream);
    OK(cuEventRecord, end, NULL);
    OK(cuStreamSynchronize, stream);
    OK(cuStreamSynchronize, NULL);
    OK(cuEventElapsedTime, &ms, begin, end);
    return ms > 5;
}

/* What the query says does not matter to it. */
static int asked(void)
{
    OK(cuMemcpyDtoHAsync_v2, second, seven, SIZE, stream);
    OK(cuMemcpyDtoDAsync_v2, other, seven, SIZE, stream);
    while (CU(cuStreamQuery, stream) == CUDA_ERROR_NOT_READY && late) {}
    OK(cuMemcpyDtoHAsync_v2, first, other, SIZE, NULL);
    OK(cuCtxSynchronize);
    return all_seven(first);
}

/* The program waits only if the query says that there is something to wait for. */
static int denied(void)
{
    OK(cuMemcpyDtoHAsync_v2, first, seven, SIZE, stream);
    if (CU(cuStreamQuery, NULL) == CUDA_ERROR_NOT_READY) OK(cuStreamSynchronize, stream);
    return all_seven(first);
}

static int denied_event(void)
{
    CUevent event;
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    OK(cuMemcpyDtoHAsync_v2, first, seven, SIZE, stream);
    OK(cuEventRecord, event, NULL);
    if (CU(cuEventQuery, event) == CUDA_ERROR_NOT_READY) OK(cuStreamSynchronize, stream);
    return all_seven(first);
}

/* The first answer is about its own work alone, the next one also about what another thread has
 * enqueued meanwhile. */
static void *enqueues(void *event)
{
    OK(cuCtxSetCurrent, app_context);
    OK(cuStreamWaitEvent, stream, event,
        0); /* it comes behind the default stream's work in any case */
    OK(cuMemcpyDtoHAsync_v2, first, seven, SIZE, stream);
    return event;
}

static int denied_later(void)
{
    pthread_t thread;
    CUevent event;
    volatile unsigned *gate = app_gate(NULL);
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    OK(cuEventRecord, event, NULL);
    if (CU(cuStreamQuery, NULL) != CUDA_ERROR_NOT_READY) return 0;
    THREAD(&thread, enqueues, event);
    pthread_join(thread, NULL);
    app_sleep_ms(1);
    if (CU(cuStreamQuery, NULL) != CUDA_ERROR_NOT_READY) return 0;
    *gate = 1;
    OK(cuStreamSynchronize, stream);
    return all_seven(first);
}

/* Another thread waits for the stream, and tells nobody. */
static void *watch(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    OK(cuStreamSynchronize, stream);
    return unused;
}

static int watched(void)
{
    pthread_t thread;
    OK(cuMemcpyDtoHAsync_v2, second, seven, SIZE, stream);
    OK(cuMemcpyDtoDAsync_v2, other, seven, SIZE, stream);
    THREAD(&thread, watch, NULL);
    if (late) pthread_join(thread, NULL);
    OK(cuMemcpyDtoHAsync_v2, first, other, SIZE, NULL);
    if (!late) pthread_join(thread, NULL);
    OK(cuCtxSynchronize);
    return all_seven(first);
}

/* A graph waits for an event that stands for more on the default stream. */
static int graph_waits(void)
{
    CUevent event;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode wait, copy;
    CUDA_MEMCPY3D what = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = other,
        .dstMemoryType = CU_MEMORYTYPE_HOST,
        .dstHost = first,
        .WidthInBytes = SIZE,
        .Height = 1,
        .Depth = 1};
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    OK(cuGraphCreate, &graph, 0);
    OK(cuGraphAddEventWaitNode, &wait, graph, NULL, 0, event);
    OK(cuGraphAddMemcpyNode, &copy, graph, &wait, 1, &what, app_context);
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    OK(cuMemcpyDtoDAsync_v2, other, seven, SIZE, stream);
    OK(cuEventRecord, event, NULL);
    OK(cuGraphLaunch, exec, apart);
    OK(cuCtxSynchronize);
    return all_seven(first);
}

static const struct {
    const char *name;
    int (*run)(void);
} programs[] = {{"memset_pinned", memset_pinned}, {"copy_to_pinned", copy_to_pinned},
    {"copy_from_pinned", copy_from_pinned}, {"copied_flag", copied_flag}, {"set_flag", set_flag},
    {"elapsed", elapsed}, {"measured", measured}, {"asked", asked}, {"denied", denied},
    {"denied_event", denied_event}, {"denied_later", denied_later}, {"watched", watched},
    {"graph_waits", graph_waits}};

int main(int argc, char **argv)
{
    late = argc > 2 && !strcmp(argv[2], "late");
    app_start(0);
    OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
    OK(cuStreamCreate, &apart, CU_STREAM_NON_BLOCKING);
    OK(cuMemHostAlloc, (void **)&first, SIZE, 0);
    OK(cuMemHostAlloc, (void **)&second, SIZE, 0);
    OK(cuMemHostAlloc, (void **)(size_t)&flag, 4096, 0);
    OK(cuMemAlloc_v2, &seven, SIZE);
    OK(cuMemAlloc_v2, &other, SIZE);
    OK(cuMemAlloc_v2, &one, 4096);
    memset(first, 0, SIZE);
    memset(second, 0, SIZE);
    *flag = 0;
    OK(cuMemsetD8_v2, seven, 7, SIZE);
    OK(cuMemsetD8_v2, other, 0, SIZE);
    OK(cuMemsetD32_v2, one, 1, 1);
    OK(cuCtxSynchronize);
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(programs[i].name, argv[1])) continue;
        puts(programs[i].run() ? "right" : "wrong");
        OK(cuCtxSynchronize);
        return 0;
    }
    return 2;
}
