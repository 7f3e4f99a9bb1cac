/*
 * Runs a small program of stream operations, read from a file: script FILE.
 *
 *   api legacy|per-thread    which form of the calls it makes, as in a program that was compiled
 * that way; the first line 0 create s1 1            thread, operation, arguments; the threads take
 * turns, so that calls are made in the order of the lines
 *
 * Arguments: s1 a created stream, zero (handle 0), legacy and own (CU_STREAM_LEGACY,
 * CU_STREAM_PER_THREAD); c1 a cell of device memory, h1 one of pinned host memory, m1 one that
 * `alloc` made; e1 an event, g1 a graph; numbers. A cell is 32 bits. The operations are listed at
 * the end of this file. Printed are, for each line, its number, the operation, the driver's answer
 * and what was asked for; then what callbacks were given, and all cells.
 *
 * On the simulated GPU only: kernels are step31 and mix31 of docs/fakecuda.md, and host functions
 * work on device memory.
 */
#include "tests/apps/app.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum { SLOTS = 32, LINES = 4096, WORDS = 8, THREADS = 8, DEVICES = 2, MOVED = 1 << 23 };

struct argument {
    long number;
    CUstream stream, *stream_slot;
    CUdeviceptr cell, *cell_slot;
    CUevent *event;
    struct graph {
        CUgraph graph;
        CUgraphExec exec;
    } *graph;
};
typedef CUresult operation(const struct argument *a);

static struct line {
    int thread, number;
    char words[WORDS][16];
    operation *run;
} lines[LINES];
static int line_count, thread_count = 1;

static int per_thread; /* the form of the calls */
static CUstream streams[SLOTS];
static CUevent events[SLOTS];
static struct graph graphs[SLOTS];
static CUdeviceptr device_cells, host_cells, made_cells[SLOTS];
static struct kernels {
    CUfunction step31, mix31;
} kernels[DEVICES];
static CUcontext contexts[DEVICES];
static __thread int device; /* that the thread uses */
static CUgreenCtx green;
static char said[256]; /* of the line that runs */
static void clock_pass(long us);

#define PTSZ(name, ...) (per_thread ? CU(name##_ptsz, __VA_ARGS__) : CU(name, __VA_ARGS__))
#define PTDS(name, ...) (per_thread ? CU(name##_ptds, __VA_ARGS__) : CU(name, __VA_ARGS__))

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said + strlen(said), sizeof said - strlen(said), format, arguments);
    va_end(arguments);
}

/* --- devices --- */

/* The thread's next calls are for the device of that number. */
static CUresult use_device(int number)
{
    device = number;
    if (contexts[device]) return CU(cuCtxSetCurrent, contexts[device]);
    app_start(device);
    contexts[device] = app_context;
    kernels[device] = (struct kernels){app_kernel("step31"), app_kernel("mix31")};
    return CUDA_SUCCESS;
}
static CUresult op_device(const struct argument *a) { return use_device((int)a[0].number); }

/* --- streams --- */

