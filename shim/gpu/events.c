/*
 * The event backend on the GPU thread: which ranges have ended, and when. events.h tells the whole.
 */
#include "shim/gpu/events.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/calls/real.h"
#include "shim/gpu/backend.h"

enum { WORKS = 1 << 14, STREAMS = 1 << 16, BUSY_NS = 5000000, FIRST_BASES_NS = 100000000, IDLE_NS = 200000000, TELL_NS = 500000000, LAST_WAIT_NS = 1000000000, LAST_PAUSE_NS = 500000 };

/* Finished work on its way to the writer: one producer, one consumer. */
static struct cs_gpu_work *works;
static _Atomic cs_u64 works_head, works_tail;

/* The GPU thread's: ranges whose end has not come, in the order in which their calls ended; and of each stream, the end of its last range. */
static struct cs_range *pending, **pending_last = &pending;
static struct lane {
    cs_ref stream;
    cs_u64 end;     /* ticks */
    double error;   /* ticks */
    cs_u64 waits;   /* the round in which a range of it had not ended: later ones have not either */
} *lanes;

static struct lane *lane_of(cs_ref stream)
{
    struct lane *lane = &lanes[cs_ref_index(stream) % STREAMS];
    if (lane->stream != stream) *lane = (struct lane){.stream = stream};
    return lane;
}

/* --- what a range was --- */

static void take_value(struct cs_gpu_work *w, const char *label, enum cs_format format, const cs_u64 *v)
{
    if (format == CS_FORMAT_KERNEL) w->kernel.name = (cs_name)*v;
    if (format == CS_FORMAT_GRID)
        for (int i = 0; i < 3; i++) {
            w->kernel.grid[i] = (cs_u32)(v[i / 2] >> (i % 2 ? 32 : 0));
            w->kernel.block[i] = (cs_u32)(v[(i + 3) / 2] >> ((i + 3) % 2 ? 32 : 0));
        }
    if (w->kind == CS_GPU_COPY && format == CS_FORMAT_SIZE) w->copy.bytes = *v;
    if (w->kind == CS_GPU_SET && format == CS_FORMAT_SIZE) w->set.bytes = *v;
    if (w->kind == CS_GPU_SET && !strcmp(label, "value")) w->set.value = (cs_u32)*v;
}

static void describe(struct cs_gpu_work *w, const struct cs_range *range)
{
    const struct cs_call_info *info = &cs_call_info[range->call];
    if (range->calls > 1) {
        w->kind = CS_GPU_RANGE;
        w->range.calls = range->calls;
        return;
    }
    w->kind = cs_gpu_kind_of(info->kind);
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++) take_value(w, info->shown[i].label, info->shown[i].format, &range->value[i]);
    if (w->kind == CS_GPU_COPY) w->copy.direction = cs_call_way((enum cs_call)range->call);
}

/* --- its times --- */

/* Ranges of a stream follow each other: where clocks make one begin before the end of the last, by no more than their error, it begins there. */
static void settle(struct lane *lane, struct cs_gpu_work *w, double *error)
{
    const double before = lane->end > w->start ? (double)(lane->end - w->start) : 0;
    if (before <= *error + lane->error && before > 0) {
        w->start = lane->end;
        if (*error < before) *error = before;
    }
    if (w->end <= w->start) w->end = w->start + 1;
    if (w->end <= lane->end) return;
    lane->end = w->end;
    lane->error = *error;
}

static bool convert(const struct cs_range *range, struct cs_gpu_work *w)
{
    struct lane *lane = lane_of(range->stream);
    const struct cs_event_clock *clock = &range->stock->clock;
    double begin_error = 0, end_error = 0;
    w->start = lane->end;
    w->end = range->last;
    if (!range->begin_unseen && !cs_event_clock_at(clock, range->begin, &w->start, &begin_error)) return false;
    if (!range->end_unseen && !cs_event_clock_at(clock, range->end, &w->end, &end_error)) return false;
    if (w->start < range->first) w->start = range->first; /* the call was made after its begin event */
    double error = begin_error > end_error ? begin_error : end_error;
    settle(lane, w, &error);
    if ((range->begin_unseen || range->end_unseen) && error < (double)(w->end - w->start)) error = (double)(w->end - w->start);
    w->error = (cs_u64)error + 1; /* ticks, until the writer takes it */
    w->by_events = true;
    return true;
}

static void emit(const struct cs_range *range)
{
    struct cs_gpu_work w = {.correlation = range->number, .vstream = range->stream, .device = range->stock->device};
    describe(&w, range);
    if (!convert(range, &w)) {
        cs_events_lost_add(CS_LOSS_ERROR, range->calls);
        return;
    }
    cs_u64 head = cs_load(&works_head);
    works[head % WORKS] = w;
    cs_store_rel(&works_head, head + 1);
}

