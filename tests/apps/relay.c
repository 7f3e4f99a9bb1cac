/*
 * Threads hand things on to each other: what one has made, another uses, and each call returns
 * before the next thread is told. Which thread has which part is turned round by round, so that
 * each kind of thing goes from older threads to newer ones and back. Grids count the rounds.
 *
 * relay waits N [older | newer | turns]   a kernel of a millisecond, and a wait for it on another
 * thread: of its stream, its event, its context by turns; the older thread launches, the newer one
 * does, or eight threads by turns relay crowd N    the same on 40 streams at once: each kernel ends
 * later than the one before, and the context is waited for relay race N     no thread is told: one
 * launches on two streams, two others wait for all that there is at the moment relay events N   an
 * event is recorded on one thread, waited for on a second, and a third launches behind the wait;
 * every second round is held until then relay handles N  a stream is created on one thread, used on
 * a second and third, destroyed on a fourth relay graphs N   a capture over two streams with seven
 * threads: it is instantiated by another thread than captured it, every third is updated, and
 * launched relay ends N     threads that launch and end at once, and others that begin then and
 * wait
 */
#include "tests/apps/app.h"

#include <semaphore.h>

enum { MOST = 8, CROWD = 40 };

/* --- threads that do as they are told --- */

static struct worker {
    pthread_t thread;
    sem_t told, done;
    void (*job)(unsigned k);
    unsigned k;
} workers[MOST];

static void *work(void *of)
{
    struct worker *w = of;
    OK(cuCtxSetCurrent, app_context);
    for (;;) {
        while (sem_wait(&w->told)) continue;
        if (!w->job) return NULL;
        w->job(w->k);
        sem_post(&w->done);
    }
}

/* Each has its ring before the next one is there: a higher number is a newer thread. */
static void nothing(unsigned k) { OK(cuCtxGetDevice, &(CUdevice){(int)k}); }

static void tell(unsigned worker, void (*job)(unsigned), unsigned k)
{
    struct worker *w = &workers[worker % MOST];
    w->job = job;
    w->k = k;
    sem_post(&w->told);
}

/* Returns when it has done what it was told. */
static void hear(unsigned worker)
{
    while (sem_wait(&workers[worker % MOST].done)) continue;
}

static void on(unsigned worker, void (*job)(unsigned), unsigned k)
{
    tell(worker, job, k), hear(worker);
}

static void workers_begin(void)
{
    for (unsigned i = 0; i < MOST; i++) {
        sem_init(&workers[i].told, 0, 0);
        sem_init(&workers[i].done, 0, 0);
        THREAD(&workers[i].thread, work, &workers[i]);
        on(i, nothing, 0);
    }
}

static void workers_end(void)
{
    for (unsigned i = 0; i < MOST; i++) {
        tell(i, NULL, 0);
        pthread_join(workers[i].thread, NULL);
    }
}

/* --- what they do --- */

static CUstream streams[CROWD];
static CUevent events[2];
static CUfunction sleeper, empty, by_length;
static CUgraph graph, newer;
static CUgraphExec exec;

#define LAUNCH_NTH(kernel, k, stream) OK(cuLaunchKernel, kernel, k, 1, 1, 32, 1, 1, 0, stream, \
    NULL, NULL)

static void launch(unsigned k)
{
    LAUNCH_NTH(sleeper, k, streams[k % 2]);
    if (k % 3 == 1) OK(cuEventRecord, events[0], streams[k % 2]);
}

static void wait_for(unsigned k)
{
    if (k % 3 == 0) OK(cuStreamSynchronize, streams[k % 2]);
    if (k % 3 == 1) OK(cuEventSynchronize, events[0]);
    if (k % 3 == 2) OK(cuCtxSynchronize);
}

/* Three rounds of four, the kernel begins only once the wait for it is in the driver, however slow
 * the machine is. */
static volatile unsigned *rounds_over;
static _Atomic long waiter;
static int is_held(unsigned k) { return k % 4 != 1; }

static void launch_held(unsigned k)
{
    if (is_held(k))
        OK(cuStreamWaitValue32_v2, streams[k % 2], (CUdeviceptr)(size_t)rounds_over, k,
            CU_STREAM_WAIT_VALUE_GEQ);
    launch(k);
}