static CUresult op_create(const struct argument *a)
{
    return CU(cuStreamCreate, a[0].stream_slot, (unsigned)a[1].number);
}
static CUresult op_createp(const struct argument *a)
{
    return CU(
        cuStreamCreateWithPriority, a[0].stream_slot, (unsigned)a[1].number, (int)a[2].number);
}
static CUresult op_green(const struct argument *a)
{
    if (!green) OK(cuGreenCtxCreate, &green, NULL, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    return CU(
        cuGreenCtxStreamCreate, a[0].stream_slot, green, (unsigned)a[1].number, (int)a[2].number);
}
static CUresult op_destroy(const struct argument *a) { return CU(cuStreamDestroy_v2, a[0].stream); }

#define ASK(op, call, type, show) \
    static CUresult op_##op(const struct argument *a) \
    { \
        type value = (type)0; \
        CUresult result = PTSZ(call, a[0].stream, &value); \
        if (!result) say(" %lld", (long long)(show)); \
        return result; \
    }
ASK(priority, cuStreamGetPriority, int, value)
ASK(flags, cuStreamGetFlags, unsigned, value)
ASK(id, cuStreamGetId, unsigned long long, value)
ASK(context, cuStreamGetCtx, CUcontext, value == contexts[device])
ASK(capturing, cuStreamIsCapturing, CUstreamCaptureStatus, value)

static CUresult op_getprio(const struct argument *a)
{
    CUstreamAttrValue value = {.priority = 99};
    CUresult result = PTSZ(cuStreamGetAttribute, a[0].stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
    if (!result) say(" %d", value.priority);
    return result;
}
static CUresult op_setprio(const struct argument *a)
{
    CUstreamAttrValue value = {.priority = (int)a[1].number};
    return PTSZ(cuStreamSetAttribute, a[0].stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
}
static CUresult op_range(const struct argument *a)
{
    int least = 99, greatest = 99;
    CUresult result = CU(cuCtxGetStreamPriorityRange, &least, &greatest);
    (void)a;
    say(" %d %d", least, greatest);
    return result;
}

static CUresult op_query(const struct argument *a) { return PTSZ(cuStreamQuery, a[0].stream); }
/* As query, where it depends on time whether the work is done. */
static CUresult op_poll(const struct argument *a)
{
    CUresult result = PTSZ(cuStreamQuery, a[0].stream);
    return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}
static CUresult op_sync(const struct argument *a) { return PTSZ(cuStreamSynchronize, a[0].stream); }
static CUresult op_ctxsync(const struct argument *a) { return (void)a, CU(cuCtxSynchronize); }

/* --- work --- */

#define LAUNCH_ON(kernel, at, ...) \
    do { \
        void *parameters_[] = {__VA_ARGS__}; \
        return PTSZ(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, at, parameters_, NULL); \
    } while (0)

static CUresult op_step(const struct argument *a)
{
    CUdeviceptr cell = a[1].cell;
    unsigned k = (unsigned)a[2].number, us = (unsigned)a[3].number;
    LAUNCH_ON(kernels[device].step31, a[0].stream, &cell, &k, &us);
}
static CUresult op_mix(const struct argument *a)
{
    CUdeviceptr cell = a[1].cell, other = a[2].cell;
    unsigned us = (unsigned)a[3].number;
    LAUNCH_ON(kernels[device].mix31, a[0].stream, &cell, &other, &us);
}
/* With a priority of the launch's own. */
static CUresult op_stepx(const struct argument *a)
{
    CUdeviceptr cell = a[1].cell;
    unsigned k = (unsigned)a[2].number, us = (unsigned)a[3].number;
    void *parameters[] = {&cell, &k, &us};
    CUlaunchAttribute attribute = {
        .id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value = {.priority = (int)a[4].number}};
    CUlaunchConfig config = {.gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 1,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = a[0].stream,
        .attrs = &attribute,
        .numAttrs = 1};
    CUresult result = PTSZ(cuLaunchKernelEx, &config, kernels[device].step31, parameters, NULL);
    if (attribute.value.priority != (int)a[4].number || config.hStream != a[0].stream)
        say(" changed");
    return result;
}

static CUresult op_set(const struct argument *a)
{
    return PTSZ(cuMemsetD32Async, a[1].cell, (unsigned)a[2].number, 1, a[0].stream);
}
static CUresult op_setd(const struct argument *a)
{
    return PTDS(cuMemsetD32_v2, a[0].cell, (unsigned)a[1].number, 1);
}
static CUresult op_copy(const struct argument *a)
{
    return PTSZ(cuMemcpyAsync, a[1].cell, a[2].cell, 4, a[0].stream);
}
static CUresult op_copyd(const struct argument *a)
{
    return PTDS(cuMemcpyDtoD_v2, a[0].cell, a[1].cell, 4);
}
static CUresult op_up(const struct argument *a)
{
    unsigned value = (unsigned)a[2].number;
    return PTSZ(cuMemcpyHtoDAsync_v2, a[1].cell, &value, 4, a[0].stream);
}
static CUresult op_upd(const struct argument *a)
{
    unsigned value = (unsigned)a[1].number;
    return PTDS(cuMemcpyHtoD_v2, a[0].cell, &value, 4);
}
static CUresult op_down(const struct argument *a)
{
    return PTSZ(cuMemcpyDtoHAsync_v2, (void *)(uintptr_t)a[1].cell, a[2].cell, 4, a[0].stream);
}
static CUresult op_read(const struct argument *a)
{
    unsigned value = 0;
    CUresult result = PTDS(cuMemcpyDtoH_v2, &value, a[0].cell, 4);
    if (!result) say(" %u", value);
    return result;
}
static CUresult op_value(const struct argument *a)
{
    return PTSZ(cuStreamWriteValue32_v2, a[0].stream, a[1].cell, (unsigned)a[2].number, 0);
}

/* A copy of so many bytes from the host (0) or to it (1), of ordinary memory by a call that waits
 * (0) or of pinned memory by one that does not (1). The former goes to the default stream. */
static CUresult op_move(const struct argument *a)
{
    static char ordinary[MOVED];
    const CUdeviceptr there = device_cells + SLOTS * 4;
    void *pinned = (unsigned *)(uintptr_t)host_cells + SLOTS;
    const size_t bytes = (size_t)a[3].number < MOVED ? (size_t)a[3].number : MOVED;
    if (a[1].number && a[2].number)
        return PTSZ(cuMemcpyDtoHAsync_v2, pinned, there, bytes, a[0].stream);
    if (a[2].number) return PTSZ(cuMemcpyHtoDAsync_v2, there, pinned, bytes, a[0].stream);
    return a[1].number ? PTDS(cuMemcpyDtoH_v2, ordinary, there, bytes)
                       : PTDS(cuMemcpyHtoD_v2, there, ordinary, bytes);
}

/* What comes behind it on the stream waits until another line releases the cell, so that it is
 * certain what has not run yet. */
static CUresult op_hold(const struct argument *a)
{
    return PTSZ(cuStreamWaitValue32_v2, a[0].stream, a[1].cell, 1, CU_STREAM_WAIT_VALUE_GEQ);
}
static CUresult op_release(const struct argument *a)
{
    *(volatile unsigned *)(uintptr_t)a[0].cell = 1;
    return CUDA_SUCCESS;
}

static CUresult op_heap(const struct argument *a) { return CU(cuMemAlloc_v2, a[0].cell_slot, 4); }
static CUresult op_unheap(const struct argument *a) { return CU(cuMemFree_v2, a[0].cell); }
static CUresult op_alloc(const struct argument *a)
{
    return PTSZ(cuMemAllocAsync, a[1].cell_slot, 4, a[0].stream);
}
static CUresult op_free(const struct argument *a)
{
    return PTSZ(cuMemFreeAsync, a[1].cell, a[0].stream);
}

/* --- host functions and callbacks --- */

struct call {
    volatile unsigned *cell;
    unsigned k;
    int line, calls;
    CUstream stream; /* what a callback was given */
    CUresult status;
    struct call *next;
};
static struct call *callbacks;
static int line_now;

static struct call *call_new(const struct argument *a)
{
    struct call *call = calloc(1, sizeof *call);
    if (!call) abort();
    call->cell = (volatile unsigned *)(uintptr_t)a[1].cell;
    call->k = (unsigned)a[2].number;
    call->line = line_now;
    return call;
}

static void CUDA_CB host_called(void *data)
{
    struct call *call = data;
    *call->cell = *call->cell * 31 + call->k;
}
static void CUDA_CB stream_called(CUstream stream, CUresult status, void *data)
{
    struct call *call = data;
    host_called(data);
    call->calls++;
    call->stream = stream;
    call->status = status;
}

static CUresult op_host(const struct argument *a)
{
    return PTSZ(cuLaunchHostFunc, a[0].stream, host_called, call_new(a));
}
static void CUDA_CB pause_called(void *us) { clock_pass((long)(intptr_t)us); }
static CUresult op_pause(const struct argument *a)
{
    return PTSZ(cuLaunchHostFunc, a[0].stream, pause_called, (void *)(intptr_t)a[1].number);
}
static CUresult op_callback(const struct argument *a)
{
    struct call *call = call_new(a);
    call->next = callbacks;
    callbacks = call;
    return PTSZ(cuStreamAddCallback, a[0].stream, stream_called, call, 0);
}

static void print_callbacks(void)
{
    for (struct call *c = callbacks; c; c = c->next) {
        char name[16] = "zero";
        if (c->stream == CU_STREAM_LEGACY) strcpy(name, "legacy");
        if (c->stream == CU_STREAM_PER_THREAD) strcpy(name, "own");
        for (int i = 0; c->stream && i < SLOTS; i++)
            if (c->stream == streams[i]) snprintf(name, sizeof name, "s%d", i);
        if (c->calls)
            printf("callback of line %d: stream %s, status %d, times %d\n", c->line, name,
                (int)c->status, c->calls);
        else printf("callback of line %d: none\n", c->line);
    }
}

/* --- events --- */

static CUresult op_event(const struct argument *a)
{
    return CU(cuEventCreate, a[0].event, (unsigned)a[1].number);
}
static CUresult op_record(const struct argument *a)
{
    return PTSZ(cuEventRecord, *a[0].event, a[1].stream);
}
static CUresult op_recordx(const struct argument *a)
{
    return PTSZ(cuEventRecordWithFlags, *a[0].event, a[1].stream, (unsigned)a[2].number);
}
static CUresult op_wait(const struct argument *a)
{
    return PTSZ(cuStreamWaitEvent, a[0].stream, *a[1].event, 0);
}
static CUresult op_esync(const struct argument *a) { return CU(cuEventSynchronize, *a[0].event); }
static CUresult op_edestroy(const struct argument *a) { return CU(cuEventDestroy_v2, *a[0].event); }
static CUresult op_equery(const struct argument *a) { return CU(cuEventQuery, *a[0].event); }
static CUresult op_epoll(const struct argument *a)
{
    CUresult result = CU(cuEventQuery, *a[0].event);
    return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}
static CUresult op_ipc(const struct argument *a)
{
    CUipcEventHandle handle;
    return CU(cuIpcGetEventHandle, &handle, *a[0].event);
}

/* --- graphs --- */

static CUresult op_begin(const struct argument *a)
{
    return PTSZ(cuStreamBeginCapture_v2, a[0].stream, (CUstreamCaptureMode)a[1].number);
}
static CUresult op_end(const struct argument *a)
{
    size_t nodes = 0;
    CUresult result = PTSZ(cuStreamEndCapture, a[0].stream, &a[1].graph->graph);
    if (!result && a[1].graph->graph) OK(cuGraphGetNodes, a[1].graph->graph, NULL, &nodes);
    if (!result) say(" %zu", nodes);
    return result;
}
static CUresult op_info(const struct argument *a)
{
    CUstreamCaptureStatus status = 0;
    cuuint64_t id;
    size_t count = 0;
    CUresult result =
        PTSZ(cuStreamGetCaptureInfo_v2, a[0].stream, &status, &id, NULL, NULL, &count);
    if (!result) say(" %d %zu", (int)status, count);
    return result;
}
static CUresult op_instantiate(const struct argument *a)
{
    return CU(cuGraphInstantiateWithFlags, &a[0].graph->exec, a[0].graph->graph, 0);
}
static CUresult op_instantiatex(const struct argument *a)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {
        .flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, .hUploadStream = a[1].stream};
    CUresult result =
        PTSZ(cuGraphInstantiateWithParams, &a[0].graph->exec, a[0].graph->graph, &params);
    if (params.hUploadStream != a[1].stream) say(" changed");
    return result;
}
static CUresult op_upload(const struct argument *a)
{
    return PTSZ(cuGraphUpload, a[0].graph->exec, a[1].stream);
}
static CUresult op_launch(const struct argument *a)
{
    return PTSZ(cuGraphLaunch, a[0].graph->exec, a[1].stream);
}

/* The thread itself sleeps. */
static CUresult op_rest(const struct argument *a)
{
    clock_pass(a[0].number);
    return CUDA_SUCCESS;
}

/* --- the program --- */

static const struct {
    const char *name, *arguments; /* s stream, c cell, e event, g graph, n number */
    operation *run;
} operations[] = {
#define OPERATION(name, arguments) {#name, arguments, op_##name},
    OPERATION(create, "sn") OPERATION(createp, "snn") OPERATION(green, "snn") OPERATION(destroy,
        "s") OPERATION(priority, "s") OPERATION(flags, "s") OPERATION(id, "s") OPERATION(context,
        "s") OPERATION(capturing, "s") OPERATION(getprio, "s") OPERATION(setprio,
        "sn") OPERATION(range, "") OPERATION(query, "s") OPERATION(poll, "s") OPERATION(sync,
        "s") OPERATION(ctxsync, "") OPERATION(step, "scnn") OPERATION(stepx, "scnnn") OPERATION(mix,
        "sccn") OPERATION(set, "scn") OPERATION(setd, "cn") OPERATION(copy, "scc") OPERATION(copyd,
        "cc") OPERATION(up, "scn") OPERATION(upd, "cn") OPERATION(down, "scc") OPERATION(read, "c")
        OPERATION(move, "snnn") OPERATION(value, "scn") OPERATION(hold, "sc") OPERATION(
            release, "c") OPERATION(heap, "c") OPERATION(unheap, "c") OPERATION(alloc, "sc")
            OPERATION(free, "sc") OPERATION(host, "scn") OPERATION(callback, "scn")
                OPERATION(pause, "sn") OPERATION(rest, "n") OPERATION(device, "n")
                    OPERATION(event, "en") OPERATION(record, "es") OPERATION(recordx, "esn")
                        OPERATION(wait, "se") OPERATION(esync, "e") OPERATION(edestroy, "e")
                            OPERATION(equery, "e") OPERATION(epoll, "e") OPERATION(ipc, "e")
                                OPERATION(begin, "sn") OPERATION(end, "sg") OPERATION(info, "s")
                                    OPERATION(instantiate, "g") OPERATION(instantiatex, "gs")
                                        OPERATION(upload, "gs") OPERATION(launch, "gs")};

static int wrong(int number, const char *what)
{
    fprintf(stderr, "script: line %d: %s\n", number, what);
    exit(2);
}

static const char *arguments_of(struct line *line)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (strcmp(operations[i].name, line->words[0]) != 0) continue;
        line->run = operations[i].run;
        return operations[i].arguments;
    }
    wrong(line->number, "no such operation");
    return NULL;
}

