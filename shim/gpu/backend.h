/*
 * Where GPU times come from: one backend at a time, driven by a thread of its own.
 *
 *     the aide                cs_gpu_start, once the writer is there and before the first recorded call goes to the driver
 *     the GPU thread          start, flush, stop: whatever may wait for CUPTI or the driver
 *     the writer              drain: takes over what has been brought in; waits for nothing
 *
 * So neither the writer nor an application thread ever waits inside a profiler. Where no backend can be had the timeline holds host calls, and
 * says so in its metadata (gpu_time_source) and in a line on stderr if one was asked for by name.
 */
#ifndef CS_GPU_BACKEND_H
#define CS_GPU_BACKEND_H

#include "shim/calls/cuda_api.h"
#include "shim/calls/runtime.h"
#include "shim/gpu/work.h"

struct cs_gpu_backend {
    const char *name;                            /* as the trace's metadata has it */
    const char *(*start)(void);                  /* NULL, or why not */
    void (*catch_up)(void);                      /* each round: with what others have done to the profiler since; NULL: nobody can */
    void (*flush)(bool all);                     /* brings in what has ended; `all`: also what has not, the last one */
    void (*drain)(const struct cs_gpu_sink *to);
    bool (*is_behind)(void);                     /* so much waits to be drained that a flush would do harm; NULL: never */
    void (*stop)(bool lets_go);                  /* after the last flush; `lets_go`: another copy of the profiler takes its place */
    cs_u64 (*poll)(void);                        /* between flushes, where it is not NULL; returns the pause until the next, ns */
    void (*pause)(bool on);                      /* what is enqueued from now on gets no times, and costs what it cost before; NULL: it sees no calls but recorded ones */
    bool (*serves)(void);                        /* others get what they asked for through it, so it must go on; NULL: nobody does */
    bool marks;                                  /* calls carry numbers of its own (gpu/mark.h); one without never gets times */
};
extern const struct cs_gpu_backend cs_gpu_cupti, cs_gpu_events, cs_gpu_none;

/* Who tells of the calls of the CUDA runtime: nobody, as nobody wants to know; our functions in front of a shared one's; or the profiler, which sees those of
 * any copy, also of one that is linked into the program. Set before the backend starts, and changed by it. */
enum cs_runtime_source { CS_RUNTIME_NOBODY, CS_RUNTIME_SYMBOLS, CS_RUNTIME_PROFILER };
CS_HIDDEN extern _Atomic int cs_runtime_source;

/* Whom the profiler tells, on the thread that makes the call: before it, the answer being what it wants to get back, 0 where it does not want to be told of the
 * end; and after it, with the number that its work has. `turn`: which of its times at work it is, from 1; what began in another one has no end. Set before the
 * backend starts. */
extern struct cs_runtime_listener {
    cs_u64 (*begins)(cs_u16 turn);
    void (*ends)(cs_u16 turn, cs_u64 began, cs_u16 call, int result, cs_u32 correlation); /* enum cs_runtime_call, cudaError_t */
} cs_runtime_listener;
extern _Atomic cs_u16 cs_runtime_turn; /* the present one */

/* The answer of a start that may go better later: another profiler has what the backend needs. */
extern const char cs_gpu_taken[];

/* What may hold the backend back, each for itself; it is at work while nothing does.
 *
 * PROFILER: another one wants what the backend has and can't share. It lets go before cs_gpu_step_back returns (within so long); `why` in words, for the
 * timeline. WINDOW: calls are not recorded for the time being. It looks at no further ones, and does not begin if it has not yet. cs_gpu_come_back has it at work
 * again before it returns, within so long; 0: soon. */
enum cs_gpu_away { CS_GPU_AWAY_PROFILER = 1, CS_GPU_AWAY_WINDOW = 2 };
void cs_gpu_step_back(enum cs_gpu_away reason, const char *why, unsigned timeout_ms);
void cs_gpu_come_back(enum cs_gpu_away reason, unsigned timeout_ms);

/* By CUSTREAM_GPU; once, before any other. */
void cs_gpu_choose(void);

/* Starts the GPU thread and waits, for two seconds at most, until its backend is at work. The aide, or any application thread; keeps errno. */
void cs_gpu_start(void);
bool cs_gpu_to_start(void); /* that has yet to be done. Any thread */

/* Brings in all that has ended so far; waits at most so long. cs_gpu_finish is the last: the backend stops. Like cs_worker_ask. */
void cs_gpu_flush(unsigned timeout_ms);
void cs_gpu_wake(void); /* has the backend polled soon; waits for nothing */
void cs_gpu_finish(unsigned timeout_ms);

/* The writer's. */
void cs_gpu_drain(const struct cs_gpu_sink *to);
void cs_gpu_discard(void);                      /* where there is no file: what comes is of no recorded call, and the backend needs the room */
void cs_gpu_expect(bool work);                  /* each round: whether work is under way whose times have not come */
bool cs_gpu_is_on(void);                        /* there is a backend */
bool cs_gpu_rests(void);                        /* and something holds it back */
bool cs_gpu_calls_missing(bool now);            /* the writer: work comes, and no calls for it; the backend: asks, and resets */
const char *cs_gpu_source(void);                /* its name, "none" */
bool cs_gpu_marks(void);                        /* it marks calls */
cs_u64 cs_gpu_flushes(void);                    /* how many flushes have ended */
cs_u64 cs_gpu_flushed(void);                    /* when the last of them began, ticks: what had ended by then was told; 0: there was none */
void cs_gpu_flushes_pass(void);                 /* one more, though none has: none comes any more, and what waits for some is in the way */

/* Why the source is not the one that would be taken first; NULL where it is. */
const char *cs_gpu_second_best(void);

/* --- what is wanted and can't be had for a while (missing.c) --- */

enum cs_gpu_part { CS_GPU_TIMES, CS_GPU_RUNTIME_CALLS, CS_GPU_PARTS };

/* From now on, in words that stay; NULL: no longer. Any thread. Once the backend has ended for good times are missing because of cs_gpu_ended, and that is no
 * loss but for what is enqueued later. */
void cs_gpu_set_missing(enum cs_gpu_part part, const char *why);
bool cs_gpu_change_missing(enum cs_gpu_part part, const char *was, const char *why); /* only where it is missing because of `was`; NULL: where it is not */
extern const char cs_gpu_ended[];

/* Since when (ticks) and why; NULL where it is not missing. Any thread. */
const char *cs_gpu_missing(enum cs_gpu_part part, cs_u64 *since);

/* The writer's: the next stretch that is over, ticks; false where there is none. */
struct cs_gpu_gap {
    enum cs_gpu_part part;
    cs_u64 from, until;
    const char *why;
};
bool cs_gpu_missing_over(struct cs_gpu_gap *gap);
void cs_gpu_missing_after_fork_in_child(void);

void cs_gpu_after_fork_in_child(void);

#endif
