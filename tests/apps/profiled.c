/*
 * A program that profiles itself, in the manner of PyTorch's profiler: it is CUPTI's client, and
 * says what it got. Under the shim it must get the same. Built twice: with dlopen and dlsym, and
 * linked to CUPTI.
 *
 * profiled twice       two sessions, work before, between and after them
 * profiled once        one session, then enabling without registering again, as CUPTI allows
 * profiled often       many sessions, more than we have buffers for
 * profiled early       registered before the first CUDA call; leaves, and works on
 * profiled clock       with a clock of its own
 * profiled graphs      listens for kernels while graphs are launched
 * profiled graphs_later  the same, and afterwards launches one that was instantiated meanwhile
 * profiled graphs_first  the same, and has asked for kernels before the first CUDA call, and
 * registers its buffers late profiled peers       listens for copies, also those between GPUs
 * (MEMCPY2), and flushes, while graphs with copies are launched profiled everything  the same, and
 * for whole graphs: CUPTI breaks that program, alone (docs/gpu.md) profiled peers_early asks for
 * MEMCPY2 before the first CUDA call, and registers no buffers profiled finalize    ends with
 * cuptiFinalize, and begins again profiled dropped     has no buffers to give profiled calls asks
 * for single driver calls profiled small       gives buffers of a few records profiled other PATH
 * uses another copy of CUPTI profiled subscriber PATH  only for callbacks (subscriber_v2: by
 * cuptiSubscribe_v2)
 */
#include "tests/apps/app.h"

#include <stdbool.h>

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>

static void *cupti_library;
static const char *cupti_path = "libcupti.so.13";

__attribute__((unused)) static void *cupti_find(const char *name)
{
    if (!cupti_library) cupti_library = dlopen(cupti_path, RTLD_NOW | RTLD_LOCAL);
    void *found = cupti_library ? dlsym(cupti_library, name) : NULL;
    if (!found) printf("no %s\n", name), exit(5);
    return found;
}
#ifdef APP_CUPTI
#define CUPTI(name, ...) name(__VA_ARGS__)
#else
#define CUPTI(name, ...) ((__typeof__(&name))cupti_find(#name))(__VA_ARGS__)
#endif
#define SURE(name, ...) \
    do { \
        CUptiResult result_ = CUPTI(name, ##__VA_ARGS__); \
        if (result_ != CUPTI_SUCCESS) printf("%s gave %d\n", #name, (int)result_); \
    } while (0)

/* --- what it got --- */

enum { KINDS = 64, BUFFERS = 4096, CORRELATIONS = 1 << 16, CALLS = 1024 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t buffer_size = 1 << 20;
static int buffers_refused, given, back, unknown, kind_count[KINDS], call_count[CALLS], nodes,
    out_of_time, odd_duration;
static uint8_t *out[BUFFERS];              /* on loan */
static unsigned char called[CORRELATIONS]; /* a record of the call came */
static uint32_t worked[CORRELATIONS], work_count;
static uint64_t begun, ended; /* the session, by cuptiGetTimestamp */

static void CUPTIAPI ask(uint8_t **buffer, size_t *size, size_t *most)
{
    pthread_mutex_lock(&lock);
    *buffer = buffers_refused ? NULL : aligned_alloc(8, buffer_size);
    *size = *buffer ? buffer_size : 0;
    *most = 0;
    for (int i = 0; *buffer && i < BUFFERS; i++) {
        if (out[i]) continue;
        out[i] = *buffer;
        break;
    }
    given += *buffer != NULL;
    pthread_mutex_unlock(&lock);
}

static void work(uint64_t start, uint64_t end, uint32_t correlation, uint64_t node)
{
    enum { SLACK = 5000 }; /* of clocks read one after the other */
    if (start + SLACK < begun || end > ended + SLACK || start > end) out_of_time++;
    nodes += node != 0;
    worked[work_count++ % CORRELATIONS] = correlation;
}

static void read_record(const CUpti_Activity *record)
{
    const CUpti_ActivityKernel10 *kernel = (const void *)record;
    const CUpti_ActivityMemcpy6 *copy = (const void *)record;
    const CUpti_ActivityMemset4 *set = (const void *)record;
    const CUpti_ActivityGraphTrace2 *graph = (const void *)record;
    const CUpti_ActivityAPI *call = (const void *)record;
    if ((int)record->kind < KINDS) kind_count[record->kind]++;
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        work(kernel->start, kernel->end, kernel->correlationId, kernel->graphNodeId);
        if (!strcmp(kernel->name, "sleep_us_500") &&
            (kernel->end - kernel->start < 490000 || kernel->end - kernel->start > 510000))
            odd_duration++;
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        work(copy->start, copy->end, copy->correlationId, copy->graphNodeId);
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        work(set->start, set->end, set->correlationId, set->graphNodeId);
        break;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        work(graph->start, graph->end, graph->correlationId, 0);
        break;
    case CUPTI_ACTIVITY_KIND_DRIVER:
        if (call->start + 5000 < begun || call->end > ended + 5000) out_of_time++;
        if (call->cbid < CALLS) call_count[call->cbid]++;
        called[call->correlationId % CORRELATIONS] = 1;
        break;
    default: break;
    }
}

/* Like Kineto, it keeps its buffers until the session is over. */
static struct kept {
    uint8_t *buffer;
    size_t valid;
} kept[BUFFERS];
static int kept_count;

static void CUPTIAPI take(
    CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    int i = 0;
    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&lock);
    while (i < BUFFERS && out[i] != buffer) i++;
    if (i == BUFFERS || !buffer) {
        unknown++;
    } else {
        out[i] = NULL;
        back++;
        kept[kept_count++] = (struct kept){buffer, valid};
    }
    pthread_mutex_unlock(&lock);
}

static void read_kept(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < kept_count; i++) {
        CUpti_Activity *record = NULL;
        while (CUPTI(cuptiActivityGetNextRecord, kept[i].buffer, kept[i].valid, &record) ==
               CUPTI_SUCCESS)
            read_record(record);
        free(kept[i].buffer);
    }
    kept_count = 0;
    pthread_mutex_unlock(&lock);
}

