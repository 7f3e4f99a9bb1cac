/*
 * soak SECONDS [PACE]: everything that comes and goes, for that long or with 0 until its input
 * ends. PACE is the pause between two rounds of a thread in microseconds (2000). Each second, and
 * at the end, it prints "at CALLS" with all CUDA calls so far; tests/soak.py reads its memory then.
 *
 * soak hold KIND N ROUNDS: N things alive at once, used and ended again, ROUNDS times over. "at
 * CALLS there" and "at CALLS gone" are printed then, and each time a byte of input is waited for.
 * KIND: streams, events, graphs, threads.
 *
 * soak calls N THREADS: N cheap calls by that many threads.
 */
#include "tests/apps/app.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { WORKERS = 6, BATCH = 20 };

static CUfunction empty;
static CUdeviceptr memory;
static _Atomic bool done;
static _Atomic long functions;
static _Atomic unsigned long cheap; /* calls that CU() does not count */
static long pace = 2000;

static unsigned long calls_so_far(void)
{
    unsigned long n = cheap;
    for (struct app_call *c = __atomic_load_n(&app_calls, __ATOMIC_ACQUIRE); c; c = c->next)
        n += (unsigned long)__atomic_load_n(&c->count, __ATOMIC_RELAXED);
    return n;
}

static void at(const char *what)
{
    printf("at %lu %s\n", calls_so_far(), what);
    fflush(stdout);
}

/* Whoever samples has answered: what was printed still holds then. */
static void seen(void)
{
    char answer;
    if (read(0, &answer, 1) < 0) exit(7);
}

/* --- what comes and goes --- */

static void CUDA_CB function(void *unused) { (void)unused, functions++; }
static void CUDA_CB callback(CUstream stream, CUresult status, void *unused)
{
    (void)stream, (void)status, (void)unused, functions++;
}

static void streams_and_events(void)
{
    CUstream stream, other;
    CUevent event, timed;
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreateWithPriority, &other, CU_STREAM_DEFAULT, -1);
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    OK(cuEventCreate, &timed, CU_EVENT_DEFAULT);
    for (int i = 0; i < BATCH; i++) LAUNCH(empty, stream);
    OK(cuEventRecord, event, stream);
    OK(cuStreamWaitEvent, other, event, 0);
    OK(cuMemsetD8Async, memory, 0, 64, other);
    OK(cuEventRecord, timed, other);
    OK(cuEventSynchronize, timed);
    OK(cuStreamSynchronize, stream);
    OK(cuEventDestroy_v2, event);
    OK(cuEventDestroy_v2, timed);
    OK(cuStreamDestroy_v2, stream);
    OK(cuStreamDestroy_v2, other);
}

static void host_functions(void)
{
    static char host[64];
    CUstream stream;
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuLaunchHostFunc, stream, function, NULL);
    OK(cuStreamAddCallback, stream, callback, NULL, 0);
    OK(cuMemcpyHtoDAsync_v2, memory, host, sizeof host, stream);
    OK(cuStreamSynchronize, stream);
    OK(cuStreamDestroy_v2, stream);
    for (int i = 0; i < BATCH; i++) LAUNCH(empty, CU_STREAM_PER_THREAD);
    OK(cuStreamSynchronize, CU_STREAM_PER_THREAD);
}

static void launch_graph(CUgraph graph, CUstream stream)
{
    CUgraphExec exec;
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    for (int i = 0; i < 3; i++) OK(cuGraphLaunch, exec, stream);
    OK(cuStreamSynchronize, stream);
    OK(cuGraphExecDestroy, exec);
    OK(cuGraphDestroy, graph);
}

/* One that is captured, with a fork and a join, and one that is made node by node. */
static void graphs(void)
{
    CUstream stream, branch;
    CUevent event, back;
    CUgraph graph, copy;
    CUgraphNode node, next;
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreate, &branch, CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    OK(cuEventCreate, &back, CU_EVENT_DISABLE_TIMING);
    OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    LAUNCH(empty, stream);
    OK(cuEventRecord, event, stream);
    OK(cuStreamWaitEvent, branch, event, 0);
    LAUNCH(empty, branch);
    OK(cuMemsetD8Async, memory, 0, 64, branch);
    OK(cuEventRecord, back, branch);
    OK(cuStreamWaitEvent, stream, back, 0);
    OK(cuStreamEndCapture, stream, &graph);
    OK(cuGraphClone, &copy, graph);
    launch_graph(graph, stream);
    launch_graph(copy, branch);
    OK(cuGraphCreate, &graph, 0);
    OK(cuGraphAddEmptyNode, &node, graph, NULL, 0);
    OK(cuGraphAddEmptyNode, &next, graph, &node, 1);
    launch_graph(graph, stream);
    OK(cuEventDestroy_v2, event);
    OK(cuEventDestroy_v2, back);
    OK(cuStreamDestroy_v2, branch);
    OK(cuStreamDestroy_v2, stream);
}

