/*
 * Slices of GPU work, as Kineto names them and their arguments, each with the arrow from the call that enqueued it.
 */
#include <stdio.h>
#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/json.h"
#include "shim/out/output.h"
#include "shim/trace/demangle.h"
#include "shim/trace/gpu.h"
#include "shim/trace/lanes.h"
#include "shim/trace/totals.h"

static const char *const categories[CS_GPU_KINDS] = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_graph", "gpu_range", "overhead"};

#define PUT(at, key, value) (at = cs_put_literal(at, "\"" key "\":"), at = cs_put_uint(at, value), *at++ = ',')

static char *put_triple(char *at, const cs_u32 n[3])
{
    *at++ = '[';
    for (int i = 0; i < 3; i++) at = cs_put_uint(at, n[i]), *at++ = i < 2 ? ',' : ']';
    *at++ = ',';
    return at;
}

/* --- names --- */

static const char *word_of(const char *const *words, size_t n, size_t i) { return i < n ? words[i] : "Unknown"; }

static const char *memory_of(unsigned char kind)
{
    static const char *const kinds[] = {"Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static"};
    return word_of(kinds, CS_COUNT(kinds), kind);
}

char *cs_gpu_put_name(char *at, const struct cs_gpu_work *w)
{
    static const char *const directions[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
    char text[128];
    switch (w->kind) {
    case CS_GPU_KERNEL:
        if (w->kernel.name) return cs_put_kernel(at, w->kernel.name);
        snprintf(text, sizeof text, "kernel");
        break;
    case CS_GPU_COPY:
        if (w->by_events) snprintf(text, sizeof text, "Memcpy %s", word_of(directions, CS_COUNT(directions), w->copy.direction));
        else snprintf(text, sizeof text, "Memcpy %s (%s -> %s)", word_of(directions, CS_COUNT(directions), w->copy.direction), memory_of(w->copy.from),
                 memory_of(w->copy.to));
        break;
    case CS_GPU_SET: snprintf(text, sizeof text, "Memset (%s)", memory_of(w->set.memory)); break;
    case CS_GPU_GRAPH:
        if (w->by_events) snprintf(text, sizeof text, "graph");
        else snprintf(text, sizeof text, "graph %u", w->graph);
        break;
    case CS_GPU_RANGE: snprintf(text, sizeof text, "%u calls", w->range.calls); break;
    default: snprintf(text, sizeof text, "work"); break;
    }
    return cs_put_string(at, text, sizeof text);
}

/* --- arguments --- */

/* Not where nobody knows how much was moved, or the time is little more than a guess. */
static char *put_bandwidth(char *at, const struct cs_gpu_work *w, cs_u64 bytes, cs_u64 ns)
{
    if (w->by_events && (!bytes || w->error > ns / 10)) return at;
    at = cs_put_literal(at, "\"memory bandwidth (GB/s)\":");
    at = cs_put_us(at, bytes * 1000 / ns); /* bytes a ns, three decimals */
    *at++ = ',';
    return at;
}

static char *put_kernel_args(char *at, const struct cs_gpu_work *w)
{
    at = cs_put_literal(at, "\"short name\":");
    at = cs_put_kernel_brief(at, w->kernel.name);
    at = cs_put_literal(at, ",\"grid\":");
    at = put_triple(at, w->kernel.grid);
    at = cs_put_literal(at, "\"block\":");
    at = put_triple(at, w->kernel.block);
    if (w->by_events) return at;
    PUT(at, "registers per thread", w->kernel.registers);
    PUT(at, "shared memory", w->kernel.shared_static + w->kernel.shared_dynamic);
    if (w->kernel.local) PUT(at, "local memory per thread", w->kernel.local);
    return at;
}

static char *put_copy_args(char *at, const struct cs_gpu_work *w, cs_u64 ns)
{
    if (w->copy.bytes || !w->by_events) PUT(at, "bytes", w->copy.bytes);
    at = put_bandwidth(at, w, w->copy.bytes, ns);
    if (!w->copy.peer) return at;
    PUT(at, "fromDevice", w->copy.from_device);
    PUT(at, "toDevice", w->copy.to_device);
    return at;
}

static char *put_kind_args(char *at, const struct cs_gpu_work *w, cs_u64 ns)
{
    switch (w->kind) {
    case CS_GPU_KERNEL: return put_kernel_args(at, w);
    case CS_GPU_COPY: return put_copy_args(at, w, ns);
    case CS_GPU_SET:
        PUT(at, "bytes", w->set.bytes);
        PUT(at, "value", w->set.value);
        return put_bandwidth(at, w, w->set.bytes, ns);
    case CS_GPU_RANGE:
        PUT(at, "calls", w->range.calls);
        return at;
    default: return at;
    }
}

static char *put_error(char *at, const struct cs_gpu_work *w)
{
    at = cs_put_literal(at, "\"cs.time\":\"events\",\"cs.error_us\":");
    at = cs_put_us(at, w->error);
    *at++ = ',';
    return at;
}

/* --- one slice --- */

struct place {
    cs_u32 pid, tid, lane; /* lane: the stream's, without what tells overlap */
    bool elsewhere;        /* it ran on another stream than the one from which it was captured into its graph, where it stands */
    int priority;
    cs_u64 start, end, raw_start; /* ns */
};

static char *put_slice(char *at, const struct cs_gpu_work *w, const struct place *p, cs_u64 correlation)
{
    at = cs_put_literal(at, ",\n{\"ph\":\"X\",\"cat\":\"");
    at = cs_put_text(at, categories[w->kind]);
    at = cs_put_literal(at, "\",\"name\":");
    at = cs_gpu_put_name(at, w);
    at = cs_put_literal(at, ",\"pid\":");
    at = cs_put_uint(at, p->pid);
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, p->tid);
    at = cs_put_literal(at, ",\"ts\":");
    at = cs_put_us(at, p->start);
    at = cs_put_literal(at, ",\"dur\":");
    at = cs_put_us(at, p->end - p->start);
    at = cs_put_literal(at, ",\"args\":{");
    PUT(at, "device", p->pid);
    if (w->context) PUT(at, "context", w->context);
    PUT(at, "stream", p->lane);
    if (correlation) PUT(at, "correlation", correlation);
    at = cs_put_literal(at, "\"priority\":");
    at = cs_put_int(at, p->priority);
    *at++ = ',';
    at = put_kind_args(at, w, p->end - p->start);
    if (w->by_events) at = put_error(at, w);
    if (w->graph) PUT(at, "graph", w->graph);
    if (w->node) PUT(at, "graph node", w->node & 0xffffffff);
    if (p->elsewhere) PUT(at, "cs.ran_on", w->stream);
    if (p->raw_start != p->start) {
        at = cs_put_literal(at, "\"cs.raw_start_ns\":");
        at = cs_put_uint(at, p->raw_start);
        *at++ = ',';
    }
    at[-1] = '}';
    *at++ = '}';
    return at;
}

