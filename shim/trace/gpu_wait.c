/*
 * Waits: their rows beside the streams, and the arrows from the work that released them.
 */
#include "shim/gpu/backend.h"
#include "shim/trace/event.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"
#include "shim/trace/thread_row.h"
#include "shim/trace/totals.h"

static void row_write(struct cs_lane at, const char *name, const struct cs_stream *stream, const struct cs_stream *other, cs_u64 begin_ns, cs_u64 end_ns)
{
    struct cs_draft e = cs_slice(cs_draft(), "cuda_sync", cs_title(name), at, begin_ns, end_ns);
    e = cs_arg_uint(e, "device", at.pid);
    if (stream) e = cs_arg_uint(e, "cs.stream", stream->lane);
    if (other) e = cs_arg_uint(e, "recorded on", other->lane);
    cs_commit(cs_args_end(e));
}

/* Perfetto has an arrow lead from the slice that began first, and a wait may have begun before the work: what began last is that it woke up. */
void cs_gpu_wake_write(cs_u64 id, const struct cs_op *op, struct cs_lane waits, cs_u64 until_ns)
{
    const cs_u64 from = op->work_end_ns < until_ns ? op->work_end_ns : until_ns - 1, left = op->work_end_ns - 1 < from ? op->work_end_ns - 1 : from;
    struct cs_draft e = cs_slice_bare(cs_draft(), "cs_dep", cs_title("wake-up"), waits, from, until_ns);
    cs_commit(cs_arrow(e, "cs_dep", id, cs_lane_at(op->work_pid, op->work_tid), left, waits, from));
}

/* The slice is written long after its thread went on. In packets an end closes what began last, so it lies before the wait's: the next call may begin in the
 * nanosecond in which the wait ends, where the counter goes in steps. */
void cs_gpu_released(const struct cs_match_wait *wait, const struct cs_op *op)
{
    const cs_u64 until_ns = wait->end_ns - (wait->end_ns - wait->begin_ns > 2);
    if (cs_output_full()) return;
    if (op->work_file != cs_lanes_file() || wait->file != cs_lanes_file()) {
        cs_totals.arrows_between_parts++;
        return;
    }
    cs_gpu_wake_write(CS_FLOW_RELEASE + ++cs_gpu_shown.releases, op, cs_lane_at(cs_host_pid(), wait->tid), until_ns);
}

void cs_gpu_trace_sync(const struct cs_thread *thread, const struct cs_record *r, struct cs_stream *stream, const cs_u64 *cause, cs_u64 begin_ns, cs_u64 end_ns)
{
    bool by_stream = cs_call_info[r->call].kind == CS_KIND_WAIT;
    if (r->result != CUDA_SUCCESS || cs_output_full() || (by_stream && !stream)) return;
    struct cs_stream *recorded = cause && *cause ? cs_pool_get(&cs_streams, (cs_ref)(cause[1] >> 32)) : NULL;
    struct cs_stream *row_of = stream ? stream : recorded;
    cs_u32 device = row_of ? (cs_u32)row_of->device : cs_thread_row(thread)->device;
    cs_u64 from_ns = begin_ns;
    cs_u32 tid = row_of ? cs_gpu_wait_tid(row_of, &from_ns, end_ns) : cs_gpu_device_place(device, &from_ns, end_ns);
    if (!tid) return;
    const char *name = by_stream ? "Stream Wait Event" : stream ? "Stream Sync" : cause ? "Event Sync" : "Context Sync";
    row_write(cs_lane_at(device, tid), name, row_of, recorded && recorded != row_of ? recorded : NULL, from_ns, end_ns);
    if (by_stream && cause && *cause && !cs_match_captured(stream, r)) cs_match_stream_waits(cs_match_lane_of(stream), r->begin, cause);
    if (by_stream || (cause && !recorded) || !cs_gpu_is_on()) return;
    const struct cs_match_wait wait = {.begin_ns = begin_ns, .end_ns = end_ns, .tid = thread->tid, .file = cs_lanes_file()};
    cs_match_wait(wait, row_of ? cs_match_lane_of(row_of) : NULL, device, cause ? *cause : r->begin);
}
