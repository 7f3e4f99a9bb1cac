/*
 * Slices of GPU work, as Kineto names them and their arguments. Each is the last end of the arrow from the call that enqueued it.
 */
#include <stdio.h>

#include "shim/trace/event.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"
#include "shim/trace/totals.h"

static const char *const categories[CS_GPU_KINDS] = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_graph", "gpu_range", "overhead"};

/* --- names --- */

static const char *word_of(const char *const *words, size_t n, size_t i) { return i < n ? words[i] : "Unknown"; }

static const char *memory_of(unsigned char kind)
{
    static const char *const kinds[] = {"Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static"};
    return word_of(kinds, CS_COUNT(kinds), kind);
}

struct cs_title cs_gpu_title(const struct cs_gpu_work *w, char text[128])
{
    static const char *const directions[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
    switch (w->kind) {
    case CS_GPU_KERNEL: return w->kernel.name ? cs_title_kernel(w->kernel.name) : cs_title("kernel");
    case CS_GPU_COPY: {
        const char *direction = word_of(directions, CS_COUNT(directions), w->copy.direction);
        if (w->by_events) snprintf(text, 128, "Memcpy %s", direction);
        else snprintf(text, 128, "Memcpy %s (%s -> %s)", direction, memory_of(w->copy.from), memory_of(w->copy.to));
        return cs_title(text);
    }
    case CS_GPU_SET: snprintf(text, 128, "Memset (%s)", memory_of(w->set.memory)); return cs_title(text);
    case CS_GPU_GRAPH:
        if (w->by_events) return cs_title("graph");
        snprintf(text, 128, "graph %u", w->graph);
        return cs_title(text);
    case CS_GPU_RANGE: snprintf(text, 128, "%u calls", w->range.calls); return cs_title(text);
    default: return cs_title("work");
    }
}

/* --- arguments --- */

/* Not where nobody knows how much was moved, or the time is little more than a guess. */
static struct cs_draft arg_bandwidth(struct cs_draft e, const struct cs_gpu_work *w, cs_u64 bytes, cs_u64 ns)
{
    if (w->by_events && (!bytes || w->error > ns / 10)) return e;
    return cs_arg_us(e, "memory bandwidth (GB/s)", bytes * 1000 / ns); /* bytes a ns, three decimals */
}

static struct cs_draft kernel_args(struct cs_draft e, const struct cs_gpu_work *w, cs_u32 device)
{
    if (cs_gpu_shape_shown(w, device)) return e;
    e = cs_arg_uints(e, "grid", w->kernel.grid, 3);
    e = cs_arg_uints(e, "block", w->kernel.block, 3);
    if (w->by_events) return e;
    e = cs_arg_uint(e, "registers per thread", w->kernel.registers);
    if (w->kernel.shared_static + w->kernel.shared_dynamic) e = cs_arg_uint(e, "shared memory", w->kernel.shared_static + w->kernel.shared_dynamic);
    if (w->kernel.local) e = cs_arg_uint(e, "local memory per thread", w->kernel.local);
    return e;
}

static struct cs_draft copy_args(struct cs_draft e, const struct cs_gpu_work *w, cs_u64 ns)
{
    if (w->copy.bytes || !w->by_events) e = cs_arg_uint(e, "bytes", w->copy.bytes);
    e = arg_bandwidth(e, w, w->copy.bytes, ns);
    if (!w->copy.peer) return e;
    e = cs_arg_uint(e, "fromDevice", w->copy.from_device);
    return cs_arg_uint(e, "toDevice", w->copy.to_device);
}

static struct cs_draft kind_args(struct cs_draft e, const struct cs_gpu_work *w, cs_u32 device, cs_u64 ns)
{
    switch (w->kind) {
    case CS_GPU_KERNEL: return kernel_args(e, w, device);
    case CS_GPU_COPY: return copy_args(e, w, ns);
    case CS_GPU_SET:
        e = cs_arg_uint(e, "bytes", w->set.bytes);
        e = cs_arg_uint(e, "value", w->set.value);
        return arg_bandwidth(e, w, w->set.bytes, ns);
    case CS_GPU_RANGE: return cs_arg_uint(e, "calls", w->range.calls);
    default: return e;
    }
}

/* --- one slice --- */

/* What it waited for on another lane, or nobody knows where. That it began soon after its call, or behind the work before it on its stream, its lane shows. Of a
 * graph's further nodes the launch says nothing. */
static struct cs_draft hold_args(struct cs_draft e, const struct cs_match_found *found, const struct cs_hold *hold)
{
    static const char *const whys[] = {[CS_HOLD_EVENT] = "event", [CS_HOLD_DEFAULT] = "default stream", [CS_HOLD_UNKNOWN] = "not known"};
    if (!hold->ns || !whys[hold->why] || found->work->by_events) return e;
    e = cs_arg_constant(cs_arg_us(e, "waited_us", hold->ns), "waited for", whys[hold->why]);
    return hold->stream ? cs_arg_uint(e, "waited for stream", hold->stream) : e;
}

/* The work of other lanes that it had to wait for: exactly, whether or not that took any time. That of its own lane stands before it. */
static struct cs_draft after_args(struct cs_draft e, const struct cs_hold *hold)
{
    return hold->count ? cs_arg_uints(e, "event_wait_ids", hold->after, hold->count) : e;
}

/* A lane's work has one context. The first slice in the file says which, and one that has another. */
static struct cs_draft context_arg(struct cs_draft e, struct cs_lane_shown *shown, cs_u32 context)
{
    if (!context || shown->context == context) return e;
    return cs_arg_uint(e, "context", shown->context = context);
}

static bool is_of_earlier_part(const struct cs_match_found *found) { return found->op->file != cs_lanes_file(); } /* its call is, and no arrow leads there */

/* What its call made is this and nothing else. */
static bool makes_one(const struct cs_match_found *found) { return found->work->kind == CS_GPU_KERNEL && !found->work->graph && !found->op->graph; }

static struct cs_draft slice(struct cs_draft e, const struct cs_match_found *found, cs_u64 raw_start_ns, const struct cs_hold *hold)
{
    const struct cs_gpu_work *w = found->work;
    const struct cs_match_lane *lane = found->lane; /* its number is the stream's, without what tells overlap */
    char text[128];
    e = cs_slice(e, categories[w->kind], cs_gpu_title(w, text), cs_lane_at(found->pid, found->tid), found->start_ns, found->end_ns);
    e = cs_arg_uint(e, "stream", lane->tid);
    if (found->op) e = cs_arg_uint(e, "correlation", found->op->id);
    e = context_arg(e, cs_gpu_lane_shown(lane), w->context);
    if (lane->priority) e = cs_arg_int(e, "priority", lane->priority);
    e = kind_args(e, w, found->pid, found->end_ns - found->start_ns);
    e = after_args(hold_args(e, found, hold), hold);
    if (w->by_events) e = cs_arg_us(cs_arg_word(e, "cs.time", "events"), "cs.error_us", w->error);
    if (w->graph) e = cs_arg_uint(e, "graph", w->graph);
    if (w->node) e = cs_arg_uint(e, "graph node", w->node & 0xffffffff);
    /* it ran on another stream than the one from which it was captured into its graph, where it stands */
    if (w->node && w->stream && lane->gpu_id && w->stream != lane->gpu_id) e = cs_arg_uint(e, "cs.ran_on", w->stream);
    if (raw_start_ns != found->start_ns) e = cs_arg_uint(e, "cs.raw_start_ns", raw_start_ns);
    if (!found->op || is_of_earlier_part(found)) return cs_args_end(e);
    return cs_args_end_bound(e, makes_one(found) ? CS_END_ONLY_LAST : CS_END_LAST, found->op->id);
}

static void place(struct cs_match_found *found)
{
    struct cs_match_lane *lane = found->lane;
    /* Clocks of two processors: never before its call. Nor at once with it: Perfetto then takes the longer of the two for the first. */
    if (found->op && found->start_ns <= found->op->begin_ns) found->start_ns = found->op->begin_ns + 1;
    if (found->end_ns <= found->start_ns) found->end_ns = found->start_ns + 1;
    found->pid = lane->device;
    found->tid = cs_gpu_lane_place(lane, false, &found->start_ns, found->end_ns);
}

/* By events nobody knows what was waited for: their times are too coarse. */
static void sum_up(const struct cs_match_found *found, const struct cs_hold *hold)
{
    struct cs_lane_shown *shown = cs_gpu_lane_shown(found->lane);
    struct cs_gpu_sums *sums = &cs_gpu_shown.devices[found->pid % CS_GPU_PIDS].sums;
    if (!found->work->by_events) sums->tells_waits = true, sums->waits_ns[hold->why] += hold->ns;
    if (CS_LIKELY(shown->span == cs_gpu_shown.span)) return;
    shown->span = cs_gpu_shown.span;
    sums->streams++;
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
    struct cs_hold hold;
    cs_match_hold(&hold, found);
    struct cs_draft draft = {NULL};
    if (!cs_output_full()) place(found), draft = cs_draft();
    if (cs_output_full()) { /* before, or by making room */
        cs_totals_cut_work(1, found->start_ns, found->end_ns);
        return false;
    }
    cs_commit(slice(draft, found, raw_start_ns, &hold));
    cs_totals_gathered(found->start_ns, found->end_ns);
    cs_totals.sum.gpu.count[w->kind]++; /* before anything else goes to the file, which may be full then: this slice is lost with what is not written */
    cs_totals.sum.gpu.unmatched += !found->op;
    sum_up(found, &hold);
    if (w->kind == CS_GPU_COPY && w->copy.peer) cs_gpu_peer_write(found);
    cs_totals.arrows_between_parts += found->op && is_of_earlier_part(found);
    return true;
}
