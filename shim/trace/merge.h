/*
 * What the threads have recorded, in the order in which their calls ended: a merge over all rings, up to one moment.
 *
 * A call is recorded before it returns to the program. So whatever a thread does after it has heard of another's call ends later, and is read later: a launch
 * before the wait for it, a capture's begin before its end, a graph's making before its launch. Two calls that were under way at once come in the order of
 * their ends. The writer's alone.
 */
#ifndef CS_TRACE_MERGE_H
#define CS_TRACE_MERGE_H

#include "shim/trace/record.h"

/* One pass: `take` gets each record that ended before the pass began, and its place in the thread's ring. Then `read` gets each thread that had any, or that has
 * ended: `over`, once its last record has been taken. How many records there were. */
size_t cs_merge_pass(void (*take)(struct cs_thread *thread, cs_u64 place), void (*read)(struct cs_thread *thread, bool over));

#endif
