/* Questions about a settled run, answered from its tables. */
#ifndef CS_MODEL_VIEWS_H
#define CS_MODEL_VIEWS_H

#include "tools/custream/model/model.h"

/* Whether every part is there, from the first to the newest. True for a run in one file. */
bool parts_all(const struct run *run);

/* Returns what was lost in all parts up to the newest one that is there. */
struct lost parts_lost_in_all(const struct run *run);
bool parts_continue(const struct run *run);

/* Returns how much of its device a kernel's launch fills: its blocks, divided by the blocks that
 * the device holds at once. NAN: not known, or no kernel. */
double kernel_fills(const struct run *run, const struct work *work);

/* Whether the call waits for the GPU: a synchronisation, or a copy that may return only when it is
 * done. */
bool call_waits(const struct call *call);

/* Returns, by call, the host function that the call enqueued, as an index in run->callbacks. This
 * is the last function that was enqueued when the call began; earlier ones belong to lost calls.
 * NONE: the call was captured, or the function's run is not recorded. NULL: no host function ran.
 * The caller frees the array. */
uint32_t *host_functions_of(const struct run *run);

/* Whether the work is a copy from or to pageable memory, as CUPTI's name of it says. */
bool work_is_pageable(const struct run *run, const struct work *work);

/* Returns the pause before a call; NULL: none. */
const struct pause *pause_before(const struct run *run, uint32_t call);
/* Returns how much of the time between two times no thread made a call, and a thread computed, or
 * none did. */
int64_t silence_between(const struct run *run, bool computing, int64_t from, int64_t to);
/* Whether the thread was on a processor for nearly all of a pause. */
bool pause_computes(const struct pause *pause);
/* Returns the share of a pause in which its thread waited: the middle of what is possible. 0: none,
 * or not known. */
double pause_waited(const struct pause *pause);
/* Returns what the thread did for most of a pause. NULL: own code. */
enum host_doing pause_doing(const struct pause *pause);

/* Return how much was lost. UINT64_MAX: it is not known how much. */
typedef uint64_t loss_size(const struct loss *loss);
loss_size works_lost, calls_lost;
/* Returns the times in which more than `few` was lost. The caller frees the rows. */
struct periods periods_lost(const struct run *run, loss_size *lost, uint64_t few);
/* Whether one of the times lies, in part, between two times. */
bool periods_meet(const struct periods *periods, int64_t from, int64_t to);
/* Whether calls are missing between two times: they were lost, or not to be recorded. */
bool calls_miss(const struct run *run, int64_t from, int64_t to);

/* Whether the call allocates or frees memory, and not in the order of a stream. */
bool call_allocates(const struct run *run, const struct call *call);
/* Whether the call frees memory, not in the order of a stream, and waits for the work that may use
 * it. */
bool call_frees(const struct run *run, const struct call *call);

/* Makes run->thread_ranges. */
void thread_ranges_make(struct run *run);
/* Returns the place in by_thread.members of the thread's innermost range at the time `at`; NONE:
 * there is none. */
uint32_t thread_place_at(const struct run *run, uint32_t thread, int64_t at);
/* Returns the innermost range of the thread at the time `at`; NONE: there is none. *until becomes
 * earlier if the answer changes before it. */
uint32_t thread_range_at(const struct run *run, uint32_t thread, int64_t at, int64_t *until);

/* Whether there was more than one context: then no call tells which one was current. */
bool run_has_contexts(const struct run *run);

#endif
