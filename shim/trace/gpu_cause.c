/*
 * Waits: their rows beside the streams, and the arrows from the work that released them.
 *
 * A wait of the host ends when the last call enqueued before it has ended its work: that call is known when the wait is recorded, its work comes
 * later. An arrow is drawn only where the work ended within the wait; what had ended before held nobody up.
 */
#include "shim/base/clock.h"
#include "shim/base/json.h"
#include "shim/base/memory.h"
#include "shim/gpu/backend.h"
#include "shim/out/output.h"
#include "shim/trace/gpu.h"
#include "shim/trace/lanes.h"
#include "shim/trace/totals.h"

enum { WAITS = 1 << 14, CANDIDATES = 16, PATIENCE = 25 };

static struct wait {
    cs_u64 begin_ns, end_ns;
    cs_u64 op[CANDIDATES]; /* of each stream, the last before the wait */
    int ops;
    cs_u32 tid;
    cs_u64 since; /* flushes that had ended */
    cs_u32 file;  /* of the wait's slice */
} *waits;
CS_TABLE(TRACE, waits, WAITS);
static size_t wait_count;

void cs_gpu_causes_begin(void) { wait_count = 0; }

/* --- rows --- */

static void row_write(struct cs_gpu_lane *lane, const char *name, const struct cs_stream *stream, const struct cs_stream *other, cs_u64 begin_ns, cs_u64 end_ns)
{
    cs_u32 tid = cs_gpu_lane_place(lane, true, &begin_ns, end_ns);
    char *at = cs_put_literal(cs_output_room(), ",\n{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":\"");
    at = cs_put_text(at, name);
    at = cs_put_literal(at, "\",\"pid\":");
    at = cs_put_uint(at, lane->device);
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, tid);
    at = cs_put_literal(at, ",\"ts\":");
    at = cs_put_us(at, begin_ns);
    at = cs_put_literal(at, ",\"dur\":");
    at = cs_put_us(at, end_ns > begin_ns ? end_ns - begin_ns : 1);
    at = cs_put_literal(at, ",\"args\":{\"device\":");
    at = cs_put_uint(at, lane->device);
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

/* The row of waits for all that a device does; one a device. */
static struct cs_gpu_lane *device_row(cs_u32 device)
{
    static struct cs_gpu_lane rows[CS_GPU_PIDS];
    static cs_u32 file;
    if (device >= CS_GPU_PIDS) return NULL;
    if (file != cs_lanes_file())
        for (cs_u32 d = 0; d < CS_GPU_PIDS; d++) rows[d].sync.announced = 0;
    file = cs_lanes_file();
    rows[device].device = device;
    return &rows[device];
}

/* --- causes --- */

static void candidate(struct wait *wait, cs_u64 last, cs_u64 ticks)
{
    struct cs_op *op = cs_op_before(last, ticks);
    if (!op || wait->ops == CANDIDATES || (op->works && op->work_end_ns <= wait->begin_ns)) return;
    wait->op[wait->ops++] = op->id;
}

static void wait_note(const struct cs_thread *thread, const struct cs_record *r, struct cs_gpu_lane *lane, cs_u64 ticks, cs_u32 device, cs_u64 begin_ns, cs_u64 end_ns)
{
    if (wait_count == WAITS || !cs_gpu_is_on()) return;
    struct wait *wait = &waits[wait_count];
    *wait = (struct wait){.begin_ns = begin_ns, .end_ns = end_ns, .tid = thread->tid, .since = cs_gpu_flushes(), .file = cs_lanes_file()};
    if (lane) candidate(wait, lane->last, ticks);
    for (cs_u32 i = 1; !lane && i <= cs_gpu_lanes_high(); i++) {
        struct cs_gpu_lane *l = cs_gpu_lane_get(i);
        if (l && l->device == device && l->first) candidate(wait, l->last, r->begin);
    }
    if (wait->ops) wait_count++;
}

/* The op whose work ended last, in the wait; NULL where one is still out. A call that made no work gives way to the one before it. */
static struct cs_op *releaser(const struct wait *wait, bool all, bool *out)
{
    struct cs_op *best = NULL;
    *out = false;
    for (int i = 0; i < wait->ops; i++) {
        struct cs_op *op = cs_op_get(wait->op[i]);
        struct cs_gpu_lane *lane = op ? cs_gpu_lane_get(op->lane) : NULL;
        if (op && !op->left && lane && !all) {
            *out = true;
            return NULL;
        }
        for (int steps = 0; op && !op->works && steps < 16; steps++) op = cs_op_get(op->before);
        if (op && op->works && op->work_end_ns > wait->begin_ns && op->work_end_ns <= wait->end_ns && (!best || op->work_end_ns > best->work_end_ns)) best = op;
    }
    return best;
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

void cs_gpu_causes_write(bool all)
{
    static cs_u64 flow;
    size_t kept = 0;
    for (size_t i = 0; i < wait_count; i++) {
        bool out;
        struct cs_op *op = releaser(&waits[i], all || cs_gpu_flushes() - waits[i].since > PATIENCE, &out);
        if (out) {
            waits[kept++] = waits[i];
            continue;
        }
        if (!op || cs_output_full()) continue;
        if (op->work_file != cs_lanes_file() || waits[i].file != cs_lanes_file()) {
            cs_totals.arrows_between_parts++;
            continue;
        }
        cs_gpu_wake_write(CS_FLOW_RELEASE + ++flow, op, cs_host_pid(), waits[i].tid, waits[i].end_ns);
    }
    wait_count = kept;
}

void cs_gpu_trace_sync(const struct cs_thread *thread, const struct cs_record *r, struct cs_stream *stream, const cs_u64 *cause, cs_u64 begin_ns, cs_u64 end_ns)
{
    bool by_stream = cs_call_info[r->call].kind == CS_KIND_WAIT;
    if (r->result != CUDA_SUCCESS || cs_output_full() || (by_stream && !stream)) return;
    struct cs_stream *recorded = cause && *cause ? cs_pool_get(&cs_streams, (cs_ref)(cause[1] >> 32)) : NULL;
    struct cs_stream *row_of = stream ? stream : recorded;
    cs_u32 device = row_of ? (cs_u32)row_of->device : thread->device;
    struct cs_gpu_lane *row = row_of ? cs_gpu_lane_get(cs_gpu_lane_of(row_of)) : device_row(device);
    if (!row) return;
    const char *name = by_stream ? "Stream Wait Event" : stream ? "Stream Sync" : cause ? "Event Sync" : "Context Sync";
    row_write(row, name, row_of, recorded && recorded != row_of ? recorded : NULL, begin_ns, end_ns);
    if (by_stream && cause) cs_gpu_capture_joined(stream, r->begin, cause);
    if (by_stream) return;
    if (cause && !recorded) return;
    wait_note(thread, r, row_of ? row : NULL, cause ? *cause : r->begin, device, begin_ns, end_ns);
}
