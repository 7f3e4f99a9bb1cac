/* A hook's refusal, and what hooks may change: the call is not made, nothing is done
 * for it, and what was under way stays so. */
#include "tests/api/rows.h"

#include <sys/wait.h>

static int code;
static void refuse(custream_hook_info_t *info, void *arg)
{
    (void)arg;
    if (!info->after) info->result = code;
}

/* ---- The end of a capture ---- */

static CUstreamCaptureStatus status_of(CUstream s)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    OK(cuStreamIsCapturing(s, &status));
    return status;
}

/* The stream goes on capturing: what is put on it afterwards is in the graph, and the program's own
 * end is the end. */
static void end_refused(CUstream s, CUdeviceptr memory)
{
    custream_hook_t hook;
    CUgraph graph = NULL;
    size_t nodes = 0;

    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuMemsetD8Async(memory, 1, 16, s));
    WORKS(custream_register_hook(CUSTREAM_HOOK_CAPTURE, refuse, NULL, &hook));
    CHECK_IS(cuStreamEndCapture(s, &graph), code);
    WORKS(custream_unregister_hook(hook));
    CHECK_IS(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuMemsetD8Async(memory, 2, 16, s));
    CHECK_IS(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuStreamEndCapture(s, &graph));
    OK(cuGraphGetNodes(graph, NULL, &nodes));
    CHECK_IS(nodes, 2);
    OK(cuGraphDestroy(graph));
}

/* All that an end may be answered, CUDA's own reasons among them. test_api.py looks at the timeline
 * and at what an audit makes of it. */
static void ends_refused(void)
{
    CUdeviceptr memory;
    CUstream s;

    start();
    if (!preloaded()) return;
    OK(cuMemAlloc(&memory, 16));
    OK(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    for (code = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; code <= CUDA_ERROR_CAPTURED_EVENT; code++)
        end_refused(s, memory);
    OK(cuMemsetD8(memory, 3, 16));
    OK(cuStreamDestroy(s));
}
ROW(85_end, "a refused end of a capture") { ends_refused(); }
ROW_WITH(85_end_sync, "a refused end of a capture, where each call is waited for",
    "CUSTREAM_STREAMS=sync")
{
    ends_refused();
}
ROW_WITH(85_end_serial, "a refused end of a capture, where all work is on one stream",
    "CUSTREAM_STREAMS=serial")
{
    ends_refused();
}

/* ---- All that can be refused ---- */

static void CUDA_CB never(void *arg) { (void)arg, FAILED(); }
static void CUDA_CB never_either(CUstream stream, CUresult result, void *arg)
{
    (void)stream, (void)result, (void)arg, FAILED();
}

static void all_refused(CUstream s, CUevent e, CUgraphExec exec, CUdeviceptr memory)
{
    CUlaunchConfig config = {.gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 1,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = s};

    CHECK_IS(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL), code);
    CHECK_IS(cuLaunchKernelEx(&config, empty, NULL, NULL), code);
    CHECK_IS(cuMemsetD8Async(memory, 1, 16, s), code);
    CHECK_IS(cuLaunchHostFunc(s, never, NULL), code);
    CHECK_IS(cuStreamAddCallback(s, never_either, NULL, 0), code);
    CHECK_IS(cuGraphLaunch(exec, s), code);
    CHECK_IS(cuEventRecord(e, s), code);
    CHECK_IS(cuStreamWaitEvent(s, e, 0), code);
    CHECK_IS(cuStreamSynchronize(s), code);
    CHECK_IS(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED), code);
}

/* What a hook makes is the driver's alone: nobody here knows the stream. */
static CUstream unseen;
static void make_unseen(custream_hook_info_t *info, void *arg)
{
    (void)arg;
    if (!info->after) OK(cuStreamCreate(&unseen, CU_STREAM_NON_BLOCKING));
}

/* test_api.py holds that between the two queries nobody asks the driver for anything, whatever the
 * settings. */
ROW(85_nothing, "nothing is done for a refused call")
{
    static const int codes[] = {
        CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_READY, CUDA_ERROR_INVALID_HANDLE};
    custream_hook_t hooks[CUSTREAM_HOOK_KINDS], hook;
    CUdeviceptr memory;
    CUgraphExec exec;
    CUgraph graph;
    CUstream s;
    CUevent e;

    start();
    if (!preloaded()) return;
    OK(cuMemAlloc(&memory, 16));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    WORKS(custream_register_hook(CUSTREAM_HOOK_EVENT_CREATE, make_unseen, NULL, &hook));
    OK(cuEventCreate(&e, 0)); /* its hook stays, so that what comes next is looked at where nothing
                                 is recorded too */
    for (int i = 0; i < 3; i++)
        OK(cuMemsetD8Async(memory, 1, 16, s)); /* the stream is known to whoever measures it */
    OK(cuStreamSynchronize(s));
    OK(cuMemsetD8(memory, 1, 16));
    for (int kind = CUSTREAM_HOOK_RECORD; kind <= CUSTREAM_HOOK_GRAPH_LAUNCH; kind++)
        WORKS(custream_register_hook((custream_hook_kind_t)kind, refuse, NULL, &hooks[kind]));
    OK(cuStreamQuery(s));
    for (int i = 0; i < 3; i++) {
        code = codes[i];
        all_refused(s, e, exec, memory);
        all_refused(unseen, e, exec, memory);
        all_refused(NULL, e, exec, memory);
        CHECK_IS(cuMemsetD8(memory, 2, 16), code);
    }
    OK(cuStreamQuery(s));
    for (int kind = CUSTREAM_HOOK_RECORD; kind <= CUSTREAM_HOOK_GRAPH_LAUNCH; kind++)
        WORKS(custream_unregister_hook(hooks[kind]));
    WORKS(custream_unregister_hook(hook));
    OK(cuStreamSynchronize(s));
    OK(cuStreamDestroy(s));
}