/* Reads "api legacy" and the lines; a '#' begins a comment. */
static void read_program(const char *path)
{
    char text[256], kind[16] = "";
    FILE *file = fopen(path, "r");
    if (!file) exit(2);
    for (int number = 1; fgets(text, sizeof text, file); number++) {
        struct line *line = &lines[line_count];
        text[strcspn(text, "#\n")] = 0;
        if (sscanf(text, "api %15s", kind) == 1) {
            per_thread = !strcmp(kind, "per-thread");
            continue;
        }
        line->number = number;
        int words = sscanf(text, "%d %15s %15s %15s %15s %15s %15s %15s", &line->thread,
            line->words[0], line->words[1], line->words[2], line->words[3], line->words[4],
            line->words[5], line->words[6]);
        if (words <= 0) continue;
        if (words != 2 + (int)strlen(arguments_of(line)) || line->thread < 0 ||
            line->thread >= THREADS)
            wrong(number, "wrong arguments");
        if (line->thread >= thread_count) thread_count = line->thread + 1;
        if (++line_count == LINES) wrong(number, "too many");
    }
    fclose(file);
    if (!*kind) wrong(1, "no api");
}

static struct argument argument_of(const struct line *line, char kind, const char *word)
{
    struct argument a = {0};
    int slot = atoi(word + 1);
    if (kind == 'n') return a.number = atol(word), a;
    if (kind == 's' && !strcmp(word, "zero")) return a;
    if (kind == 's' && !strcmp(word, "legacy")) return a.stream = CU_STREAM_LEGACY, a;
    if (kind == 's' && !strcmp(word, "own")) return a.stream = CU_STREAM_PER_THREAD, a;
    if (slot < 0 || slot >= SLOTS || !strchr(kind == 'c' ? "chm" : (char[]){kind, 0}, word[0]))
        wrong(line->number, word);
    a.stream_slot = &streams[slot];
    a.stream = streams[slot];
    a.event = &events[slot];
    a.graph = &graphs[slot];
    a.cell_slot = &made_cells[slot];
    a.cell = word[0] == 'c'   ? device_cells + (CUdeviceptr)slot * 4
             : word[0] == 'h' ? host_cells + (CUdeviceptr)slot * 4
                              : made_cells[slot];
    return a;
}

