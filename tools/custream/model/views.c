#include "tools/custream/model/views.h"

#include <math.h>

#include "tools/custream/model/table.h"

/* --- parts --- */

bool parts_all(const struct run *run)
{
    for (size_t i = 0; i < run->part_count; i++)
        if (run->parts[i].number && run->parts[i].number != i + 1) return false;
    return true;
}

/* lost_in_all is NAN in a recovered part that does not tell it; fmax() ignores NAN. */
struct lost parts_lost_in_all(const struct run *run)
{
    struct lost lost = {0};
    for (size_t i = 0; i < run->part_count; i++) {
        const struct part *part = &run->parts[i];
        lost.calls = fmax(lost.calls + part->lost.calls, part->lost_in_all.calls);
        lost.works = fmax(lost.works + part->lost.works, part->lost_in_all.works);
    }
    return lost;
}

bool parts_continue(const struct run *run)
{
    return run->part_count && run->parts[run->part_count - 1].continues;
}

/* --- losses --- */

uint64_t works_lost(const struct loss *loss)
{
    return loss->no_times || loss->closed ? UINT64_MAX : loss->works;
}
uint64_t calls_lost(const struct loss *loss) { return loss->closed ? UINT64_MAX : loss->calls; }

struct periods periods_lost(const struct run *run, loss_size *lost, uint64_t few)
{
    struct periods periods = {array_zeros(run->loss_count, sizeof *periods.rows), 0};
    for (size_t i = 0; i < run->loss_count; i++) {
        const struct loss *loss = &run->losses[i];
        struct period *last = periods.count ? &periods.rows[periods.count - 1] : NULL;
        if (lost(loss) <= few) continue;
        if (!last || loss->begin > last->end)
            periods.rows[periods.count++] = (struct period){loss->begin, loss->end};
        else if (loss->end > last->end) last->end = loss->end;
    }
    return periods;
}

bool periods_meet(const struct periods *periods, int64_t from, int64_t to)
{
    const size_t first = FIRST_NOT(i, 0, periods->count, periods->rows[i].end <= from);
    return first < periods->count && periods->rows[first].begin < to;
}

bool calls_miss(const struct run *run, int64_t from, int64_t to)
{
    return periods_meet(&run->no_calls, from, to);
}

/* --- occupancy --- */

/* Limits of a multiprocessor of compute capability 9.0, used if the trace has none: "Technical
 * Specifications per Compute Capability", CUDA Programming Guide. */
enum {
    SM_THREADS = 2048,
    SM_REGISTERS = 65536,
    SM_SHARED = 228 << 10,
    SM_BLOCKS = 32,
    WARP_THREADS = 32,
    WARP_REGISTER_STEP = 256,   /* a warp gets registers in steps of this size */
    BLOCK_SHARED_OWN = 1 << 10, /* shared memory that CUDA itself takes for each block */
};

static uint64_t at_most(uint64_t limit, uint64_t has, uint64_t takes)
{
    const uint64_t fit = takes ? has / takes : limit;
    return fit < limit ? fit : limit;
}

double kernel_fills(const struct run *run, const struct work *work)
{
    const struct device *device = &run->devices[work_device(run, work)];
    if (work->kind != WORK_KERNEL || work->shape == NONE || !device->sms) return NAN;
    const struct shape *shape = &run->shapes[work->shape];
    const double blocks = (double)shape->grid[0] * shape->grid[1] * shape->grid[2];
    if (blocks == 0 || !shape->block[0] || !shape->block[1] || !shape->block[2]) return NAN;
    const uint64_t threads = (uint64_t)shape->block[0] * shape->block[1] * shape->block[2];
    const uint64_t warps = (threads + WARP_THREADS - 1) / WARP_THREADS;
    const uint64_t wanted = shape->registers > 0 ? (uint64_t)shape->registers * WARP_THREADS : 0;
    const uint64_t per_warp =
        (wanted + WARP_REGISTER_STEP - 1) / WARP_REGISTER_STEP * WARP_REGISTER_STEP;
    uint64_t on_sm = at_most(/* how many blocks a multiprocessor holds at once */
        device->sm_blocks ?: SM_BLOCKS, (device->sm_threads ?: SM_THREADS) / WARP_THREADS, warps);
    on_sm = at_most(on_sm, device->sm_registers ?: SM_REGISTERS, warps * per_warp);
    on_sm = at_most(on_sm, device->sm_shared_memory ?: SM_SHARED,
        (uint64_t)shape->shared_memory + BLOCK_SHARED_OWN);
    /* at least one, as the kernel has run */
    return blocks / ((double)(on_sm ? on_sm : 1) * device->sms);
}

/* --- waits --- */