static void drain(const struct cs_gpu_sink *to)
{
    cs_u64 tail = cs_load(&works_tail), head = cs_load_acq(&works_head);
    for (; tail < head; tail++) {
        struct cs_gpu_work *w = &works[tail % WORKS];
        w->error = cs_clock_ns(w->start + w->error) - cs_clock_ns(w->start); /* on the scale of the times: what is as long as its error is shown so */
        to->work(w);
    }
    cs_store_rel(&works_tail, tail);
    static cs_u64 told;
    cs_u64 now = cs_monotonic_ns();
    if (now - told < TELL_NS && cs_load(&cs_gpu_marking)) return;
    told = now;
    for (int why = 0; why < CS_LOSSES; why++) {
        cs_u64 count = cs_events_lost_take(why);
        if (count) to->lost(count, (enum cs_loss)why);
    }
}

/* --- rounds --- */

/* Whether the range is through: written, or lost. The stock's context is current. */
static bool try(const struct cs_range *range, cs_u64 round)
{
    struct lane *lane = lane_of(range->stream);
    if (lane->waits == round || cs_load(&works_head) - cs_load_acq(&works_tail) == WORKS) return false;
    CUresult answer = cs_real.cuEventQuery(range->end_unseen ? range->begin : range->end);
    if (answer == CUDA_ERROR_NOT_READY || (answer == CUDA_SUCCESS && !range->stock->clock.count)) {
        lane->waits = round;
        return false;
    }
    if (answer == CUDA_SUCCESS) emit(range);
    else cs_events_lost_add(CS_LOSS_ERROR, range->calls);
    return true;
}

/* Makes the range's context current where it is not; false where that can't be. Its clock is looked at once a round: that may take a while. */
static bool switch_to(struct cs_stock *stock, struct cs_stock **current, cs_u64 round, cs_u64 first_until_ns)
{
    if (*current == stock) return true;
    if (*current) cs_stock_pop();
    *current = NULL;
    if (!cs_stock_push(stock)) return false;
    *current = stock;
    if (stock->round != round) cs_event_clock_renew(&stock->clock, first_until_ns);
    stock->round = round;
    return true;
}

static void collect(void)
{
    static cs_u64 round;
    struct cs_stock *current = NULL;
    cs_marks_take_open();
    *pending_last = cs_marks_take_done();
    while (*pending_last) pending_last = &(*pending_last)->next;
    if (!cs_events_enter()) return;
    round++;
    const cs_u64 first_until_ns = cs_monotonic_ns() + FIRST_BASES_NS; /* of all clocks together: others wait for the round */
    for (struct cs_range **at = &pending; *at && !cs_events_held_off();) {
        struct cs_range *range = *at;
        bool gone = !cs_stock_is_alive(range->stock);
        if (gone) cs_events_lost_add(CS_LOSS_CONTEXT, range->calls);
        else if (!switch_to(range->stock, &current, round, first_until_ns) || !try(range, round)) {
            at = &range->next;
            continue;
        }
        *at = range->next;
        cs_range_give(range);
    }
    pending_last = &pending;
    while (*pending_last) pending_last = &(*pending_last)->next;
    if (current) cs_stock_pop();
    cs_stocks_tend();
    cs_events_leave();
}

static cs_u64 poll(void)
{
    collect();
    return cs_stocks_are_busy() ? BUSY_NS : IDLE_NS;
}

/* The last waits a while for what is under way. */
static void flush(bool all)
{
    if (all) cs_gpu_mark(false);
    collect();
    struct cs_deadline deadline = cs_deadline_in(LAST_WAIT_NS, LAST_PAUSE_NS);
    for (; all && pending && !cs_deadline_is_over(&deadline); collect())
        nanosleep(&(struct timespec){0, LAST_PAUSE_NS}, NULL);
    while (all && pending) {
        struct cs_range *range = pending;
        pending = range->next;
        cs_events_lost_add(!cs_stock_is_alive(range->stock) ? CS_LOSS_CONTEXT : range->stock->clock.count ? CS_LOSS_UNFINISHED : CS_LOSS_ERROR, range->calls);
        cs_range_give(range); /* its events may be recorded anew while they are out */
    }
    if (!pending) pending_last = &pending;
}

static const char *start(void)
{
    static const char no_times[] = "GPU times by events";
    if ((void *)cs_real.cuEventElapsedTime == (void *)cs_real_missing || (void *)cs_real.cuCtxPushCurrent_v2 == (void *)cs_real_missing) return "the driver is too old";
    if (!works) works = cs_memory_map(WORKS * sizeof *works, no_times), cs_event_clock_start();
    if (!lanes) lanes = cs_memory_map(STREAMS * sizeof *lanes, no_times);
    if (!works || !lanes || !cs_marks_begin()) return "no memory";
    cs_memory_not_inherited(works, WORKS * sizeof *works);
    cs_memory_not_inherited(lanes, STREAMS * sizeof *lanes);
    cs_gpu_mark(true);
    return NULL;
}

static void pause(bool on) { cs_gpu_mark(!on); }
static void stop(bool lets_go)
{
    (void)lets_go;
    pause(true);
}

const struct cs_gpu_backend cs_gpu_events = {.name = "events", .start = start, .flush = flush, .drain = drain, .stop = stop, .pause = pause, .poll = poll, .marks = true};