/* --- a session --- */

static const CUpti_ActivityKind listened[] = {CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME,
    CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_OVERHEAD};
enum { LISTENED = sizeof listened / sizeof *listened };

static void listens(int registers)
{
    memset(kind_count, 0, sizeof kind_count);
    memset(call_count, 0, sizeof call_count);
    memset(called, 0, sizeof called);
    nodes = out_of_time = odd_duration = 0;
    work_count = 0;
    if (registers) SURE(cuptiActivityRegisterCallbacks, ask, take);
    for (int i = 0; i < LISTENED; i++) SURE(cuptiActivityEnable, listened[i]);
    SURE(cuptiActivityEnableRuntimeApi, 17, 0);
    SURE(cuptiActivityEnableDriverApi, 686, 0);
    SURE(cuptiActivityEnableDriverApi, CUPTI_DRIVER_TRACE_CBID_cuStreamQuery,
        0); /* which the program calls */
    SURE(cuptiGetTimestamp, &begun);
}

static void says(const char *session)
{
    int matched = 0;
    for (uint32_t i = 0; i < work_count && i < CORRELATIONS; i++)
        matched += called[worked[i] % CORRELATIONS];
    printf("%s:", session);
    for (int kind = 0; kind < KINDS; kind++)
        if (kind_count[kind] && kind != CUPTI_ACTIVITY_KIND_OVERHEAD)
            printf(" kind %d %d", kind, kind_count[kind]);
    printf(", of calls %d, nodes %d, out of time %d, odd %d, out %d, unknown %d\n", matched, nodes,
        out_of_time, odd_duration, given - back, unknown);
    for (int call = 0; call < CALLS; call++)
        if (call_count[call]) printf("%s: call %d %d\n", session, call, call_count[call]);
    NOTE("buffers", "%d", given);
    NOTE("overhead", "%d", kind_count[CUPTI_ACTIVITY_KIND_OVERHEAD]);
}

static void leaves_from(const CUpti_ActivityKind *asked, int count, const char *session)
{
    OK(cuCtxSynchronize);
    SURE(cuptiGetTimestamp, &ended);
    for (int i = 0; i < count; i++) SURE(cuptiActivityDisable, asked[i]);
    SURE(cuptiActivityFlushAll, 1);
    read_kept();
    says(session);
}

static void leaves(const char *session) { leaves_from(listened, LISTENED, session); }

/* --- work --- */

static CUstream stream;
static CUdeviceptr memory;
static CUfunction kernel;

static void begins(void)
{
    app_start(0);
    kernel = app_kernel("sleep_us_500");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuMemAlloc_v2, &memory, 1 << 16);
}

static void *other_thread(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    for (int i = 0; i < 4; i++) LAUNCH(kernel, stream);
    OK(cuStreamQuery, NULL);
    return unused;
}

static void works(int launches)
{
    static char host[4096];
    pthread_t thread;
    for (int i = 0; i < launches; i++) LAUNCH(kernel, stream);
    OK(cuMemcpyHtoDAsync_v2, memory, host, 4096, stream);
    OK(cuMemcpyDtoHAsync_v2, host, memory, 100, stream);
    OK(cuMemsetD8Async, memory, 1, 640, stream);
    THREAD(&thread, other_thread, NULL);
    pthread_join(thread, NULL);
    OK(cuStreamSynchronize, stream);
}

static void works_alone(void)
{
    works(7);
    OK(cuCtxSynchronize);
}

