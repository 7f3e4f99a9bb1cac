/*
 * Calls of the CUDA runtime as slices around those of the driver that they made. The writer's alone.
 */
#ifndef CS_TRACE_RUNTIME_H
#define CS_TRACE_RUNTIME_H

#include "shim/calls/runtime.h"
#include "shim/trace/record.h"
#include "shim/trace/thread_row.h"

/* Before each record of the thread's ring, of whatever kind, is read; `place` is its place there. */
static inline void cs_runtime_before(const struct cs_thread *thread, cs_u64 place)
{
    struct cs_thread_row *row = cs_thread_row(thread);
    row->place = place;
    row->filled_ns[place % CS_FILLED] = row->last_end_ns;
}

/* The slice of one, whose record's first value is the place in the ring from which on the records are of calls made in it. Returns its end. */
cs_u64 cs_runtime_slice(const struct cs_thread *thread, const struct cs_record *record);

#endif