bool call_waits(const struct call *call)
{
    return call_kind(call) == CS_KIND_SYNC ||
           (call_kind(call) == CS_KIND_COPY && call_how(call, CS_HOW_BLOCKS));
}

/* --- host functions --- */

uint32_t *host_functions_of(const struct run *run)
{
    if (!run->callback_count) return NULL;
    struct groups callbacks =
        GROUPS(run->stream_count, run->callbacks, run->callback_count, stream);
    uint32_t *of = array_none(run->call_count);
    uint32_t *next = array_zeros(run->stream_count, sizeof *next); /* places in callbacks.members */
    for (size_t s = 0; s < run->stream_count; s++) next[s] = callbacks.begins[s];
    for (size_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        if (call_kind(call) != CS_KIND_HOSTFN || call->stream == NONE || call->result ||
            call->captured)
            continue;
        uint32_t *at = &next[call->stream], before = *at;
        while (*at < callbacks.begins[call->stream + 1] &&
               run->callbacks[callbacks.members[*at]].enqueued <= call->begin)
            ++*at;
        if (*at > before) of[i] = callbacks.members[*at - 1];
    }
    free(next);
    groups_free(&callbacks);
    return of;
}

/* --- memory --- */

/* Allocating calls of CUDA's runtime. Traces of other tools have these. */
static const char *const allocating[] = {"cudaMalloc", "cudaFree", "cudaMallocHost",
    "cudaHostAlloc", "cudaFreeHost", "cudaMallocManaged", "cudaMallocPitch"};

bool work_is_pageable(const struct run *run, const struct work *work)
{
    return work->kind == WORK_COPY && strstr(text_in(run, work->name), "Pageable");
}

bool call_allocates(const struct run *run, const struct call *call)
{
    const enum cs_kind kind = call_kind(call);
    if (kind == CS_KIND_ALLOC) return true;
    if (kind == CS_KIND_MEMORY) return call->stream == NONE && !call_how(call, CS_HOW_PREFETCHES);
    for (size_t i = 0; call->call == CS_CALL_NONE && i < sizeof allocating / sizeof *allocating;
        i++)
        if (!strcmp(text_in(run, call->name), allocating[i])) return true;
    return false;
}

bool call_frees(const struct run *run, const struct call *call)
{
    if (call_kind(call) == CS_KIND_ALLOC) return call_how(call, CS_HOW_WAITS);
    return call_allocates(run, call);
}

/* --- the steady part --- */

COMPARES(by_length, int64_t, ORDER(*a, *b))

/* Returns the longest series of begins without a pause. A pause is longer than PAUSE_NS, than PAUSE
 * times the median interval between two begins, and than twice the (OFTEN - 1)-th longest interval.
 * Intervals that are shorter, or come so often, lie between steps. */
static struct steady longest_series(const int64_t *begins, size_t count)
{
    enum { PAUSE = 50, OFTEN = 5, PAUSE_NS = 50 * 1000 * 1000 };
    int64_t *between = array_zeros(count, sizeof *between);
    for (size_t i = 1; i < count; i++) between[i - 1] = begins[i] - begins[i - 1];
    qsort(between, count - 1, sizeof *between, by_length);
    const int64_t middle = PAUSE * between[(count - 1) / 2], often = 2 * between[count - OFTEN],
                  longer = middle > often ? middle : often,
                  pause = longer > PAUSE_NS ? longer : PAUSE_NS;
    free(between);
    size_t from = 0, best_from = 0, best_to = 0;
    for (size_t i = 1; i <= count; i++)
        if (i == count || begins[i] - begins[i - 1] > pause) {
            if (i - from > best_to - best_from) best_from = from, best_to = i;
            from = i;
        }
    return (struct steady){begins[best_from], begins[best_to - 1], 0};
}

static bool is_computing(const struct work *work)
{
    return work->kind == WORK_KERNEL || work->kind == WORK_GRAPH;
}

static int64_t called_at(const struct run *run, const struct work *work)
{
    return work->call == NONE ? work->begin : run->calls[work->call].begin;
}

/* Returns the time from the first call that makes work to the end of all work. Without work,
 * returns the time of the run. */
static struct steady work_span(const struct run *run)
{
    struct steady span = {INT64_MAX, INT64_MIN, 0};
    if (!run->work_count) return (struct steady){run->begin, run->end, 0};
    for (size_t i = 0; i < run->work_count; i++) {
        const struct work *work = &run->works[i];
        if (called_at(run, work) < span.begin) span.begin = called_at(run, work);
        if (work->end > span.end) span.end = work->end;
    }
    return span;
}

