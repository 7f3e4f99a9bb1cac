/*
 * hangs NAME: plants work that never ends, or that does end, prints "ready" and waits to be killed,
 * or for the end of its input. What custream hang and the report of its trace must say of each is
 * in tests/cases/test_hang.py. Kernels are words that the simulated GPU knows.
 */
#include "tests/apps/planted/device.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHORT = 100, FOREVER_US = 4000000000u };

static CUstream a, b, c;

static void *synchronises(void *stream)
{
    pthread_setname_np(pthread_self(), "waiter");
    cuStreamSynchronize(stream);
    return NULL;
}
static void *synchronises_all(void *context)
{
    pthread_setname_np(pthread_self(), "waiter");
    cuCtxSetCurrent(context);
    cuCtxSynchronize();
    return NULL;
}
static void *synchronises_event(void *event)
{
    pthread_setname_np(pthread_self(), "waiter");
    cuEventSynchronize(event);
    return NULL;
}
static void *copies_back(void *context)
{
    pthread_setname_np(pthread_self(), "reader");
    static char bytes[16];
    CUdeviceptr memory;
    cuCtxSetCurrent(context);
    cuMemAlloc(&memory, sizeof bytes);
    cuMemcpyDtoH(bytes, memory, sizeof bytes);
    return NULL;
}

static void on_thread(void *(*run)(void *), void *of)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, of)) exit(1);
    pthread_detach(thread);
}
static CUcontext context_now(void)
{
    CUcontext context;
    MUST(cuCtxGetCurrent(&context));
    return context;
}

static void never_returns(void *unused)
{
    (void)unused;
    for (;;) pause();
}

/* Each stream has done something. */
static void begin(void)
{
    launch(FIRST, SHORT, a);
    launch(SECOND, SHORT, b);
    launch(THIRD, SHORT, c);
    MUST(cuCtxSynchronize());
}

static void kernel(void)
{
    CUmodule module;
    CUfunction function;
    unsigned us = FOREVER_US;
    MUST(cuModuleLoadData(&module, "any"));
    MUST(cuModuleGetFunction(&function, module, "sleep_second"));
    begin();
    MUST(cuLaunchKernel(function, 3, 4, 5, 64, 2, 3, 0, a, (void *[]){&us}, NULL));
    launch(THIRD, SHORT, a);
    launch(FIRST, SHORT, a);
    on_thread(synchronises, a);
}

static void value(void)
{
    begin();
    gate_wait(gate_new(), a);
    launch(SECOND, SHORT, a);
    on_thread(synchronises_all, context_now());
}

static void function_blocks(void)
{
    begin();
    MUST(cuLaunchHostFunc(a, never_returns, NULL));
    launch(SECOND, SHORT, a);
}

enum { QUEUE = 1200 }; /* launches: more than one takes */

/* The host function wants a lock that a thread holds while it launches behind it: until the queue
 * is full. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void locks(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}
static void *launches_locked(void *context)
{
    pthread_setname_np(pthread_self(), "launcher");
    cuCtxSetCurrent(context);
    pthread_mutex_lock(&lock);
    MUST(cuLaunchHostFunc(a, locks, NULL));
    for (int i = 0; i < QUEUE; i++) launch(SECOND, SHORT, a);
    pthread_mutex_unlock(&lock);
    return NULL;
}
static void host_lock(void)
{
    begin();
    on_thread(launches_locked, context_now());
}

static void *launches_many(void *context)
{
    pthread_setname_np(pthread_self(), "launcher");
    cuCtxSetCurrent(context);
    for (int i = 0; i < QUEUE; i++) launch(SECOND, SHORT, a);
    return NULL;
}

/* Many threads wait for the stream besides. */
static void *synchronises_later(void *context)
{
    cuCtxSetCurrent(context);
    cuStreamSynchronize(a);
    return NULL;
}
static void lock_of_many(void)
{
    begin();
    pthread_mutex_lock(&lock);
    MUST(cuLaunchHostFunc(a, locks, NULL));
    for (int i = 0; i < 60; i++) on_thread(synchronises_later, context_now());
    on_thread(launches_many, context_now());
}