static void wait_held(unsigned k)
{
    waiter = app_tid();
    wait_for(k);
}

static void open_once_it_waits(unsigned k)
{
    while (is_held(k) && (!waiter || !app_sleeps(waiter))) app_sleep_ms(1);
    waiter = 0;
    *rounds_over = k;
}

static void waits(unsigned n, const char *how)
{
    for (unsigned k = 1; k <= n; k++) {
        const unsigned older = 1, newer_one = MOST - 1;
        if (!strcmp(how, "older"))
            on(older, launch_held, k), tell(newer_one, wait_held, k), open_once_it_waits(k),
                hear(newer_one);
        else if (!strcmp(how, "newer"))
            on(newer_one, launch_held, k), tell(older, wait_held, k), open_once_it_waits(k),
                hear(older);
        else
            on(k * 3, launch_held, k), tell(k * 5 + k / MOST, wait_held, k), open_once_it_waits(k),
                hear(k * 5 + k / MOST);
    }
}

/* --- many streams --- */

static void launch_crowd(unsigned k)
{
    unsigned us = k * 20;
    OK(cuLaunchKernel, by_length, k, 1, 1, 32, 1, 1, 0, streams[(k * 7) % CROWD], (void *[]){&us},
        NULL);
}

static void wait_context(unsigned k)
{
    (void)k;
    OK(cuCtxSynchronize);
}

static void crowd(unsigned n)
{
    for (unsigned round = 0; round < n; round++) {
        for (unsigned k = 1; k <= CROWD; k++) on(k + round, launch_crowd, k);
        on(round * 3, wait_context, 0);
    }
}

/* --- nobody is told --- */

static volatile int over;

static void *waits_on(void *stream)
{
    OK(cuCtxSetCurrent, app_context);
    for (; !over; usleep(100)) {
        if (stream) OK(cuStreamSynchronize, streams[1]);
        else OK(cuCtxSynchronize);
    }
    return NULL;
}

static void race(unsigned n)
{
    pthread_t waiter[2];
    for (int i = 0; i < 2; i++) THREAD(&waiter[i], waits_on, i ? streams : NULL);
    for (unsigned k = 1; k <= n; k++) {
        on(k, launch, 3 * k);
        if (k % 2 == 0) usleep(1500);
    }
    over = 1;
    for (int i = 0; i < 2; i++) pthread_join(waiter[i], NULL);
}

/* --- events --- */

/* Every second round the kernel begins only once the launch behind the wait has returned, however
 * slow the machine is. */
static void record(unsigned k)
{
    if (k % 2 == 0)
        OK(cuStreamWaitValue32_v2, streams[0], (CUdeviceptr)(size_t)rounds_over, k,
            CU_STREAM_WAIT_VALUE_GEQ);
    LAUNCH_NTH(sleeper, 2 * k, streams[0]);
    OK(cuEventRecord, events[k % 2], streams[0]);
}
static void stream_waits(unsigned k) { OK(cuStreamWaitEvent, streams[1], events[k % 2], 0); }
static void launch_behind(unsigned k) { LAUNCH_NTH(empty, 2 * k + 1, streams[1]); }
static void wait_behind(unsigned k) { OK(cuStreamSynchronize, streams[k % 2]); }

static void events_go_round(unsigned n)
{
    for (unsigned k = 1; k <= n; k++) {
        on(k, record, k);
        on(k * 3 + 1, stream_waits, k);
        on(k * 5 + 2, launch_behind, k);
        *rounds_over = k;
        if (k % 8 == 0) on(k * 7 + k / 8, wait_behind, k);
    }
}

/* --- handles --- */

static CUstream made;
static void create(unsigned k)
{
    OK(cuStreamCreate, &made, k % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT);
}
static void use(unsigned k) { LAUNCH_NTH(empty, k, made); }
static void destroy(unsigned k)
{
    (void)k;
    OK(cuStreamDestroy_v2, made);
}

static void handles(unsigned n)
{
    for (unsigned k = 1; k <= n; k++) {
        on(k, create, k);
        on(k * 3 + 1, use, k);
        on(k * 5 + 2, use, k);
        on(k * 7 + k / MOST, destroy, k);
    }
}

/* --- graphs --- */

