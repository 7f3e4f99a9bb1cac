/*
 * The CUPTI backend: activity records of kernels, copies, memsets, graph launches and memory pools, with the profiler's own overhead.
 *
 * Correlation. CUPTI numbers calls; a record of the call with its number, thread and times is written where that call is enabled (cupti_calls.c), and says
 * which of our records it was: one lies inside the other on the same thread. Matching launches to kernels in stream order needs no call records, but goes
 * wrong for good wherever a call makes no work or two records, and was no cheaper (docs/measurements.md).
 *
 * Synchronisations are not asked of CUPTI: our own records have them, and its kind puts a callback on every driver call that stays when it is disabled.
 */
#include "shim/gpu/share.h"

#include <stdio.h>
#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/calls/real.h"
#include "shim/object/context.h"
#include "shim/object/graph.h"
#include "shim/object/stream.h"

static _Atomic cs_u64 dropped;

static cs_u64 CUPTIAPI timestamp(void) { return cs_ticks(); }

static bool stream_id(CUcontext context, CUstream stream, bool per_thread, cs_u32 *id)
{
    return cs_cupti.cuptiGetStreamIdEx(context, stream, per_thread, id) == CUPTI_SUCCESS;
}

static bool graph_ids(CUgraph graph, CUgraphExec exec, struct cs_graph_ids *ids)
{
    return cs_cupti.cuptiGetGraphId(graph, &ids->graph) == CUPTI_SUCCESS && (!exec || cs_cupti.cuptiGetGraphExecId(exec, &ids->exec) == CUPTI_SUCCESS);
}

static const char *failed(const char *what, CUptiResult result)
{
    static char text[256];
    const char *name = NULL;
    if (cs_cupti.cuptiGetResultString(result, &name) != CUPTI_SUCCESS || !name) name = "unknown";
    snprintf(text, sizeof text, "%s: %s (%d)", what, name, (int)result);
    return text;
}

/* --- which kinds --- */

static const struct kind {
    CUpti_ActivityKind kind;
    const char *name;
    bool needed;
} kinds[] = {
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "CONCURRENT_KERNEL", true},
    {CUPTI_ACTIVITY_KIND_MEMCPY, "MEMCPY", true},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, "MEMCPY2", false},
    {CUPTI_ACTIVITY_KIND_MEMSET, "MEMSET", true},
    {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, "GRAPH_TRACE", false},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, "OVERHEAD", false},
    {CUPTI_ACTIVITY_KIND_MEMORY_POOL, "MEMORY_POOL", false},
};

static bool is_wanted(const struct kind *kind)
{
    return kind->kind != CUPTI_ACTIVITY_KIND_GRAPH_TRACE || !cs_option_is(CS_OPTION_GRAPH, "node");
}

static _Atomic bool enabled[CS_COUNT(kinds)], whole_graphs, paused;
bool cs_cupti_paused(void) { return cs_load_acq(&paused); }

static void disable_kinds(void)
{
    for (size_t i = 0; i < CS_COUNT(kinds); i++)
        if (atomic_exchange(&enabled[i], false)) cs_cupti.cuptiActivityDisable(kinds[i].kind);
    cs_store(&whole_graphs, false);
}

static const char *enable_kinds(void)
{
    for (size_t i = 0; i < CS_COUNT(kinds); i++) {
        if (!is_wanted(&kinds[i])) continue;
        CUptiResult result = cs_cupti.cuptiActivityEnable(kinds[i].kind);
        if (result == CUPTI_SUCCESS) {
            cs_store(&enabled[i], true);
            if (kinds[i].kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE) cs_store(&whole_graphs, true);
            continue;
        }
        if (!kinds[i].needed) {
            cs_log(CS_LOG_INFO, "CUPTI has no records of kind %s", kinds[i].name);
            continue;
        }
        const char *why = failed(kinds[i].name, result);
        disable_kinds();
        return why;
    }
    return NULL;
}

/* --- sharing --- */

bool cs_cupti_has(CUpti_ActivityKind kind)
{
    if (kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE) return cs_load(&whole_graphs);
    if (kind == CUPTI_ACTIVITY_KIND_DRIVER || kind == CUPTI_ACTIVITY_KIND_RUNTIME) return cs_cupti_calls_are_all();
    for (size_t i = 0; i < CS_COUNT(kinds); i++)
        if (kinds[i].kind == kind) return cs_load(&enabled[i]);
    return false;
}

void cs_cupti_graphs(bool whole)
{
    whole = whole && !cs_option_is(CS_OPTION_GRAPH, "node");
    if (atomic_exchange(&whole_graphs, whole) == whole) return;
    if (whole) cs_cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    else cs_cupti.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
}