static void run_line(struct line *line)
{
    struct argument arguments[WORDS] = {0};
    const char *kinds = arguments_of(line);
    for (size_t i = 0; kinds[i]; i++)
        arguments[i] = argument_of(line, kinds[i], line->words[i + 1]);
    said[0] = 0;
    line_now = line->number;
    CUresult result = line->run(arguments);
    printf("%d %s %d%s\n", line->number, line->words[0], (int)result, said);
}

/* --- threads: whose line is next runs it --- */

static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static int next_line; /* under turn_lock, as all of the program's state is */

static void take_turns(int thread)
{
    bool started = thread == 0;
    pthread_mutex_lock(&turn_lock);
    while (next_line < line_count) {
        if (lines[next_line].thread != thread) {
            pthread_cond_wait(&turn_changed, &turn_lock);
            continue;
        }
        if (!started) use_device(0);
        started = true;
        run_line(&lines[next_line]);
        next_line++;
        pthread_cond_broadcast(&turn_changed);
    }
    pthread_mutex_unlock(&turn_lock);
}

#include "tests/apps/script_clock.h"

static bool ended; /* under turn_lock */

/* Stays until the cells have been read: with a thread its own stream goes. */
static void *worker(void *number)
{
    take_turns((int)(intptr_t)number);
    pthread_mutex_lock(&turn_lock);
    while (!ended) pthread_cond_wait(&turn_changed, &turn_lock);
    pthread_mutex_unlock(&turn_lock);
    return NULL;
}

