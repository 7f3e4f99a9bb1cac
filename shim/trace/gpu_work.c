/*
 * Slices of GPU work, as Kineto names them and their arguments, each with the arrow from the call that enqueued it.
 */
#include <stdio.h>
#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/json.h"
#include "shim/trace/demangle.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"
#include "shim/trace/output.h"
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

static char *put_slice(char *at, const struct cs_match_found *found, cs_u64 raw_start_ns)
{
    const struct cs_gpu_work *w = found->work;
    const struct cs_match_lane *lane = found->lane; /* its number is the stream's, without what tells overlap */
    at = cs_put_literal(at, ",\n{\"ph\":\"X\",\"cat\":\"");
    at = cs_put_text(at, categories[w->kind]);
    at = cs_put_literal(at, "\",\"name\":");
    at = cs_gpu_put_name(at, w);
    at = cs_put_literal(at, ",\"pid\":");
    at = cs_put_uint(at, found->pid);
    at = cs_put_literal(at, ",\"tid\":");
    at = cs_put_uint(at, found->tid);
    at = cs_put_literal(at, ",\"ts\":");
    at = cs_put_us(at, found->start_ns);
    at = cs_put_literal(at, ",\"dur\":");
    at = cs_put_us(at, found->end_ns - found->start_ns);
    at = cs_put_literal(at, ",\"args\":{");
    PUT(at, "device", found->pid);
    if (w->context) PUT(at, "context", w->context);
    PUT(at, "stream", lane->tid);
    if (found->op) PUT(at, "correlation", found->op->id);
    at = cs_put_literal(at, "\"priority\":");
    at = cs_put_int(at, lane->priority);
    *at++ = ',';
    at = put_kind_args(at, w, found->end_ns - found->start_ns);
    if (w->by_events) at = put_error(at, w);
    if (w->graph) PUT(at, "graph", w->graph);
    if (w->node) PUT(at, "graph node", w->node & 0xffffffff);
    /* it ran on another stream than the one from which it was captured into its graph, where it stands */
    if (w->node && w->stream && lane->gpu_id && w->stream != lane->gpu_id) PUT(at, "cs.ran_on", w->stream);
    if (raw_start_ns != found->start_ns) {
        at = cs_put_literal(at, "\"cs.raw_start_ns\":");
        at = cs_put_uint(at, raw_start_ns);
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

/* One arrow a record; those of a graph launch after its first have numbers of their own, since an arrow's number is its own in the file. */
static void arrow_write(const struct cs_match_found *found)
{
    const struct cs_op *op = found->op;
    if (op->file != cs_lanes_file()) { /* the call is in an earlier part of the trace */
        cs_totals.arrows_between_parts++;
        return;
    }
    cs_u64 id = op->works ? CS_FLOW_FURTHER + ++cs_gpu_shown.further : op->id;
    char *at = cs_gpu_arrow_end(cs_output_room(), "s", "ac2g", id, cs_host_pid(), op->tid, op->begin_ns);
    cs_output_commit(cs_gpu_arrow_end(at, "f", "ac2g", id, found->pid, found->tid, found->start_ns));
}

/* Where it stands: inside its stream's life. */
static void place(struct cs_match_found *found)
{
    struct cs_match_lane *lane = found->lane;
    if (found->op && found->start_ns < found->op->begin_ns) found->start_ns = found->op->begin_ns; /* clocks of two processors: never before its call */
    const struct cs_stream *stream = cs_pool_get(&cs_streams, lane->stream);
    if (stream && stream->announced && found->start_ns <= stream->shown_from_ns) found->start_ns = stream->shown_from_ns + 1;
    if (found->end_ns <= found->start_ns) found->end_ns = found->start_ns + 1;
    found->pid = lane->device;
    found->tid = cs_gpu_lane_place(lane, false, &found->start_ns, found->end_ns);
}

bool cs_gpu_work_write(struct cs_match_found *found)
{
    const struct cs_gpu_work *w = found->work;
    const cs_u64 raw_start_ns = found->start_ns;
    if (w->kind == CS_GPU_OVERHEAD) {
        cs_gpu_overhead_write(w);
        return false;
    }
    if (!found->lane && !cs_output_full()) {
        cs_gpu_shown.without_lane++;
        return false;
    }
    char *room = NULL;
    if (!cs_output_full()) place(found), room = cs_output_room();
    if (cs_output_full()) { /* before, or by making room */
        cs_totals_cut_work(1, found->start_ns, found->end_ns);
        return false;
    }
    cs_output_commit(put_slice(room, found, raw_start_ns));
    cs_totals_gathered(found->start_ns, found->end_ns);
    cs_totals.gpu.count[w->kind]++; /* before anything else goes to the file, which may be full then: this slice is lost with what is not written */
    cs_totals.gpu.unmatched += !found->op;
    if (w->kind == CS_GPU_COPY && w->copy.peer) cs_gpu_peer_write(found);
    if (found->op) arrow_write(found);
    return true;
}