static void twice(void)
{
    begins();
    works_alone();
    for (int i = 0; i < 2; i++) {
        listens(1);
        works(10 + i);
        leaves(i ? "second" : "first");
        works_alone();
    }
}

static void once(void)
{
    begins();
    listens(1);
    works(5);
    leaves("first");
    works_alone();
    listens(0);
    works(6);
    leaves("again");
    works_alone();
}

static void often(void)
{
    enum { SESSIONS = 150, SETS = 3 };
    static const CUpti_ActivityKind sets[] = {CUPTI_ACTIVITY_KIND_MEMSET};
    begins();
    for (int i = 0; i < SESSIONS; i++) {
        SURE(cuptiActivityRegisterCallbacks, ask, take);
        SURE(cuptiActivityEnable, sets[0]);
        for (int n = 0; n < SETS; n++) OK(cuMemsetD8Async, memory, 1, 64, stream);
        OK(cuCtxSynchronize);
        SURE(cuptiActivityDisable, sets[0]);
        SURE(cuptiActivityFlushAll, 1);
        read_kept();
        app_sleep_ms(5); /* whoever reads with us has time to */
    }
    printf(
        "often: kind %d %d\n", CUPTI_ACTIVITY_KIND_MEMSET, kind_count[CUPTI_ACTIVITY_KIND_MEMSET]);
}

static void early(void)
{
    listens(1);
    begins();
    works(5);
    leaves("early");
    app_sleep_ms(600); /* a few rounds of whoever waits for us to leave */
    works_alone();
    listens(1);
    works(6);
    leaves("later");
    works_alone();
}