/* Its streams go with it. The simulated GPU keeps 360 bytes of each, so there are few. */
static void contexts(void)
{
    CUcontext own;
    CUstream stream;
    CUevent event;
    CUmodule module;
    CUfunction kernel;
    OK(cuCtxCreate_v2, &own, 0, 0);
    OK(cuModuleLoadData, &module, ".version 7.0\n.target sm_52\n.address_size 64\n");
    OK(cuModuleGetFunction, &kernel, module, "of_a_context");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    for (int i = 0; i < BATCH; i++) LAUNCH(kernel, i % 2 ? stream : NULL);
    OK(cuEventRecord, event, stream);
    OK(cuCtxSynchronize);
    OK(cuEventDestroy_v2, event);
    OK(cuModuleUnload, module);
    OK(cuCtxDestroy_v2, own);
    OK(cuCtxSetCurrent, app_context);
}

static void (*const kinds[])(void) = {
    streams_and_events, host_functions, streams_and_events, graphs, host_functions};

static void *works(void *which)
{
    OK(cuCtxSetCurrent, app_context);
    for (size_t i = (size_t)which; !done; i++) {
        kinds[i % (sizeof kinds / sizeof *kinds)]();
        usleep((useconds_t)pace);
    }
    return NULL;
}

static void *short_thread(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    for (int i = 0; i < BATCH; i++) LAUNCH(empty, CU_STREAM_PER_THREAD);
    OK(cuStreamSynchronize, CU_STREAM_PER_THREAD);
    return unused;
}

/* Short threads by the hundred each second, as the rounds of the others. */
static void *makes_threads(void *unused)
{
    pthread_t thread[4];
    while (!done) {
        for (int i = 0; i < 4; i++) THREAD(&thread[i], short_thread, NULL);
        for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
        usleep((useconds_t)(5 * pace));
    }
    return unused;
}

/* Children that do nothing, that make a call, which CUDA refuses them, and that become another
 * program. */
static void *forks(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    for (int i = 0; !done; i++) {
        contexts();
        pid_t child = fork();
        if (!child && i % 3 == 1) (void)!CU(cuStreamSynchronize, NULL);
        if (!child && i % 3 == 2) execl("/bin/true", "true", (char *)NULL);
        if (!child) _exit(0);
        if (child < 0 || waitpid(child, NULL, 0) != child) exit(8);
        usleep(200000);
    }
    return unused;
}

static bool input_ended(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    char byte;
    return poll(&input, 1, 1000) > 0 && read(0, &byte, 1) <= 0;
}

static void mix(long seconds)
{
    pthread_t thread[WORKERS + 2];
    for (size_t i = 0; i < WORKERS; i++) THREAD(&thread[i], works, (void *)i);
    THREAD(&thread[WORKERS], makes_threads, NULL);
    THREAD(&thread[WORKERS + 1], forks, NULL);
    for (long i = 0; seconds ? i < seconds : !input_ended(); i++) {
        if (seconds) app_sleep_ms(1000);
        at("mix");
    }
    done = true;
    for (int i = 0; i < WORKERS + 2; i++) pthread_join(thread[i], NULL);
}

/* --- so many at once --- */

static long count;

static void hold_streams(long n)
{
    CUstream *all = calloc((size_t)n, sizeof *all);
    for (long i = 0; i < n; i++) OK(cuStreamCreate, &all[i], CU_STREAM_NON_BLOCKING);
    for (long i = 0; i < n; i++) LAUNCH(empty, all[i]);
    OK(cuCtxSynchronize);
    at("there"), seen();
    for (long i = n; i-- > 0;)
        OK(cuStreamDestroy_v2, all[i]); /* newest first: quick on the simulated GPU */
    free(all);
}

