/*
 * Marks: what the event backend does on the application's threads, around each call that puts work on a stream.
 *
 * cs_gpu_marking is set only while that backend is at work, and is a bit of the mode (process/process.h). A wrapper then records an event before the call and another after it
 * (shim/gpu/events.h says how, and when not). What is asked of the driver here is whether the stream captures, and the two records; nothing is queried.
 *
 * Samples. With CUSTREAM_GPU=sample:N each thread marks one of every N such calls: the first of its first N, and of each N after that one whose place changes, so
 * that a loop of N calls has each of them marked sooner or later. The thread counts for itself. A call that is not marked has no work in the trace.
 */
#ifndef CS_GPU_MARK_H
#define CS_GPU_MARK_H

#include "shim/calls/calls.h"
#include "shim/object/thread.h"

struct cs_range;

struct cs_mark {
    struct cs_range *range; /* whose begin event stands before the call; NULL: its stream was not known yet */
    cs_u64 number;          /* what ties the call's record to its work; CS_MARK_JOINS: to that of an earlier call; 0: it gets no mark */
};
#define CS_MARK_JOINS ((cs_u64)1 << 32)

/* The call when it is over and its record is in the ring. */
struct cs_marked_call {
    struct cs_thread *thread;
    CUstream handle; /* where the driver accepted the call */
    cs_ref stream;
    bool done, per_thread;
    cs_u16 call;
    cs_u64 begin, end;   /* ticks */
    const cs_u64 *value; /* of its record */
};

/* Of how many calls one is marked; 1: all are. Set once, before marking begins. */
CS_HIDDEN extern cs_u32 cs_gpu_sample;
static inline bool cs_gpu_samples(void) { return cs_gpu_sample > 1; }

/* Whether this call is one that is not marked. Asked once for each call that puts work on a GPU, while marking is on. */
static inline bool cs_mark_skips(struct cs_thread *thread)
{
    if (thread->unmarked <= 0) return false;
    thread->unmarked--;
    return true;
}

extern _Atomic bool cs_gpu_marking;
void cs_gpu_mark(bool on); /* sets it, and tells `cs_gpu_marks_change`, if that is set */
extern void (*cs_gpu_marks_change)(void);

/* Before the call; the second where the handle stands behind a pointer of the application's, which is looked at without being relied on. Keep errno. */
CS_COLD struct cs_mark cs_mark_before(struct cs_thread *thread, CUstream handle, bool per_thread);
CS_COLD struct cs_mark cs_mark_before_at(struct cs_thread *thread, const CUstream *handle, bool per_thread);

/* After it, where the mark has a number. */
CS_COLD void cs_mark_after(struct cs_mark mark, const struct cs_marked_call *call);

/* Around a call that may end a context: what its streams did is brought in, and the GPU thread stays out of CUDA until the call is over, so that it never
 * uses a context that is being destroyed. Waits, two seconds at most, for the driver call that thread is in. Any application thread. */
bool cs_gpu_hold(void);
void cs_gpu_release(bool held);
void cs_gpu_hold_after_fork_in_child(void);

#endif