char *cs_gpu_arrow_end(char *at, const char *phase, const char *kind, cs_u64 id, cs_u32 pid, cs_u32 tid, cs_u64 ns)
{
    at = cs_put_literal(at, ",\n{\"ph\":\"");
    at = cs_put_text(at, phase);
    at = cs_put_text(at, *phase == 'f' ? "\",\"bp\":\"e\",\"id\":" : "\",\"id\":");
    at = cs_put_uint(at, id);
    at = cs_put_literal(at, ",\"pid\":");
    at = cs_put_uint(at, pid);
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, tid);
    at = cs_put_literal(at, ",\"ts\":");
    at = cs_put_us(at, ns);
    at = cs_put_literal(at, ",\"cat\":\"");
    at = cs_put_text(at, kind);
    at = cs_put_literal(at, "\",\"name\":\"");
    at = cs_put_text(at, kind);
    return cs_put_literal(at, "\"}");
}

/* Which lane: the stream that a graph's node was captured from, else that the profiler names, else the call's; learnt where only one of the two is known. */
static cs_u32 lane_of(const struct cs_gpu_work *w, const struct cs_op *op)
{
    struct cs_stream *stream = cs_pool_get(&cs_streams, w->vstream);
    if (stream || (w->node && (stream = cs_gpu_graph_stream(w)))) return cs_gpu_lane_of(stream);
    struct cs_gpu_lane *of_call = op ? cs_gpu_lane_get(op->lane) : NULL;
    bool may_be = of_call && of_call->device == w->device && (!of_call->context || of_call->context == w->context);
    if (may_be && (of_call->gpu_id == w->stream || (!of_call->gpu_id && !op->graph && !cs_gpu_lane_known(w->device, w->context, w->stream)))) {
        of_call->context = w->context;
        cs_gpu_lane_learn(op->lane, w->stream);
        return op->lane;
    }
    cs_u32 lane = cs_gpu_lane_known(w->device, w->context, w->stream);
    return lane ? lane : cs_gpu_lane_internal(w->device, w->context, w->stream);
}

