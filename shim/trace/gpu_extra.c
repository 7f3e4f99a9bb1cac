/*
 * What a profiler tells besides work: its own overhead, memory pools, and what it lost.
 */
#include <stdio.h>

#include "shim/base/clock.h"
#include "shim/base/json.h"
#include "shim/gpu/mark.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"
#include "shim/trace/totals.h"
#include "shim/trace/windows.h"

/* A lane of the process's own: no thread has a number with that bit. */
static cs_u32 extra_tid(int bit) { return cs_host_pid() ^ 1u << bit; }

void cs_gpu_overhead_write(const struct cs_gpu_work *w)
{
    static const char *const names[] = {"Unknown", "Buffer Flush", "Instrumentation", "Resource", "Runtime Triggered Module Loading", "Lazy Function Loading",
                                        "Command Buffer Full", "Activity Buffer Request", "UVM Activity Init"};
    struct cs_rows *rows = &cs_gpu_shown.overhead;
    cs_u64 start = cs_clock_ns(w->start), end = cs_clock_ns(w->end);
    cs_u32 tid = extra_tid(29), kind = w->overhead.what >> 16;
    const cs_u32 level = cs_row_level(&rows->row, start);
    if (cs_output_full() || cs_windows_outside(w->start)) return;
    if (level == CS_LANE_LEVELS) return; /* more at once than anybody reads */
    rows->row.filled[level] = end > start ? end : start + 1;
    if (!(rows->announced >> level & 1)) cs_lane_named(tid + level, "profiler overhead");
    rows->announced |= 1u << level;
    const char *name = w->overhead.what == 1 ? "Driver Compiler" : kind < CS_COUNT(names) ? names[kind] : names[0];
    cs_commit(cs_slice_bare(cs_draft(), "overhead", cs_title(name), cs_lane_at(cs_host_pid(), tid + level), start, end));
    cs_totals.sum.gpu.count[CS_GPU_OVERHEAD] += !cs_output_full();
}

void cs_gpu_pool_write(const struct cs_gpu_pool *pool)
{
    if (cs_output_full() || !pool->at) return;
    cs_u32 tid = cs_gpu_counter_tid(pool->device);
    char name[48];
    snprintf(name, sizeof name, "memory pool %#llx", (unsigned long long)pool->address);
    struct cs_draft e = cs_counter(cs_draft(), cs_title(name), cs_lane_at(pool->device, tid), cs_clock_ns(pool->at));
    e = cs_arg_uint(e, "reserved", pool->size);
    cs_commit(cs_args_end(cs_arg_uint(e, "used", pool->used)));
}

/* A stretch of time in which a part was missing; or so much of it was lost, and then `key` is the loss's (base/loss.def). */
static void gap_write(enum cs_gpu_part part, cs_u64 from_ns, cs_u64 to_ns, cs_u64 count, const char *cause, const char *key)
{
    static const struct {
        int bit;
        const char *lane, *none;
    } rows[CS_GPU_PARTS] = {[CS_GPU_TIMES] = {28, "GPU times missing", "no GPU times"},
                            [CS_GPU_RUNTIME_CALLS] = {26, "runtime calls missing", "no runtime calls"}};
    struct cs_rows *shown = &cs_gpu_shown.gaps[part];
    cs_u64 *filled = &shown->row.filled[0];
    cs_u32 tid = extra_tid(rows[part].bit);
    if (cs_output_full()) return;
    if (!shown->announced) cs_lane_named(tid, rows[part].lane), shown->announced = 1;
    if (from_ns < *filled) from_ns = *filled;
    if (to_ns <= from_ns) to_ns = from_ns + 1;
    *filled = to_ns;
    struct cs_draft e = cs_slice(cs_draft(), "cs_loss", cs_title(count ? "lost" : rows[part].none), cs_lane_at(cs_host_pid(), tid), from_ns, to_ns);
    e = cs_arg_uint(e, "gpu_work", count);
    e = cs_arg_text(e, "cause", cause, 512);
    if (key) e = cs_arg_word(e, "cs.loss", key);
    cs_commit(cs_args_end(e));
}

void cs_gpu_lost_write(cs_u64 count, enum cs_loss why)
{
    cs_u64 now = cs_clock_ns(cs_ticks());
    gap_write(CS_GPU_TIMES, cs_gpu_shown.lost_ns, now, count, cs_loss_info[why].text, cs_loss_info[why].key);
    if (cs_output_full()) { /* before, or by making room */
        cs_totals_cut_work(count, cs_gpu_shown.lost_ns, now);
    } else {
        cs_totals_gathered(cs_gpu_shown.lost_ns, now);
        cs_totals.sum.gpu.lost += count;
    }
    cs_gpu_shown.lost_ns = now;
}

/* What was missing for a while, and why: written when that is over, and at the end of the trace; of a backend that has ended only where something was
 * enqueued since. */
void cs_gpu_missing_write(bool all)
{
    struct cs_gpu_gap gap;
    while (cs_gpu_missing_over(&gap)) gap_write(gap.part, cs_clock_ns(gap.from), cs_clock_ns(gap.until), 0, gap.why, NULL);
    for (int part = 0; part < CS_GPU_PARTS && all; part++) {
        const char *why = cs_gpu_missing((enum cs_gpu_part)part, &gap.from);
        if (why && (why != cs_gpu_ended || cs_match_enqueued_last() > gap.from)) gap_write((enum cs_gpu_part)part, cs_clock_ns(gap.from), cs_clock_ns(cs_ticks()), 0, why, NULL);
    }
}

char *cs_gpu_put_totals(char *at)
{
    static const char *const names[CS_GPU_KINDS] = {"kernels", "copies", "memsets", "graphs", "ranges", "overhead"};
    cs_u64 since;
    const char *why = cs_gpu_missing(CS_GPU_TIMES, &since);
    if (why == cs_gpu_ended) why = NULL;
    if (!why && !cs_gpu_is_on()) return at; /* nobody wanted any */
    at = cs_put_literal(at, ",\"gpu\":{\"source\":");
    at = cs_put_string(at, cs_gpu_source(), 16);
    if (cs_gpu_samples()) at = cs_put_uint(cs_put_literal(at, ",\"sample\":"), cs_gpu_sample);
    for (int kind = 0; kind < CS_GPU_KINDS; kind++) {
        *at++ = ',';
        at = cs_put_string(at, names[kind], 16);
        *at++ = ':';
        at = cs_put_uint(at, cs_totals.sum.gpu.count[kind]);
    }
    at = cs_put_literal(at, ",\"without_call\":");
    at = cs_put_uint(at, cs_totals.sum.gpu.unmatched);
    at = cs_put_literal(at, ",\"without_times\":");
    at = cs_put_uint(at, cs_totals.sum.gpu.no_times);
    at = cs_put_literal(at, ",\"lost\":");
    at = cs_put_uint(at, cs_totals.sum.gpu.lost);
    at = cs_put_literal(at, ",\"launches_without_kernel\":");
    at = cs_put_uint(at, cs_totals.sum.gpu.missed);
    if (!why) why = cs_gpu_second_best();
    if (why) {
        at = cs_put_literal(at, ",\"cause\":");
        at = cs_put_string(at, why, 512);
    }
    return cs_put_literal(at, "}");
}