/* ---- Calls that are moved ---- */

static CUstream from, to, told;
static void send_elsewhere(custream_hook_info_t *info, void *arg)
{
    (void)arg;
    if (!info->after && info->stream == from) info->stream = to;
}
static void CUDA_CB note(CUstream stream, CUresult result, void *arg)
{
    (void)result, (void)arg;
    __atomic_store_n(&told, stream, __ATOMIC_SEQ_CST);
}

static void callback_moved(void)
{
    custream_hook_t hook;

    start();
    if (!preloaded()) return;
    OK(cuStreamCreate(&from, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&to, CU_STREAM_NON_BLOCKING));
    hold(to);
    WORKS(custream_register_hook(CUSTREAM_HOOK_CALLBACK, send_elsewhere, NULL, &hook));
    OK(cuStreamAddCallback(from, note, NULL, 0));
    WORKS(custream_unregister_hook(hook));
    usleep(2000);
    CHECK(!__atomic_load_n(&told, __ATOMIC_SEQ_CST)); /* it is behind the gate */
    open_gate();
    AWAIT(__atomic_load_n(&told, __ATOMIC_SEQ_CST));
    CHECK(told == from);
    OK(cuCtxSynchronize());
    OK(cuStreamDestroy(from));
    OK(cuStreamDestroy(to));
}
ROW(85_callback, "a callback that a hook has moved is told the program's stream")
{
    callback_moved();
}
ROW_WITH(
    85_callback_serial, "a callback that a hook and a policy have moved", "CUSTREAM_STREAMS=serial")
{
    callback_moved();
}

static int functions, ends;
static void function(void *unused)
{
    (void)unused, __atomic_add_fetch(&functions, __atomic_load_n(&ends, __ATOMIC_SEQ_CST) ? 100 : 1,
                      __ATOMIC_SEQ_CST);
}
static void function_ends(void *unused)
{
    (void)unused, __atomic_add_fetch(&ends, 1, __ATOMIC_SEQ_CST);
}

/* Moved, the call would be one of no graph, and come after the graph had freed what it calls. */
ROW(85_host, "a host function that is captured stays where it is, whatever a hook wants")
{
    custream_hook_t hook;
    custream_graph_t graph = NULL;
    custream_t s;

    start();
    if (!preloaded() || opened()) return;
    s = new_stream();
    from = handle_of(s);
    OK(cuStreamCreate(&to, CU_STREAM_NON_BLOCKING));
    hold(to);
    WORKS(custream_register_hook(CUSTREAM_HOOK_CALLBACK, send_elsewhere, NULL, &hook));
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    WORKS(custream_launch_host_func(s, function, NULL, function_ends));
    WORKS(custream_end_capture(s, &graph));
    WORKS(custream_unregister_hook(hook));
    for (int i = 0; i < 2; i++) WORKS(custream_graph_launch(graph, s));
    WORKS(custream_synchronize(s));
    CHECK_IS(count_of(&functions), 2);
    WORKS(custream_graph_release(graph));
    AWAIT(count_of(&ends));
    open_gate();
    OK(cuStreamSynchronize(to));
    CHECK_IS(count_of(&functions), 2);
    OK(cuStreamDestroy(to));
    WORKS(custream_release(s));
}

/* ---- Calls that have no stream ---- */

static int heard[CUSTREAM_HOOK_KINDS];
static void hear(custream_hook_info_t *info, void *arg)
{
    if (info->after) return;
    heard[info->kind]++;
    CHECK(info->event == *(CUevent *)arg);
}

ROW(85_context, "an event that is recorded in a context, and waited for")
{
    custream_hook_t record, wait;
    CUevent e;

    start();
    if (!preloaded()) return;
    OK(cuEventCreate(&e, 0));
    WORKS(custream_register_hook(CUSTREAM_HOOK_RECORD, hear, &e, &record));
    WORKS(custream_register_hook(CUSTREAM_HOOK_WAIT, hear, &e, &wait));
    OK(cuCtxRecordEvent(context, e));
    OK(cuCtxWaitEvent(context, e));
    WORKS(custream_unregister_hook(record));
    WORKS(custream_unregister_hook(wait));
    OK(cuEventDestroy(e));
    CHECK_IS(heard[CUSTREAM_HOOK_RECORD], 1);
    CHECK_IS(heard[CUSTREAM_HOOK_WAIT], 1);
}

/* ---- A hook that forks ---- */

static CUstream shared;
static int depth, deepest, turns;
static void fork_in_it(custream_hook_info_t *info, void *arg)
{
    int status = -1;

    (void)arg;
    turns++;
    if (++depth > deepest) deepest = depth;
    if (!info->after && depth == 1) {
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 3; i++)
                cuStreamSynchronize(shared); /* CUDA does not live on here, and says so */
            CHECK_IS(turns, 1);
            CHECK_IS(deepest, 1);
            _exit(failures != 0);
        }
        waitpid(child, &status, 0);
        CHECK_IS(status, 0);
    }
    depth--;
}

ROW(85_fork, "a hook that forks is not called for what it does in the child")
{
    custream_hook_t hook;

    start();
    if (!preloaded()) return;
    OK(cuStreamCreate(&shared, CU_STREAM_NON_BLOCKING));
    WORKS(custream_register_hook(CUSTREAM_HOOK_SYNCHRONIZE, fork_in_it, NULL, &hook));
    OK(cuStreamSynchronize(shared));
    CHECK_IS(turns, 2);
    WORKS(custream_unregister_hook(hook));
    OK(cuStreamDestroy(shared));
}
