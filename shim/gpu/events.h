/*
 * The event backend: GPU times from CUDA events around ranges of work, where no profiler can be had.
 *
 *     application thread   takes a range from its context's stock, records the begin event, makes the call, records the end event, puts the range on `done`
 *     the GPU thread       makes events ahead of time, takes `done` over, asks which ranges have ended, turns them into times, gives them back to the stock
 *     the writer           takes the finished work
 *
 * Data and owners. A stock belongs to one context and holds its ranges, a begin and an end event each; the free ones stand in a lock-free list with a tag
 * against ABA. A range belongs to whoever took it: the application thread during the call, then `done` (a stack that is taken over whole), then the GPU
 * thread. A call has a range to itself as long as there are enough. Where less than a quarter are free, a range stays on its stream (`open`) for the next
 * call to take up, which moves the end event behind itself: the range then stands for several calls. Its end event always stands behind the last of
 * them, so the GPU thread can take an open range at any time, and neither an idle stream nor a destroyed one needs another event.
 *
 * What is never done. No event is recorded on a stream that captures, or where the driver does not tell. None is queried on an application's thread; ours asks
 * with its capture mode relaxed. After a copy that returns when it is done none is recorded on its stream: in the legacy stream, another barrier so much later
 * could order what the program left unordered, and a stream that the program knows to be idle would be busy again. The call's return is the end then.
 * Contexts get a stock only where their end will be seen (struct cs_context, `made`), are never retained, and are left alone while one is being ended
 * (cs_gpu_hold). That is no lock: who ends a context waits only for the driver call that the GPU thread is in, none of which waits for work.
 * Before that, what has ended is brought in. Where a clock has no base this may take 0.1 s more.
 *
 * What the times mean. The work ran between the two events; it may have begun later than the first, as when other streams had filled the GPU. The error
 * is that of the clock: events are told apart from one whose host time is known within a window (events_clock.c). Where the begin or the end was not seen
 * the error is the length of the whole.
 */
#ifndef CS_GPU_EVENTS_H
#define CS_GPU_EVENTS_H

#include "shim/gpu/mark.h"
#include "shim/gpu/work.h"
#include "shim/object/context.h"
#include "shim/object/stream.h"

enum { CS_RANGES = 8192, CS_RANGES_FIRST = 512, CS_CLOCK_BASES = 8 };

/* --- a context's clock: events_clock.c; the GPU thread's, with the context current --- */

struct cs_event_clock {
    CUstream stream; /* of our own, which waits for nobody */
    CUevent spare;
    struct cs_clock_base {
        CUevent event;
        cs_u64 at;    /* ticks */
        double error; /* ticks */
    } bases[CS_CLOCK_BASES];
    cs_u64 count;     /* bases taken; the newest CS_CLOCK_BASES are kept. 0: no event's time is known as yet */
    cs_u64 began;     /* ticks: the first */
    double rate;      /* ticks a millisecond of the GPU */
    double doubt;     /* how far off, relatively */
};

void cs_event_clock_start(void); /* of the process: once, early */
bool cs_event_clock_open(struct cs_event_clock *clock);
void cs_event_clock_renew(struct cs_event_clock *clock, cs_u64 first_until_ns); /* where it is due; the first base may take until then */
bool cs_event_clock_at(const struct cs_event_clock *clock, CUevent event, cs_u64 *ticks, double *error_ticks); /* there is a base */

/* --- ranges and their stocks: events_stock.c --- */

struct cs_range {
    struct cs_range *next; /* its owner's list */
    struct cs_stock *stock;
    CUevent begin, end;
    _Atomic cs_u32 next_free; /* index + 1; read by who loses the race for the range, too */
    cs_u32 number;            /* of the call, in its record */
    cs_u32 calls;
    cs_ref stream;
    cs_u16 call;              /* the first: enum cs_call */
    bool begin_unseen, end_unseen;
    cs_u64 first, last;       /* ticks: the first call's begin, the last call's return */
    cs_u64 value[CS_VALUES];  /* of the first call's record */
};

struct cs_stock {
    _Atomic cs_ref context; /* whose events these are; 0: nobody's */
    CUcontext handle;
    cs_u32 device;
    _Atomic bool full;      /* no more events can be made */
    _Atomic cs_u32 made, free_count;
    _Atomic cs_u64 free;    /* index + 1 in the low half, a tag against ABA in the high half */
    struct cs_event_clock clock;
    cs_u64 round;           /* of the GPU thread's: in which it last looked at the clock */
    struct cs_stock *next; /* of all */
    struct cs_range ranges[CS_RANGES];
};

/* A stream's context's stock. An application thread that comes first waits for it, for a second at most. NULL: there is none. */
struct cs_stock *cs_stock_of(const struct cs_stream *stream);

struct cs_range *cs_range_take(struct cs_stock *stock); /* NULL: none is free */
void cs_range_give(struct cs_range *range);
static inline bool cs_ranges_are_few(const struct cs_stock *stock) { return cs_load(&stock->free_count) < cs_load(&stock->made) / 4; }

/* The GPU thread's. enter: from here to leave it may use CUDA; false where somebody holds it off. push: the stock's context is current. */
bool cs_events_enter(void);
void cs_events_leave(void);
bool cs_events_held_off(void); /* asked between two calls of CUDA */
bool cs_stock_is_alive(const struct cs_stock *stock);
bool cs_stock_push(const struct cs_stock *stock);
void cs_stock_pop(void);
void cs_stocks_tend(void); /* makes those that were asked for, and more events; gives up those of contexts that ended */
bool cs_stocks_are_busy(void); /* a range is out */

/* --- marks: events_mark.c --- */

bool cs_marks_begin(void);                 /* before calls are marked. False: there is no memory for it */
struct cs_range *cs_marks_take_done(void); /* a list, in the order in which they came */
void cs_marks_take_open(void);             /* open ranges become done */

void cs_events_lost_add(enum cs_loss why, cs_u64 calls);
cs_u64 cs_events_lost_take(enum cs_loss why);

#endif