/* A host function takes its time. Work of other streams goes on, though a call on one of them lasts
 * long. */
static void sleeps(void *unused)
{
    (void)unused;
    sleep(1000);
}
static void *copies_much(void *context)
{
    pthread_setname_np(pthread_self(), "copier");
    cuCtxSetCurrent(context);
    const size_t size = 600u << 20;
    char *from = malloc(size);
    CUdeviceptr to;
    MUST(cuMemAlloc(&to, size));
    for (;;) {
        MUST(cuMemcpyHtoDAsync(to, from, size, b));
        MUST(cuStreamSynchronize(b));
    }
}
static void beside(void)
{
    begin();
    MUST(cuLaunchHostFunc(a, sleeps, NULL));
    for (int i = 0; i < 5; i++) launch(SECOND, SHORT, a);
    on_thread(copies_much, context_now());
}

/* The same, but who holds the lock launches nothing: the driver keeps its calls waiting while
 * somebody else's launch waits for room. */
static void *creates_locked(void *context)
{
    pthread_setname_np(pthread_self(), "creator");
    cuCtxSetCurrent(context);
    pthread_mutex_lock(&lock);
    MUST(cuLaunchHostFunc(a, locks, NULL));
    on_thread(launches_many, context);
    for (;;) {
        CUstream stream = free_stream();
        MUST(cuStreamDestroy(stream));
    }
}
static void driver_lock(void)
{
    begin();
    on_thread(creates_locked, context_now());
}

/* No queue is full: the end of an allocation waits for all work, of which the host function is
 * part. */
static void *frees_locked(void *context)
{
    pthread_setname_np(pthread_self(), "freer");
    cuCtxSetCurrent(context);
    CUdeviceptr memory;
    MUST(cuMemAlloc(&memory, 1));
    pthread_mutex_lock(&lock);
    MUST(cuLaunchHostFunc(a, locks, NULL));
    MUST(cuMemFree(memory));
    return NULL;
}
static void free_lock(void)
{
    begin();
    on_thread(frees_locked, context_now());
}

/* The queue is full behind a long kernel, and a host function of another stream wants what the
 * launching thread holds. */
static void *launches_many_locked(void *context)
{
    pthread_setname_np(pthread_self(), "launcher");
    pthread_mutex_lock(&lock);
    cuCtxSetCurrent(context);
    MUST(cuLaunchHostFunc(b, locks, NULL));
    return launches_many(context);
}
static void lock_beside(void)
{
    begin();
    launch(FIRST, FOREVER_US, a);
    on_thread(launches_many_locked, context_now());
}

/* Nobody waits for anybody: the queue is full behind a long kernel. */
static void full_queue(void)
{
    begin();
    launch(FIRST, FOREVER_US, a);
    on_thread(launches_many, context_now());
}

/* a waits for a value that b writes behind a wait for an event of a's, which is recorded behind
 * that. */
static void circle(void)
{
    begin();
    struct gate gate = gate_new();
    CUevent event = event_new();
    gate_wait(gate, a);
    MUST(cuEventRecord(event, a));
    launch(FIRST, SHORT, a);
    MUST(cuStreamWaitEvent(b, event, 0));
    MUST(cuStreamWriteValue32(b, (CUdeviceptr)(uintptr_t)gate.open, 1, 0));
    launch(SECOND, SHORT, b);
    CUevent late = event_new();
    MUST(cuEventRecord(late, b));
    MUST(cuStreamWaitEvent(c, late, 0));
    launch(THIRD, SHORT, c);
    on_thread(synchronises_event, late);
}

