/*
 * From the times of CUDA events to ours.
 *
 * The driver tells only how far two events lie apart. A base is an event whose time is known: recorded on an idle stream of our own between two readings of our
 * clock; the narrowest of a few windows counts, half of it is the error. Where processes share a GPU by time it gets to our event only when it is our turn, so
 * the first base may take long, and is as inexact as that; until there is one, no event has a time. The GPU's clock runs a little faster or slower than ours (tens of
 * microseconds a second are normal), so bases are renewed, often at first and every half second later, and the rate is taken from the oldest and the
 * newest as soon as they lie far enough apart. Distances come as floats of milliseconds: seven digits, another reason for a base near by.
 */
#include <math.h>
#include <time.h>

#include "shim/base/clock.h"
#include "shim/calls/real.h"
#include "shim/gpu/events.h"

enum { TRIES = 5, WAIT_NS = 2000000, PAUSE_NS = 20000, SOON_MS = 25, LATE_MS = 500, RATE_MS = 300 };
#define DOUBT_UNMEASURED 1e-4    /* of two ordinary crystals */
#define FLOAT_ERROR      1e-7
#define RESOLUTION_MS    0.0005  /* of event times, as the documentation has it */

static struct both {
    double ticks, ns, window; /* the ticks that lie around the reading of the other */
} zero;
static cs_u64 zero_ticks;

/* Both clocks at one moment, since the zero point: the narrowest of a few readings. */
static struct both read_both(void)
{
    struct both best = {0, 0, INFINITY};
    for (int i = 0; i < 3; i++) {
        cs_u64 before = cs_ticks(), ns = cs_monotonic_ns(), after = cs_ticks();
        if ((double)(after - before) >= best.window) continue;
        best = (struct both){(double)(before - zero_ticks) + (double)(after - before) / 2, (double)ns, (double)(after - before)};
    }
    return best;
}

void cs_event_clock_start(void)
{
    zero_ticks = cs_ticks();
    zero = read_both();
}

/* Our clock's ticks a millisecond, as its other one has it, and how far off that may be. */
static double nominal_rate(double *doubt)
{
    struct both now = read_both();
    double ticks = now.ticks - zero.ticks;
    *doubt = ticks > 0 ? (now.window + zero.window) / ticks : 1;
    return cs_clock_is_counter && now.ns > zero.ns ? ticks / (now.ns - zero.ns) * 1e6 : 1e6;
}

static bool between(CUevent a, CUevent b, double *ms)
{
    float apart;
    if (cs_real.cuEventElapsedTime(&apart, a, b) == CUDA_SUCCESS) return *ms = apart, true;
    if (cs_real.cuEventElapsedTime(&apart, b, a) == CUDA_SUCCESS) return *ms = -(double)apart, true;
    return false;
}

static const struct cs_clock_base *newest(const struct cs_event_clock *clock) { return &clock->bases[(clock->count - 1) % CS_CLOCK_BASES]; }
static const struct cs_clock_base *oldest(const struct cs_event_clock *clock)
{
    return &clock->bases[clock->count > CS_CLOCK_BASES ? clock->count % CS_CLOCK_BASES : 0];
}

/* Records the spare event; true when it is done, with the window that it happened in. */
static bool sample(struct cs_event_clock *clock, cs_u64 first_until_ns, cs_u64 *from, cs_u64 *to)
{
    const cs_u64 began = cs_monotonic_ns(), soon = began + WAIT_NS, until = clock->count || soon > first_until_ns ? soon : first_until_ns;
    struct cs_deadline deadline = cs_deadline_from(began, until - began, 0);
    CUresult answer;
    *from = cs_ticks();
    if (cs_real.cuEventRecord(clock->spare, clock->stream) != CUDA_SUCCESS) return false;
    do {
        if (deadline.now > soon) nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
        answer = cs_real.cuEventQuery(clock->spare), *to = cs_ticks();
    } while (answer == CUDA_ERROR_NOT_READY && !cs_deadline_is_over(&deadline) && !cs_events_held_off());
    return answer == CUDA_SUCCESS;
}

static void measure_rate(struct cs_event_clock *clock)
{
    const struct cs_clock_base *a = oldest(clock), *b = newest(clock);
    double span = (double)(b->at - a->at), ms, doubt, nominal = nominal_rate(&doubt);
    clock->rate = nominal;
    clock->doubt = DOUBT_UNMEASURED + doubt;
    if (span < RATE_MS * nominal || !between(a->event, b->event, &ms) || ms <= 0 || fabs(span / ms / nominal - 1) > 1e-3) return;
    const double measured = (a->error + b->error) / span + FLOAT_ERROR;
    if (measured >= clock->doubt) return;
    clock->rate = span / ms;
    clock->doubt = measured;
}

static void take_base(struct cs_event_clock *clock, cs_u64 first_until_ns)
{
    struct cs_clock_base *base = &clock->bases[clock->count % CS_CLOCK_BASES];
    double best = INFINITY;
    for (int i = 0; i < TRIES && !cs_events_held_off(); i++) {
        cs_u64 from, to;
        if (!sample(clock, first_until_ns, &from, &to)) return;
        double error = (double)(to - from) / 2;
        if (error >= best) continue;
        CUevent event = clock->spare; /* until now the oldest base was in its place */
        clock->spare = base->event;
        if (best == INFINITY) clock->count++;
        *base = (struct cs_clock_base){event, from + (to - from) / 2, best = error};
    }
}

void cs_event_clock_renew(struct cs_event_clock *clock, cs_u64 first_until_ns)
{
    if (clock->count) {
        double age = (double)(cs_ticks() - newest(clock)->at) / clock->rate, due = SOON_MS + (double)(newest(clock)->at - clock->began) / clock->rate / 4;
        if (age < (due < LATE_MS ? due : LATE_MS)) {
            if (clock->doubt > DOUBT_UNMEASURED) measure_rate(clock); /* it gets better by itself */
            return;
        }
    }
    cs_u64 before = clock->count;
    take_base(clock, first_until_ns);
    if (clock->count == before) return;
    if (!before) clock->began = newest(clock)->at;
    measure_rate(clock);
}

bool cs_event_clock_open(struct cs_event_clock *clock)
{
    *clock = (struct cs_event_clock){0};
    if (cs_real.cuStreamCreate(&clock->stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return false;
    if (cs_real.cuEventCreate(&clock->spare, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
    for (int i = 0; i < CS_CLOCK_BASES; i++)
        if (cs_real.cuEventCreate(&clock->bases[i].event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
    return true;
}

bool cs_event_clock_at(const struct cs_event_clock *clock, CUevent event, cs_u64 *ticks, double *error_ticks)
{
    double ms;
    const struct cs_clock_base *base = newest(clock);
    if (!between(base->event, event, &ms)) return false;
    *ticks = base->at + (cs_u64)(cs_i64)(ms * clock->rate);
    *error_ticks = base->error + fabs(ms) * clock->rate * (clock->doubt + FLOAT_ERROR) + RESOLUTION_MS * clock->rate;
    return true;
}
