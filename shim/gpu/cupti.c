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
#include "shim/object/graph.h"
#include "shim/object/names.h"
#include "shim/object/stream.h"

static _Atomic cs_u64 dropped;

static cs_u64 CUPTIAPI timestamp(void) { return cs_ticks(); }

static bool stream_id(CUcontext context, CUstream stream, bool per_thread, cs_u32 *id)
{
    return cs_cupti()->cuptiGetStreamIdEx(context, stream, per_thread, id) == CUPTI_SUCCESS;
}

static bool graph_ids(CUgraph graph, CUgraphExec exec, struct cs_graph_ids *ids)
{
    return cs_cupti()->cuptiGetGraphId(graph, &ids->graph) == CUPTI_SUCCESS && (!exec || cs_cupti()->cuptiGetGraphExecId(exec, &ids->exec) == CUPTI_SUCCESS);
}

/* A text that stays: whoever reads why times are missing may be at it while the next reason is made. */
static const char *failed(const char *what, CUptiResult result)
{
    char text[256];
    const char *name = NULL;
    if (cs_cupti()->cuptiGetResultString(result, &name) != CUPTI_SUCCESS || !name) name = "unknown";
    snprintf(text, sizeof text, "%s: %s (%d)", what, name, (int)result);
    return cs_name_text(cs_name_add(text));
}

/* --- the backend --- */

/* From here on there are records. NULL, or why not. */
static const char *begin_records(void)
{
    const char *name;
    CUptiResult result = cs_cupti_ask_begin(&name);
    return result == CUPTI_SUCCESS ? NULL : failed(name, result);
}

static const char *take_over(void)
{
    CUptiResult result = cs_cupti()->cuptiActivityRegisterTimestampCallback ? cs_cupti()->cuptiActivityRegisterTimestampCallback(timestamp) : CUPTI_ERROR_NOT_SUPPORTED;
    if (result != CUPTI_SUCCESS) return failed("cuptiActivityRegisterTimestampCallback", result);
    size_t size = 1;
    if (cs_cupti()->cuptiActivitySetAttribute) cs_cupti()->cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &(uint8_t){1});
    result = cs_cupti()->cuptiActivityRegisterCallbacks(cs_cupti_buffer_requested, cs_cupti_buffer_completed);
    if (result != CUPTI_SUCCESS) return failed("cuptiActivityRegisterCallbacks", result);
    const char *why = begin_records();
    if (why) cs_cupti_ask_end();
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
    if (cs_cupti()->cuptiGetGraphId && cs_cupti()->cuptiGetGraphExecId) cs_store_rel(&cs_graph_profiler_ids, graph_ids);
    return NULL;
}

static void flush(bool all)
{
    static bool told;
    size_t lost = 0;
    CUptiResult result = cs_cupti()->cuptiActivityFlushAll(all ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
    if (result != CUPTI_SUCCESS && !told) cs_log(CS_LOG_WARN, "GPU times may be missing: %s", failed("cuptiActivityFlushAll", result));
    told = told || result != CUPTI_SUCCESS;
    if (cs_cupti()->cuptiActivityGetNumDroppedRecords(NULL, 0, &lost) != CUPTI_SUCCESS || !lost) return;
    cs_add(&dropped, lost);
    cs_share_dropped(lost);
}

/* What was enqueued before keeps its records, which come when it has ended. */
static void pause(bool on)
{
    if (on) {
        cs_cupti_ask_pause();
        return;
    }
    const char *why = begin_records();
    if (why) cs_log(CS_LOG_WARN, "no GPU times from here on: %s", why);
}

static void drain(const struct cs_gpu_sink *to)
{
    cs_cupti_runtime_drain(to);
    cs_cupti_buffers_drain(to);
    cs_u64 lost = atomic_exchange(&dropped, 0);
    if (lost) to->lost(lost, CS_LOSS_NO_BUFFER);
}

/*
 * cuptiFinalize races with threads that are in a call (Kineto met that: pytorch/kineto#686), and graphs from before it must not meet GRAPH_TRACE after it. So it is
 * called only where another copy of CUPTI could not work otherwise. Whoever only rests disables what was asked for; at the end of the process the driver goes anyway.
 */
static void stop(bool lets_go)
{
    cs_store_rel(&cs_stream_gpu_id, NULL);
    cs_store_rel(&cs_graph_profiler_ids, NULL);
    cs_share_end();
    cs_cupti_ask_end();
    if (!lets_go || !cs_cupti()->cuptiFinalize || cs_share_subscribed()) return;
    cs_cupti()->cuptiFinalize();
    cs_share_finalized();
}

const struct cs_gpu_backend cs_gpu_cupti = {.name = "cupti", .start = start, .catch_up = cs_cupti_ask_again, .flush = flush, .drain = drain, .is_behind = cs_cupti_buffers_behind, .stop = stop, .pause = pause,
                                               .serves = cs_share_serves};
