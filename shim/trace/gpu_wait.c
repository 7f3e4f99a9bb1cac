/*
 * Waits: their rows beside the streams, and the arrows from the work that released them.
 */
#include "shim/base/json.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"
#include "shim/trace/output.h"
#include "shim/trace/totals.h"

static void row_write(cs_u32 device, cs_u32 tid, const char *name, const struct cs_stream *stream, const struct cs_stream *other, cs_u64 begin_ns, cs_u64 end_ns)
{
    char *at = cs_put_literal(cs_output_room(), ",\n{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"");
    at = cs_put_text(at, name);
    at = cs_put_literal(at, "\",\"pid\":");
    at = cs_put_uint(at, device);
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, tid);
    at = cs_put_literal(at, ",\"ts\":");
    at = cs_put_us(at, begin_ns);
    at = cs_put_literal(at, ",\"dur\":");
    at = cs_put_us(at, end_ns > begin_ns ? end_ns - begin_ns : 1);
    at = cs_put_literal(at, ",\"args\":{\"device\":");
    at = cs_put_uint(at, device);
    if (stream) {
        at = cs_put_literal(at, ",\"cs.stream\":");
        at = cs_put_uint(at, stream->lane);
    }
    if (other) {
        at = cs_put_literal(at, ",\"recorded on\":");
        at = cs_put_uint(at, other->lane);
    }
    cs_output_commit(cs_put_literal(at, "}}"));
}

/* Perfetto has an arrow lead from the slice that began first, and a wait may have begun before the work: what began last is that it woke up. */
void cs_gpu_wake_write(cs_u64 id, const struct cs_op *op, cs_u32 pid, cs_u32 tid, cs_u64 wait_end_ns)
{
    const cs_u64 from = op->work_end_ns < wait_end_ns ? op->work_end_ns : wait_end_ns - 1;
    char *at = cs_put_literal(cs_output_room(), ",\n{\"ph\":\"X\",\"cat\":\"cs_dep\",\"name\":\"wake-up\",\"pid\":");
    at = cs_put_uint(at, pid);
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, tid);
    at = cs_put_literal(at, ",\"ts\":");
    at = cs_put_us(at, from);
    at = cs_put_literal(at, ",\"dur\":");
    at = cs_put_us(at, wait_end_ns - from);
    at = cs_put_literal(at, "}");
    at = cs_gpu_arrow_end(at, "s", "cs_dep", id, op->work_pid, op->work_tid, op->work_end_ns - 1);
    cs_output_commit(cs_gpu_arrow_end(at, "f", "cs_dep", id, pid, tid, from));
}

void cs_gpu_released(const struct cs_match_wait *wait, const struct cs_op *op)
{
    if (cs_output_full()) return;
    if (op->work_file != cs_lanes_file() || wait->file != cs_lanes_file()) {
        cs_totals.arrows_between_parts++;
        return;
    }
    cs_gpu_wake_write(CS_FLOW_RELEASE + ++cs_gpu_shown.releases, op, cs_host_pid(), wait->tid, wait->end_ns);
}

void cs_gpu_trace_sync(const struct cs_thread *thread, const struct cs_record *r, struct cs_stream *stream, const cs_u64 *cause, cs_u64 begin_ns, cs_u64 end_ns)
{
    bool by_stream = cs_call_info[r->call].kind == CS_KIND_WAIT;
    if (r->result != CUDA_SUCCESS || cs_output_full() || (by_stream && !stream)) return;
    struct cs_stream *recorded = cause && *cause ? cs_pool_get(&cs_streams, (cs_ref)(cause[1] >> 32)) : NULL;
    struct cs_stream *row_of = stream ? stream : recorded;
    cs_u32 device = row_of ? (cs_u32)row_of->device : thread->device;
    cs_u64 from_ns = begin_ns;
    cs_u32 tid = row_of ? cs_gpu_wait_tid(row_of, &from_ns, end_ns) : cs_gpu_device_place(device, &from_ns, end_ns);
    if (!tid) return;
    const char *name = by_stream ? "Stream Wait Event" : stream ? "Stream Sync" : cause ? "Event Sync" : "Context Sync";
    row_write(device, tid, name, row_of, recorded && recorded != row_of ? recorded : NULL, from_ns, end_ns);
    if (by_stream && cause) cs_match_capture_joined(stream, r->begin, cause);
    if (by_stream || (cause && !recorded)) return;
    const struct cs_match_wait wait = {.begin_ns = begin_ns, .end_ns = end_ns, .tid = thread->tid, .file = cs_lanes_file()};
    cs_match_wait(wait, row_of ? cs_match_lane_of(row_of) : NULL, device, cause ? *cause : r->begin);
}