/* The legacy default stream behind a blocked stream, and another one behind it. */
static void legacy(void)
{
    CUstream blocking = blocking_stream(), behind = blocking_stream();
    begin();
    gate_wait(gate_new(), blocking);
    launch(FIRST, SHORT, blocking);
    launch(SECOND, SHORT, CU_STREAM_LEGACY);
    CUevent event = event_new();
    MUST(cuEventRecord(event, behind)); /* takes no time, and has its place in the order */
    launch(THIRD, SHORT, behind);
    MUST(cuStreamWaitEvent(b, event, 0));
    launch(SECOND, SHORT, b);
    launch(THIRD, SHORT, a); /* non-blocking: nothing holds it */
}

/* Nothing has run on either, and there is another context: that both are of one is not in the
 * trace. */
static void order(void)
{
    CUcontext other, here = context_now();
    begin();
    MUST(cuCtxCreate(&other, NULL, 0, 0));
    MUST(cuCtxSetCurrent(here));
    launch(FIRST, FOREVER_US, blocking_stream());
    launch(SECOND, SHORT, CU_STREAM_LEGACY);
}

static void chain(void)
{
    CUevent first = event_new(), second = event_new();
    begin();
    launch(FIRST, FOREVER_US, a);
    MUST(cuEventRecord(first, a));
    MUST(cuStreamWaitEvent(b, first, 0));
    launch(SECOND, SHORT, b);
    MUST(cuEventRecord(second, b));
    MUST(cuStreamWaitEvent(c, second, 0));
    launch(THIRD, SHORT, c);
}

/* Two launches of one graph: with an open gate, and with a closed one, at which its second kernel
 * waits. */