static void arrived(struct cs_op *op, const struct place *p)
{
    op->works++;
    cs_gpu_came(op);
    if (p->end <= op->work_end_ns) return;
    op->work_end_ns = p->end;
    op->work_pid = p->pid;
    op->work_tid = p->tid;
    op->work_file = cs_lanes_file();
}

/* One arrow a record; those of a graph launch after its first have numbers of their own, since an arrow's number is its own in the file. */
static void arrow_write(const struct cs_op *op, const struct place *p)
{
    static cs_u64 further;
    if (op->file != cs_lanes_file()) { /* the call is in an earlier part of the trace */
        cs_totals.arrows_between_parts++;
        return;
    }
    cs_u64 id = op->works ? CS_FLOW_FURTHER + ++further : op->id;
    char *at = cs_gpu_arrow_end(cs_output_room(), "s", "ac2g", id, cs_host_pid(), op->tid, op->begin_ns);
    cs_output_commit(cs_gpu_arrow_end(at, "f", "ac2g", id, p->pid, p->tid, p->start));
}

static cs_u64 without_lane;

void cs_gpu_work_lost_write(void)
{
    if (without_lane) cs_gpu_lost_write(without_lane, "more streams than the trace has lanes for");
    without_lane = 0;
}

void cs_gpu_work_write(const struct cs_gpu_work *w, struct cs_op *op)
{
    if (w->kind == CS_GPU_OVERHEAD) {
        cs_gpu_overhead_write(w);
        return;
    }
    if (op && op->muted) return;
    struct place p = {.start = cs_clock_ns(w->start), .end = cs_clock_ns(w->end)};
    struct cs_gpu_lane *lane = cs_gpu_lane_get(lane_of(w, op));
    if (cs_output_full()) {
        cs_totals_cut_work(1, p.start, p.end);
        return;
    }
    if (!lane) {
        without_lane++;
        return;
    }
    p.raw_start = p.start;
    if (op && p.start < op->begin_ns) p.start = op->begin_ns; /* clocks of two processors: never before its call */
    struct cs_stream *stream = cs_pool_get(&cs_streams, lane->stream);
    if (stream && stream->announced && p.start <= stream->shown_from_ns) p.start = stream->shown_from_ns + 1; /* inside the stream's life */
    if (p.end <= p.start) p.end = p.start + 1;
    p.pid = lane->device;
    p.lane = lane->tid;
    p.elsewhere = w->node && w->stream && lane->gpu_id && w->stream != lane->gpu_id;
    p.priority = lane->priority;
    p.tid = cs_gpu_lane_place(lane, false, &p.start, p.end);
    char *room = cs_output_room();
    if (cs_output_full()) { /* by making room */
        cs_totals_cut_work(1, p.start, p.end);
        return;
    }
    cs_output_commit(put_slice(room, w, &p, op ? op->id : 0));
    cs_totals_gathered(p.start, p.end);
    cs_totals.gpu.count[w->kind]++; /* before anything else goes to the file, which may be full then: this slice is lost with what is not written */
    cs_totals.gpu.unmatched += !op;
    if (w->kind == CS_GPU_COPY && w->copy.peer) cs_gpu_peer_write(w, p.lane, op ? op->id : 0, p.start, p.end);
    if (op) {
        arrow_write(op, &p);
        arrived(op, &p);
        struct cs_op *last = cs_op_get(op->joined);
        if (last) arrived(op = last, &p);
        cs_gpu_queue_arrived(cs_gpu_lane_get(op->lane), op, w->end, p.end);
    }
    if (p.tid == p.lane) cs_gpu_count_busy(p.pid, p.start, p.end);
}