static void print_cells(void)
{
    const volatile unsigned *device = (unsigned *)(uintptr_t)device_cells,
                            *host = (unsigned *)(uintptr_t)host_cells;
    for (int i = 0; i < SLOTS; i++)
        if (device[i]) printf("cell c%d %u\n", i, device[i]);
    for (int i = 0; i < SLOTS; i++)
        if (host[i]) printf("cell h%d %u\n", i, host[i]);
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    void *pinned;
    if (argc != 2) return 2;
    read_program(argv[1]);
    clock_join(0);
    use_device(0);
    OK(cuMemAlloc_v2, &device_cells, SLOTS * 4 + MOVED);
    OK(cuMemAllocHost_v2, &pinned, SLOTS * 4 + MOVED);
    host_cells = (CUdeviceptr)(uintptr_t)pinned;
    memset((void *)(uintptr_t)device_cells, 0, SLOTS * 4);
    memset(pinned, 0, SLOTS * 4);
    if (virtual_clock) return clock_program(), 0;
    for (int i = 1; i < thread_count; i++) THREAD(&threads[i], worker, (void *)(intptr_t)i);
    take_turns(0);
    printf("end %d\n", (int)CU(cuCtxSynchronize));
    print_callbacks();
    print_cells();
    pthread_mutex_lock(&turn_lock);
    ended = true;
    pthread_cond_broadcast(&turn_changed);
    pthread_mutex_unlock(&turn_lock);
    for (int i = 1; i < thread_count; i++) pthread_join(threads[i], NULL);
    return 0;
}