static uint64_t CUPTIAPI own_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return 1000000000000u + (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void clocks(void)
{
    begins();
    SURE(cuptiActivityRegisterTimestampCallback, own_clock);
    uint64_t before = own_clock(), now = 0;
    SURE(cuptiGetTimestamp, &now);
    printf("own clock %d\n", now >= before && now <= own_clock());
    listens(1);
    works(9);
    leaves("clocked");
    works_alone();
}

static void graphs(bool later, bool first)
{
    CUgraph graph;
    CUgraphExec exec;
    if (first) SURE(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    begins();
    OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    for (int i = 0; i < 3; i++) LAUNCH(kernel, stream);
    OK(cuStreamEndCapture, stream, &graph);
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    for (int i = 0; i < 2; i++) OK(cuGraphLaunch, exec, stream);
    OK(cuCtxSynchronize);
    listens(1);
    for (int i = 0; i < 4; i++) OK(cuGraphLaunch, exec, stream);
    if (later) OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    leaves("graphs");
    for (int i = 0; i < 2; i++) OK(cuGraphLaunch, exec, stream);
    OK(cuCtxSynchronize);
}

/* A graph with a copy inside the device. */
static CUgraphExec copying_graph(void)
{
    CUgraph graph;
    CUgraphExec exec;
    OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuMemcpyDtoDAsync_v2, memory + 4096, memory, 4096, stream);
    OK(cuStreamEndCapture, stream, &graph);
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    return exec;
}

static void copies_and_graphs(const CUpti_ActivityKind *asked, int count, const char *session)
{
    CUcontext second;
    CUdeviceptr there;
    begins();
    OK(cuDevicePrimaryCtxRetain, &second, 1);
    OK(cuCtxSetCurrent, second);
    OK(cuMemAlloc_v2, &there, 4096);
    OK(cuCtxSetCurrent, app_context);
    CUgraphExec exec = copying_graph();
    for (int i = 0; i < 2; i++) OK(cuGraphLaunch, exec, stream);
    OK(cuCtxSynchronize);
    SURE(cuptiActivityRegisterCallbacks, ask, take);
    for (int i = 0; i < count; i++) SURE(cuptiActivityEnable, asked[i]);
    SURE(cuptiGetTimestamp, &begun);
    exec = copying_graph(); /* one from before GRAPH_TRACE was on must not be launched now:
                               docs/gpu.md */
    for (int i = 0; i < 3; i++) {
        OK(cuGraphLaunch, exec, stream);
        OK(cuMemcpyPeerAsync, there, second, memory, app_context, 1024, stream);
        OK(cuCtxSynchronize);
        SURE(cuptiActivityFlushAll, 0);
    }
    leaves_from(asked, count, session);
    for (int i = 0; i < 2; i++) OK(cuGraphLaunch, exec, stream);
    OK(cuCtxSynchronize);
}

static void peers_early(void)
{
    SURE(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_MEMCPY2);
    begins();
    CUgraphExec exec = copying_graph();
    for (int i = 0; i < 3; i++) {
        OK(cuGraphLaunch, exec, stream);
        OK(cuCtxSynchronize);
        app_sleep_ms(250); /* whoever flushes does so meanwhile */
    }
    printf("early\n");
}

static void finalizes(void)
{
    begins();
    for (int i = 0; i < 2; i++) {
        listens(1);
        works(3);
        leaves(i ? "second" : "first");
        SURE(cuptiFinalize);
        works_alone();
    }
}

static void drops(void)
{
    size_t dropped = 0;
    begins();
    SURE(cuptiActivityRegisterCallbacks, ask, take);
    SURE(cuptiActivityFlushAll, 1); /* a buffer that was asked for ahead of time is back */
    read_kept();
    buffers_refused = 1;
    SURE(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_MEMSET);
    for (int i = 0; i < 6; i++) OK(cuMemsetD8Async, memory, 1, 64, stream);
    OK(cuCtxSynchronize);
    SURE(cuptiActivityFlushAll, 1);
    SURE(cuptiActivityGetNumDroppedRecords, NULL, 0, &dropped);
    printf("dropped %zu", dropped);
    SURE(cuptiActivityGetNumDroppedRecords, NULL, 0, &dropped);
    printf(", then %zu\n", dropped);
    SURE(cuptiActivityDisable, CUPTI_ACTIVITY_KIND_MEMSET);
    SURE(cuptiActivityFlushAll, 1);
    works_alone();
}

static void calls(void)
{
    OK(cuInit, 0);
    OK(cuCtxSetCurrent, NULL); /* the shim is there by now */
    SURE(cuptiActivityRegisterCallbacks, ask, take);
    SURE(cuptiGetTimestamp, &begun);
    SURE(cuptiActivityEnableDriverApi, CUPTI_DRIVER_TRACE_CBID_cuStreamQuery,
        1); /* single calls are honoured from before the first context */
    SURE(cuptiActivityEnableDriverApi, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async, 1);
    begins();
    works(4);
    SURE(cuptiActivityEnableDriverApi, CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async, 0);
    SURE(cuptiActivityEnableDriverApi, CUPTI_DRIVER_TRACE_CBID_cuStreamQuery, 0);
    SURE(cuptiGetTimestamp, &ended);
    SURE(cuptiActivityFlushAll, 1);
    read_kept();
    says("calls");
    works_alone();
}

/* A copy that no one else uses. It is looked up as any library is. */
static int callbacks;
static void CUPTIAPI called_back(
    void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *call)
{
    (void)data, (void)domain, (void)id, (void)call;
    callbacks++;
}

enum { LISTENS, SUBSCRIBES, SUBSCRIBES_V2 };
static void other(const char *path, int subscribes)
{
    CUpti_SubscriberHandle subscriber;
    begins();
    works_alone();
    app_sleep_ms(600); /* the library lets go meanwhile, or comes back */
    cupti_path = path;
    if (subscribes != LISTENS) {
        if (subscribes == SUBSCRIBES) SURE(cuptiSubscribe, &subscriber, called_back, NULL);
        else SURE(cuptiSubscribe_v2, &subscriber, called_back, NULL, NULL);
        SURE(cuptiEnableCallback, 1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
            CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async);
        works_alone();
        printf("called back %d\n", callbacks);
        SURE(cuptiUnsubscribe, subscriber);
    } else {
        listens(1);
        works(5);
        leaves("other");
    }
    SURE(cuptiFinalize);
    app_sleep_ms(600); /* the library lets go meanwhile, or comes back */
    works_alone();
}

int main(int argc, char **argv)
{
    static const CUpti_ActivityKind every[] = {
        CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_GRAPH_TRACE};
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "twice")) twice();
    else if (!strcmp(what, "once")) once();
    else if (!strcmp(what, "often")) often();
    else if (!strcmp(what, "early")) early();
    else if (!strcmp(what, "clock")) clocks();
    else if (!strcmp(what, "graphs")) graphs(false, false);
    else if (!strcmp(what, "graphs_later")) graphs(true, false);
    else if (!strcmp(what, "graphs_first")) graphs(false, true);
    else if (!strcmp(what, "peers")) copies_and_graphs(every, 2, "peers");
    else if (!strcmp(what, "everything")) copies_and_graphs(every, 3, "everything");
    else if (!strcmp(what, "peers_early")) peers_early();
    else if (!strcmp(what, "finalize")) finalizes();
    else if (!strcmp(what, "dropped")) drops();
    else if (!strcmp(what, "calls")) calls();
    else if (!strcmp(what, "small")) buffer_size = 2048, twice();
    else if (!strcmp(what, "other")) other(argv[2], LISTENS);
    else if (!strcmp(what, "subscriber")) other(argv[2], SUBSCRIBES);
    else if (!strcmp(what, "subscriber_v2")) other(argv[2], SUBSCRIBES_V2);
    else return 2;
    app_report();
    return 0;
}