struct steady steady_part(const struct run *run)
{
    enum { LEAST = 10, PART = 10 /* the least part of the longest total that counts: a tenth */ };
    struct tallies kernels = {0};
    struct steady steady = work_span(run);
    for (size_t i = 0; i < run->work_count; i++)
        if (is_computing(&run->works[i]))
            tally_add(
                tally_of(&kernels, run->works[i].name), run->works[i].end - run->works[i].begin);
    tallies_sort(&kernels);
    size_t k = 0;
    while (k < kernels.count && kernels.rows[k].times < LEAST) k++;
    if (k < kernels.count && kernels.rows[k].total * PART >= kernels.rows[0].total) {
        int64_t *begins = array_zeros(kernels.rows[k].times, sizeof *begins), end = 0;
        size_t count = 0;
        for (size_t i = 0; i < run->work_count; i++) {
            const struct work *work = &run->works[i];
            if (is_computing(work) && work->name == kernels.rows[k].key)
                begins[count++] = called_at(run, work);
        }
        qsort(begins, count, sizeof *begins, by_length);
        steady = longest_series(begins, count);
        for (size_t i = 0; i < run->work_count; i++) {
            const struct work *work = &run->works[i];
            if (called_at(run, work) <= steady.end && work->end > end) end = work->end;
        }
        steady.end = end;
        steady.kernel = (text)kernels.rows[k].key;
        free(begins);
    }
    tallies_free(&kernels);
    return steady;
}

/* --- thread ranges --- */

static const struct range *range_in(const struct run *run, uint32_t place)
{
    return &run->ranges[run->thread_ranges.by_thread.members[place]];
}

void thread_ranges_make(struct run *run)
{
    struct thread_ranges *ranges = &run->thread_ranges;
    uint32_t *of = array_zeros(run->range_count, sizeof *of);
    for (size_t r = 0; r < run->range_count; r++)
        of[r] = run->ranges[r].thread == NONE ? (uint32_t)run->thread_count : run->ranges[r].thread;
    ranges->by_thread = groups_make(run->thread_count + 1, of, run->range_count, sizeof *of, 0);
    free(of);
    ranges->parent = array_none(run->range_count);
    ranges->latest = array_zeros(run->range_count, sizeof *ranges->latest);
    const uint32_t *begins = ranges->by_thread.begins;
    for (uint32_t t = 0; t <= run->thread_count; t++)
        for (uint32_t place = begins[t], open = NONE; place < begins[t + 1]; open = place++) {
            while (open != NONE && range_in(run, open)->end <= range_in(run, place)->begin)
                open = ranges->parent[open];
            ranges->parent[place] = open; /* the nearest range before it that has not ended */
            ranges->latest[place] = range_in(run, place)->end;
            if (open != NONE && ranges->latest[open] > ranges->latest[place])
                ranges->latest[place] = ranges->latest[open];
        }
}

uint32_t thread_place_at(const struct run *run, uint32_t thread, int64_t at)
{
    const struct thread_ranges *ranges = &run->thread_ranges;
    const uint32_t first = ranges->by_thread.begins[thread],
                   end = ranges->by_thread.begins[thread + 1],
                   after =
                       (uint32_t)FIRST_NOT(i, first, end, range_in(run, (uint32_t)i)->begin <= at);
    uint32_t place = after > first ? after - 1 : NONE;
    while (place != NONE && range_in(run, place)->end <= at)
        place = ranges->latest[place] > at ? ranges->parent[place] : NONE;
    return place;
}

uint32_t thread_range_at(const struct run *run, uint32_t thread, int64_t at, int64_t *until)
{
    const struct thread_ranges *ranges = &run->thread_ranges;
    const uint32_t first = ranges->by_thread.begins[thread],
                   end = ranges->by_thread.begins[thread + 1],
                   after =
                       (uint32_t)FIRST_NOT(i, first, end, range_in(run, (uint32_t)i)->begin <= at);
    if (after < end && range_in(run, after)->begin < *until) *until = range_in(run, after)->begin;
    const uint32_t place = thread_place_at(run, thread, at);
    if (place == NONE) return NONE;
    if (range_in(run, place)->end < *until) *until = range_in(run, place)->end;
    return ranges->by_thread.members[place];
}

/* --- contexts --- */

bool run_has_contexts(const struct run *run)
{
    static const enum cs_call makes[] = {CS_CALL_cuCtxCreate, CS_CALL_cuCtxCreate_v2,
        CS_CALL_cuCtxCreate_v3, CS_CALL_cuCtxCreate_v4, CS_CALL_cuCtxFromGreenCtx};
    size_t made = 0;
    bool primary = false;
    for (size_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        if (call_kind(call) != CS_KIND_CONTEXT || call->result) continue;
        for (size_t m = 0; m < sizeof makes / sizeof *makes; m++) made += call->call == makes[m];
        primary |= call->call == CS_CALL_cuDevicePrimaryCtxRetain;
    }
    return made + primary > 1;
}