/* A context that was made before us, by a way that we did not see, makes the filter of calls fail. */
static bool any_context(void)
{
    enum { DEVICES = 64 };
    if (cs_load(&cs_contexts.high)) return true;
    for (int device = 0; cs_real.cuDevicePrimaryCtxGetState && device < DEVICES; device++) {
        unsigned flags;
        int active = 0;
        if (cs_real.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS) return false;
        if (active) return true;
    }
    return false;
}

/* --- the backend --- */

static CUptiResult begin_calls(void)
{
    CUptiResult result = cs_cupti_calls_begin(any_context());
    if (result == CUPTI_SUCCESS && cs_share_called_back()) cs_cupti_calls_all();
    return result;
}

static const char *take_over(void)
{
    CUptiResult result = cs_cupti.cuptiActivityRegisterTimestampCallback ? cs_cupti.cuptiActivityRegisterTimestampCallback(timestamp) : CUPTI_ERROR_NOT_SUPPORTED;
    if (result != CUPTI_SUCCESS) return failed("cuptiActivityRegisterTimestampCallback", result);
    size_t size = 1;
    if (cs_cupti.cuptiActivitySetAttribute) cs_cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &(uint8_t){1});
    result = cs_cupti.cuptiActivityRegisterCallbacks(cs_cupti_buffer_requested, cs_cupti_buffer_completed);
    if (result != CUPTI_SUCCESS) return failed("cuptiActivityRegisterCallbacks", result);
    result = begin_calls();
    const char *why = result == CUPTI_SUCCESS ? enable_kinds() : failed("DRIVER and RUNTIME", result);
    if (why) cs_cupti_calls_end();
    else cs_cupti_runtime_begin();
    return why;
}

static const char *start(void)
{
    const char *why = cs_cupti_open();
    if (why) return why;
    cs_cupti_buffers_ready();
    if (!cs_share_begin()) return cs_gpu_taken;
    if ((why = take_over())) {
        cs_share_end();
        return why;
    }
    cs_store_rel(&cs_stream_gpu_id, stream_id);
    cs_add(&cs_graph_epoch, 1);
    if (cs_cupti.cuptiGetGraphId && cs_cupti.cuptiGetGraphExecId) cs_store_rel(&cs_graph_profiler_ids, graph_ids);
    return NULL;
}

static void catch_up(void)
{
    if (cs_load(&paused)) return;
    if (cs_gpu_calls_missing(false)) cs_cupti_calls_all();
    cs_cupti_runtime_again();
}

static void flush(bool all)
{
    static bool told;
    size_t lost = 0;
    CUptiResult result = cs_cupti.cuptiActivityFlushAll(all ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
    if (result != CUPTI_SUCCESS && !told) cs_log(CS_LOG_WARN, "GPU times may be missing: %s", failed("cuptiActivityFlushAll", result));
    told = told || result != CUPTI_SUCCESS;
    if (cs_cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &lost) != CUPTI_SUCCESS || !lost) return;
    cs_add(&dropped, lost);
    cs_share_dropped(lost);
}

/* What was enqueued before keeps its records, which come when it has ended. */
static void pause(bool on)
{
    if (on) {
        cs_store_rel(&paused, true);
        cs_cupti_runtime_end();
        disable_kinds();
        cs_cupti_calls_pause(any_context());
        return;
    }
    CUptiResult result = begin_calls();
    const char *why = result == CUPTI_SUCCESS ? enable_kinds() : failed("DRIVER and RUNTIME", result);
    if (why) cs_log(CS_LOG_WARN, "no GPU times from here on: %s", why);
    else cs_cupti_runtime_begin();
    cs_store_rel(&paused, false);
    cs_cupti_graphs(!cs_share_wants_nodes());
}

static void drain(const struct cs_gpu_sink *to)
{
    cs_cupti_runtime_drain(to);
    cs_cupti_buffers_drain(to);
    cs_u64 lost = atomic_exchange(&dropped, 0);
    if (lost) to->lost(lost, "CUPTI had no buffer to write to");
}

static void stop(void)
{
    cs_store_rel(&cs_stream_gpu_id, NULL);
    cs_store_rel(&cs_graph_profiler_ids, NULL);
    cs_cupti_runtime_end();
    cs_share_end();
    disable_kinds();
    cs_cupti_calls_end();
    cs_store_rel(&paused, false);
    if (!cs_cupti.cuptiFinalize || cs_share_subscribed()) return;
    cs_cupti.cuptiFinalize(); /* without it every driver call goes on paying */
    cs_share_finalized();
}

const struct cs_gpu_backend cs_gpu_cupti = {.name = "cupti", .start = start, .catch_up = catch_up, .flush = flush, .drain = drain, .stop = stop, .pause = pause,
                                               .serves = cs_share_serves};