static void begin_capture(unsigned k)
{
    OK(cuStreamBeginCapture_v2, streams[0], CU_STREAM_CAPTURE_MODE_RELAXED);
    LAUNCH_NTH(empty, 4 * k, streams[0]);
    OK(cuEventRecord, events[0], streams[0]);
}
static void join(unsigned k)
{
    (void)k;
    OK(cuStreamWaitEvent, streams[1], events[0], 0);
}
static void launch_joined(unsigned k)
{
    LAUNCH_NTH(empty, 4 * k + 1, streams[1]);
    OK(cuEventRecord, events[1], streams[1]);
}
static void join_back(unsigned k)
{
    (void)k;
    OK(cuStreamWaitEvent, streams[0], events[1], 0);
}
static void end_capture(unsigned k)
{
    (void)k;
    OK(cuStreamEndCapture, streams[0], &graph);
}
static void instantiate(unsigned k)
{
    (void)k;
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
}
static void update(unsigned k)
{
    CUgraphExecUpdateResultInfo info;
    (void)k;
    OK(cuGraphExecUpdate_v2, exec, newer, &info);
}
static void launch_graph(unsigned k)
{
    (void)k;
    OK(cuGraphLaunch, exec, streams[2]);
    OK(cuStreamSynchronize, streams[2]);
}

static void capture(unsigned k)
{
    on(k, begin_capture, k);
    on(k * 3 + 1, join, k);
    on(k * 5 + 2, launch_joined, k);
    on(k * 7 + 3, join_back, k);
    on(k + 4 + k / MOST, end_capture, k);
}

static void graphs(unsigned n)
{
    for (unsigned k = 1; k <= n; k++) {
        newer = NULL;
        capture(k);
        on(k * 3 + 5, instantiate, k);
        if (k % 3 == 0) {
            CUgraph first = graph;
            capture(k + n);
            newer = graph;
            graph = first;
            on(k * 5 + 6 + k / MOST, update, k);
        }
        on(k * 7 + 7, launch_graph, k);
        OK(cuGraphExecDestroy, exec);
        OK(cuGraphDestroy, graph);
        if (newer) OK(cuGraphDestroy, newer);
    }
}

/* --- threads that end --- */

static void *launches_and_ends(void *k)
{
    OK(cuCtxSetCurrent, app_context);
    launch_held((unsigned)(size_t)k);
    return NULL;
}

static void *waits_and_ends(void *k)
{
    OK(cuCtxSetCurrent, app_context);
    wait_held((unsigned)(size_t)k);
    return NULL;
}

static void ends(unsigned n)
{
    for (size_t k = 1; k <= n; k++) {
        pthread_t thread;
        THREAD(&thread, launches_and_ends, (void *)k);
        pthread_join(thread, NULL);
        THREAD(&thread, waits_and_ends, (void *)k);
        open_once_it_waits((unsigned)k);
        pthread_join(thread, NULL);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "waits";
    const unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 30;
    app_start(0);
    sleeper = app_kernel(!strcmp(what, "events") ? "sleep_us_50" : "sleep_us_1000");
    by_length = app_kernel("sleep");
    empty = app_kernel("empty_kernel");
    for (int i = 0; i < CROWD; i++) OK(cuStreamCreate, &streams[i], CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 2; i++) OK(cuEventCreate, &events[i], CU_EVENT_DISABLE_TIMING);
    for (int i = 0; i < 3; i++) {
        static const char *const keys[] = {"a", "b", "c"};
        NOTE(keys[i], "%p", (void *)streams[i]);
    }
    void *word;
    OK(cuMemAllocHost_v2, &word, sizeof *rounds_over);
    rounds_over = word;
    *rounds_over = 0;
    workers_begin();
    if (!strcmp(what, "waits")) waits(n, argc > 3 ? argv[3] : "turns");
    if (!strcmp(what, "crowd")) crowd(n);
    if (!strcmp(what, "race")) race(n);
    if (!strcmp(what, "events")) events_go_round(n);
    if (!strcmp(what, "handles")) handles(n);
    if (!strcmp(what, "graphs")) graphs(n);
    if (!strcmp(what, "ends")) ends(n);
    workers_end();
    OK(cuCtxSynchronize);
    if (strcmp(what, "race")) app_report();
    return 0;
}
