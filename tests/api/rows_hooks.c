/* Hooks for tools, annotations, recording: with the preload library they work, without it they say
 * that they do not. */
#include "tests/api/rows.h"

#include <link.h>

/* Declared in cudaProfiler.h, which not every package of headers has. */
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);

/* In a process that records nothing the library does not look at its calls. */
struct heard {
    int before[CUSTREAM_HOOK_KINDS], after[CUSTREAM_HOOK_KINDS];
    void *stream, *event;
};
static void hear(custream_hook_info_t *info, void *arg)
{
    struct heard *heard = arg;

    CHECK(info->size >= sizeof *info);
    CHECK(info->call && strncmp(info->call, "cu", 2) == 0);
    CHECK_IS(info->after, !!info->after);
    ++(info->after ? heard->after : heard->before)[info->kind];
    if (!info->after) CHECK_IS(info->result, 0);
    if (info->after && (info->kind == CUSTREAM_HOOK_CREATE || info->kind == CUSTREAM_HOOK_ENQUEUE))
        heard->stream = info->stream;
    if (info->after && info->kind == CUSTREAM_HOOK_EVENT_CREATE) heard->event = info->event;
}
static void refuse(custream_hook_info_t *info, void *arg)
{
    (void)arg;
    if (!info->after) info->result = CUDA_ERROR_NOT_PERMITTED;
}

static void host(void *arg) { (void)arg; }

/* One call of each kind. */
static void do_all(CUstream *s, CUevent *e)
{
    CUgraph graph;
    CUgraphExec exec;

    OK(cuStreamCreate(s, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(e, 0));
    OK(cuEventRecord(*e, *s));
    OK(cuStreamWaitEvent(*s, *e, 0));
    OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, *s, NULL, NULL));
    OK(cuLaunchHostFunc(*s, host, NULL));
    OK(cuStreamSynchronize(*s));
    OK(cuStreamBeginCapture(*s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuStreamEndCapture(*s, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, *s));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuEventDestroy(*e));
    OK(cuStreamDestroy(*s));
}

ROW(85, "hooks for tools: every kind, before and after")
{
    custream_hook_t hooks[CUSTREAM_HOOK_KINDS];
    struct heard heard = {.stream = NULL};
    CUstream s;
    CUevent e;

    start();
    if (!preloaded()) {
        FAILS(custream_register_hook(CUSTREAM_HOOK_CREATE, hear, &heard, &hooks[0]), NOT_SUPPORTED,
            hooks[0]);
        return;
    }
    for (int kind = 0; kind < CUSTREAM_HOOK_KINDS; kind++)
        WORKS(custream_register_hook((custream_hook_kind_t)kind, hear, &heard, &hooks[kind]));
    do_all(&s, &e);
    for (int kind = 0; kind < CUSTREAM_HOOK_KINDS; kind++) {
        CHECK_IS(heard.before[kind], kind == CUSTREAM_HOOK_CAPTURE ? 2 : 1);
        CHECK_IS(heard.after[kind], heard.before[kind]);
        WORKS(custream_unregister_hook(hooks[kind]));
    }
    CHECK(heard.stream == s && heard.event == e);
    do_all(&s, &e);
    for (int kind = 0; kind < CUSTREAM_HOOK_KINDS; kind++)
        CHECK_IS(heard.before[kind], kind == CUSTREAM_HOOK_CAPTURE ? 2 : 1);
}

ROW(85_refuse, "a hook that refuses a call; hooks that mean nothing")
{
    struct heard heard = {.stream = NULL};
    custream_hook_t deny = NULL, later = NULL, out;
    CUstream s = UNTOUCHED;

    start();
    FAILS(custream_register_hook((custream_hook_kind_t)99, hear, NULL, &out), INVALID_VALUE, out);
    FAILS(custream_register_hook(CUSTREAM_HOOK_CREATE, NULL, NULL, &out), INVALID_VALUE, out);
    GIVES(custream_register_hook(CUSTREAM_HOOK_CREATE, hear, NULL, NULL), INVALID_VALUE);
    GIVES(custream_unregister_hook(NULL), INVALID_VALUE);
    if (!preloaded()) return;
    WORKS(custream_register_hook(CUSTREAM_HOOK_CREATE, refuse, NULL, &deny));
    WORKS(custream_register_hook(CUSTREAM_HOOK_CREATE, hear, &heard, &later));
    CHECK_IS(cuStreamCreate(&s, 0), CUDA_ERROR_NOT_PERMITTED);
    CHECK(s == UNTOUCHED);
    CHECK_IS(heard.before[CUSTREAM_HOOK_CREATE], 0); /* the round was ended */
    CHECK_IS(heard.after[CUSTREAM_HOOK_CREATE], 1);
    WORKS(custream_unregister_hook(deny));
    GIVES(custream_unregister_hook(deny), INVALID_HANDLE);
    OK(cuStreamCreate(&s, 0));
    CHECK_IS(heard.before[CUSTREAM_HOOK_CREATE], 1);
    WORKS(custream_unregister_hook(later));
    OK(cuStreamDestroy(s));
}