static void hold_events(long n)
{
    CUevent *all = calloc((size_t)n, sizeof *all);
    for (long i = 0; i < n; i++) OK(cuEventCreate, &all[i], CU_EVENT_DISABLE_TIMING);
    for (long i = 0; i < n; i++) OK(cuEventRecord, all[i], NULL);
    at("there"), seen();
    for (long i = n; i-- > 0;) OK(cuEventDestroy_v2, all[i]);
    free(all);
}

static void hold_graphs(long n)
{
    CUgraph *all = calloc((size_t)n, sizeof *all);
    CUgraphExec *execs = calloc((size_t)n, sizeof *execs);
    CUstream stream;
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    for (long i = 0; i < n; i++) {
        OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
        for (int j = 0; j < 4; j++) LAUNCH(empty, stream);
        OK(cuStreamEndCapture, stream, &all[i]);
        OK(cuGraphInstantiateWithFlags, &execs[i], all[i], 0);
        OK(cuGraphLaunch, execs[i], stream);
    }
    OK(cuStreamSynchronize, stream);
    at("there"), seen();
    for (long i = n; i-- > 0;) {
        OK(cuGraphExecDestroy, execs[i]);
        OK(cuGraphDestroy, all[i]);
    }
    OK(cuStreamDestroy_v2, stream);
    free(all), free(execs);
}

static pthread_barrier_t all_there, all_seen;
static void *held_thread(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    for (int i = 0; i < 10000; i++) {
        LAUNCH(empty, CU_STREAM_PER_THREAD);
        if (i % 100 == 0) usleep(1000);
    }
    OK(cuStreamSynchronize, CU_STREAM_PER_THREAD);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_seen);
    return unused;
}

static void hold_threads(long n)
{
    pthread_t *all = calloc((size_t)n, sizeof *all);
    pthread_barrier_init(&all_there, NULL, (unsigned)n + 1);
    pthread_barrier_init(&all_seen, NULL, (unsigned)n + 1);
    for (long i = 0; i < n; i++) THREAD(&all[i], held_thread, NULL);
    pthread_barrier_wait(&all_there);
    at("there"), seen();
    pthread_barrier_wait(&all_seen);
    for (long i = 0; i < n; i++) pthread_join(all[i], NULL);
    free(all);
}

/* The tables of calls are full afterwards, so what follows is what things take. */
static void fill_tables(void)
{
    CUstream stream;
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 300000; i++) LAUNCH(empty, stream);
    OK(cuStreamSynchronize, stream);
    OK(cuStreamDestroy_v2, stream);
}

static int hold(const char *kind, long n, long rounds)
{
    static const struct {
        const char *name;
        void (*hold)(long n);
    } all[] = {{"streams", hold_streams}, {"events", hold_events}, {"graphs", hold_graphs},
        {"threads", hold_threads}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].name, kind)) continue;
        fill_tables();
        at("gone"), seen();
        for (long round = 0; round < rounds; round++) {
            all[i].hold(n);
            at("gone"), seen();
        }
        return 0;
    }
    return 2;
}

/* --- many calls --- */

static void *calls(void *unused)
{
    CUresult (*query)(CUstream) = (__typeof__(query))dlsym(app_driver, "cuStreamQuery");
    CUstream stream;
    OK(cuCtxSetCurrent, app_context);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    for (long i = 0; i < count; i++) {
        query(stream);
        if (i % 4096 == 4095) cheap += 4096;
    }
    OK(cuStreamDestroy_v2, stream);
    done = true;
    return unused;
}

static void many_calls(long n, int threads)
{
    pthread_t thread[64];
    count = n / threads;
    for (int i = 0; i < threads && i < 64; i++) THREAD(&thread[i], calls, NULL);
    while (!done) app_sleep_ms(1000), at("calls");
    for (int i = 0; i < threads && i < 64; i++) pthread_join(thread[i], NULL);
    at("calls");
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    app_start(0);
    empty = app_kernel("empty_kernel");
    OK(cuMemAlloc_v2, &memory, 64);
    if (!strcmp(argv[1], "hold")) return argc < 5 ? 2 : hold(argv[2], atol(argv[3]), atol(argv[4]));
    if (!strcmp(argv[1], "calls")) many_calls(atol(argv[2]), atoi(argv[3]));
    else pace = argc > 2 ? atol(argv[2]) : pace, mix(atol(argv[1]));
    return 0;
}