static void graph(void)
{
    begin();
    CUgraph captured;
    CUgraphExec exec;
    struct gate gate = gate_new();
    MUST(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch(FIRST, SHORT, a);
    gate_wait(gate, a);
    launch(SECOND, SHORT, a);
    MUST(cuStreamEndCapture(a, &captured));
    MUST(cuGraphInstantiate(&exec, captured, 0));
    gate_open(gate);
    MUST(cuGraphLaunch(exec, a));
    MUST(cuStreamSynchronize(a));
    *gate.open = 0;
    MUST(cuGraphLaunch(exec, a));
    launch(THIRD, SHORT, a);
}

static void capture(void)
{
    begin();
    CUevent event = event_new();
    MUST(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch(FIRST, SHORT, a);
    MUST(cuEventRecord(event, a));
    MUST(cuStreamWaitEvent(b, event, 0));
    launch(SECOND, SHORT, b);
    launch(THIRD, SHORT, c);
    MUST(cuStreamSynchronize(c));
}

/* A capture that nobody ends, and that is over: its stream is gone. */
static void gone(void)
{
    CUstream stream = free_stream();
    begin();
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch(FIRST, SHORT, stream);
    MUST(cuStreamDestroy(stream));
}

/* The work of another context, for which the wait for this one does not wait. */
static void contexts(void)
{
    CUcontext other, here = context_now();
    begin();
    MUST(cuCtxCreate(&other, NULL, 0, 0));
    CUstream stream = free_stream();
    gate_wait(gate_new(), stream);
    MUST(cuCtxSetCurrent(here));
    MUST(cuCtxSynchronize());
}

static void copy(void)
{
    begin();
    CUstream blocking = blocking_stream();
    gate_wait(gate_new(), blocking);
    launch(FIRST, SHORT, blocking);
    on_thread(copies_back, context_now());
}

/* a waits for an event that a graph is to record behind a kernel on b. What c waits for likewise
 * has nothing behind it. */
static void node(void)
{
    begin();
    CUevent event = event_new();
    CUgraph captured;
    CUgraphExec exec;
    MUST(cuStreamBeginCapture(b, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch(SECOND, FOREVER_US, b);
    MUST(cuEventRecordWithFlags(event, b, CU_EVENT_RECORD_EXTERNAL));
    MUST(cuStreamEndCapture(b, &captured));
    MUST(cuGraphInstantiate(&exec, captured, 0));
    MUST(cuEventRecord(event, c));
    MUST(cuStreamSynchronize(c));
    MUST(cuGraphLaunch(exec, b));
    MUST(cuStreamWaitEvent(a, event, 0));
    launch(FIRST, SHORT, a);
    MUST(cuStreamWaitEvent(c, event, 0));
    on_thread(synchronises_event, event);
}

static void busy(void)
{
    begin();
    launch(FIRST, FOREVER_US, a);
    launch(SECOND, FOREVER_US, b);
    launch(THIRD, FOREVER_US, c);
}

/* --- what does not hang --- */

static void done(void)
{
    CUevent event = event_new();
    begin();
    launch(FIRST, SHORT, a);
    MUST(cuEventRecord(event, a));
    MUST(cuStreamWaitEvent(b, event, 0));
    launch(SECOND, SHORT, b);
    MUST(cuStreamSynchronize(b));
}

/* All has ended, and nobody has waited for it: a wait for a value that was written is over, too. */
static void opened(void)
{
    struct gate gate = gate_new();
    CUevent event = event_new();
    begin();
    gate_wait(gate, a);
    launch(FIRST, SHORT, a);
    MUST(cuEventRecord(event, a));
    MUST(cuStreamWaitEvent(b, event, 0));
    launch(SECOND, SHORT, b);
    gate_open(gate);
    while (cuStreamQuery(b) != CUDA_SUCCESS) usleep(1000);
}

static void streams(void)
{
    begin();
    for (int i = 0; i < 2000; i++)
        launch(i % 2 ? FIRST : SECOND, i % 100 == 7 ? FOREVER_US : SHORT, free_stream());
}

/* A trace of more than 64 MiB. */
static void many(void)
{
    for (int i = 0; i < 250000; i++) launch(FIRST, 0, a);
    chain();
}

/* The hanging call is followed by much work that ends: no part of 1 MiB that is left has the call.
 */
static void early(void)
{
    CUevent event = event_new();
    begin();
    gate_wait(gate_new(), a);
    MUST(cuEventRecord(event, a));
    MUST(cuStreamWaitEvent(b, event, 0));
    launch(SECOND, SHORT, b);
    for (int i = 0; i < 20000; i++) launch(THIRD, 0, c);
    MUST(cuStreamSynchronize(c));
}

static void child(void)
{
    if (fork()) return wait(NULL), exit(0);
    device_use(0);
    a = free_stream(), b = free_stream(), c = free_stream();
    kernel();
}

static const struct row {
    const char *name;
    void (*run)(void);
} rows[] = {{"kernel", kernel}, {"value", value}, {"host_function", function_blocks},
    {"host_lock", host_lock}, {"lock_of_many", lock_of_many}, {"beside", beside},
    {"driver_lock", driver_lock}, {"free_lock", free_lock}, {"lock_beside", lock_beside},
    {"full_queue", full_queue}, {"circle", circle}, {"legacy", legacy}, {"order", order},
    {"chain", chain}, {"early", early}, {"graph", graph}, {"capture", capture}, {"gone", gone},
    {"contexts", contexts}, {"copy", copy}, {"node", node}, {"busy", busy}, {"done", done},
    {"opened", opened}, {"streams", streams}, {"long", many}, {"child", child}};

int main(int argc, char **argv)
{
    const struct row *row = rows;
    while (argc == 2 && row < rows + sizeof rows / sizeof *rows && strcmp(row->name, argv[1]) != 0)
        row++;
    if (argc != 2 || row == rows + sizeof rows / sizeof *rows) return 2;
    if (row->run != child) {
        device_use(0);
        a = free_stream(), b = free_stream(), c = free_stream();
    }
    row->run();
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) continue;
    fflush(stdout);
    _exit(0);
}