ROW(85_late, "hooks of what was there before them")
{
    struct heard heard = {.stream = NULL};
    custream_hook_t enqueue, destroy, deny;
    CUstream s;

    start();
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    if (!preloaded()) return;
    WORKS(custream_register_hook(CUSTREAM_HOOK_ENQUEUE, hear, &heard, &enqueue));
    WORKS(custream_register_hook(CUSTREAM_HOOK_DESTROY, hear, &heard, &destroy));
    OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    CHECK_IS(heard.after[CUSTREAM_HOOK_ENQUEUE], 1);
    CHECK(heard.stream == s);
    WORKS(custream_register_hook(CUSTREAM_HOOK_DESTROY, refuse, NULL, &deny));
    CHECK_IS(cuStreamDestroy(s), CUDA_ERROR_NOT_PERMITTED);
    WORKS(custream_unregister_hook(deny));
    OK(cuStreamSynchronize(s));
    OK(cuProfilerStart());
    OK(cuProfilerStop()); /* that nothing is recorded stays as it is */
    OK(cuStreamDestroy(s));
    CHECK_IS(heard.after[CUSTREAM_HOOK_DESTROY], 2);
}

/* The word that a wrapper reads first, where the test has said how far it is from the library's
 * beginning. */
static int find_library(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    if (!strstr(info->dlpi_name, "libcustream_shim")) return 0;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}
static int mode(void)
{
    const char *offset = getenv("MODE_OFFSET");
    uintptr_t base = 0;

    if (!offset || !dl_iterate_phdr(find_library, &base)) return -1;
    return *(volatile int *)(base + strtoul(offset, NULL, 16));
}

ROW(85_gone, "after the last hook a call takes the way that it took before the first")
{
    struct heard heard = {.stream = NULL};
    custream_hook_t hooks[CUSTREAM_HOOK_KINDS];
    CUstream s;
    CUevent e;
    int before, twice = 2;

    if (!preloaded()) return;
    start();
    before = mode();
    while (twice--) {
        for (int kind = 0; kind < CUSTREAM_HOOK_KINDS; kind++)
            WORKS(custream_register_hook((custream_hook_kind_t)kind, hear, &heard, &hooks[kind]));
        CHECK(before == -1 || mode() != before);
        do_all(&s, &e);
        CHECK(heard.after[CUSTREAM_HOOK_ENQUEUE] > 0);
        for (int kind = 0; kind < CUSTREAM_HOOK_KINDS; kind++)
            WORKS(custream_unregister_hook(hooks[kind]));
        if (recorded() || !twice) CHECK_IS(mode(), before);
        else before = mode(); /* from the first hook on objects are kept */
        memset(&heard, 0, sizeof heard);
        do_all(&s, &e);
        for (int kind = 0; kind < CUSTREAM_HOOK_KINDS; kind++)
            CHECK_IS(heard.before[kind] + heard.after[kind], 0);
    }
}

ROW(22_history, "a stream that somebody else made and used shows its history")
{
    custream_history_t history = {.size = sizeof history};
    CUdeviceptr memory;
    custream_t s;
    CUstream raw;

    start();
    OK(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&memory, 256));
    for (int i = 0; i < 3; i++) OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, raw, NULL, NULL));
    OK(cuMemsetD8Async(memory, 1, 256, raw));
    OK(cuStreamSynchronize(raw));
    WORKS(custream_wrap(&s, raw, -1, NULL, NULL));
    if (!recorded()) {
        GIVES(custream_history(s, &history), NOT_SUPPORTED);
        return;
    }
    WORKS(custream_trace_flush());
    WORKS(custream_history(s, &history));
    CHECK_IS(history.launches, 3);
    CHECK_IS(history.sets, 1);
    CHECK_IS(history.synchronizations, 1);
    CHECK_IS(history.copies + history.records + history.waits + history.graph_launches +
                 history.bytes_copied,
        0);
    CHECK(strncmp(history.call, "cuStreamCreate", 14) == 0);
    CHECK(strncmp(history.library, "rows_hooks", 10) == 0);
    history.size--;
    GIVES(custream_history(s, &history), INVALID_VALUE);
    GIVES(custream_history(s, NULL), INVALID_VALUE);
    GIVES(custream_history(NULL, &history), INVALID_VALUE);
    OK(cuStreamDestroy(raw));
    history.size++;
    CHECK(custream_history(s, &history) !=
          CUSTREAM_SUCCESS); /* it is gone; a library that was opened learns it from the other */
}

/* test_api.py finds them in the trace. */
ROW(0_annotations, "ranges and marks in the timeline")
{
    start();
    WORKS(custream_trace_range_push("outer"));
    WORKS(custream_trace_range_push("inner"));
    WORKS(custream_trace_mark("here"));
    WORKS(custream_trace_range_pop());
    WORKS(custream_trace_range_pop());
    GIVES(custream_trace_range_pop(), INVALID_VALUE);
    GIVES(custream_trace_range_push(NULL), INVALID_VALUE);
    GIVES(custream_trace_mark(NULL), INVALID_VALUE);
}

ROW(0_recording, "recording, from here to there")
{
    if (!recorded()) {
        GIVES(custream_trace_start(), NOT_SUPPORTED);
        GIVES(custream_trace_stop(), NOT_SUPPORTED);
        GIVES(custream_trace_flush(), NOT_SUPPORTED);
        return;
    }
    start();
    WORKS(custream_trace_stop());
    WORKS(custream_trace_start());
    WORKS(custream_trace_flush());
}
