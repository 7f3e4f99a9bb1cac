/*
 * Another client's records: which of ours it gets, and their times in its clock.
 */
#include "shim/gpu/share_record.h"

#include <time.h>

#include "shim/base/clock.h"
#include "shim/base/keep.h"

/* Where a record has times. */
#define TIMES(kind, type, ...) {CUPTI_ACTIVITY_KIND_##kind, {__VA_ARGS__}}
#define AT(type, field)        offsetof(type, field)
static const struct {
    CUpti_ActivityKind kind;
    unsigned short at[5]; /* to the first 0 */
} times[] = {
    TIMES(KERNEL, , AT(CUpti_ActivityKernel10, start), AT(CUpti_ActivityKernel10, end), AT(CUpti_ActivityKernel10, completed),
          AT(CUpti_ActivityKernel10, queued), AT(CUpti_ActivityKernel10, submitted)),
    TIMES(CONCURRENT_KERNEL, , AT(CUpti_ActivityKernel10, start), AT(CUpti_ActivityKernel10, end), AT(CUpti_ActivityKernel10, completed),
          AT(CUpti_ActivityKernel10, queued), AT(CUpti_ActivityKernel10, submitted)),
    TIMES(MEMCPY, , AT(CUpti_ActivityMemcpy6, start), AT(CUpti_ActivityMemcpy6, end)),
    TIMES(MEMCPY2, , AT(CUpti_ActivityMemcpyPtoP4, start), AT(CUpti_ActivityMemcpyPtoP4, end)),
    TIMES(MEMSET, , AT(CUpti_ActivityMemset4, start), AT(CUpti_ActivityMemset4, end)),
    TIMES(DRIVER, , AT(CUpti_ActivityAPI, start), AT(CUpti_ActivityAPI, end)),
    TIMES(RUNTIME, , AT(CUpti_ActivityAPI, start), AT(CUpti_ActivityAPI, end)),
    TIMES(INTERNAL_LAUNCH_API, , AT(CUpti_ActivityAPI, start), AT(CUpti_ActivityAPI, end)),
    TIMES(OVERHEAD, , AT(CUpti_ActivityOverhead3, start), AT(CUpti_ActivityOverhead3, end)),
    TIMES(SYNCHRONIZATION, , AT(CUpti_ActivitySynchronization2, start), AT(CUpti_ActivitySynchronization2, end)),
    TIMES(GRAPH_TRACE, , AT(CUpti_ActivityGraphTrace2, start), AT(CUpti_ActivityGraphTrace2, end)),
    TIMES(MEMORY2, , AT(CUpti_ActivityMemory4, timestamp)),
    TIMES(MEMORY, , AT(CUpti_ActivityMemory, start), AT(CUpti_ActivityMemory, end)),
    TIMES(MEMORY_POOL, , AT(CUpti_ActivityMemoryPool3, timestamp)),
    TIMES(MARKER, , AT(CUpti_ActivityMarker2, timestamp)),
    TIMES(UNIFIED_MEMORY_COUNTER, , AT(CUpti_ActivityUnifiedMemoryCounter3, start), AT(CUpti_ActivityUnifiedMemoryCounter3, end)),
    TIMES(JIT, , AT(CUpti_ActivityJit2, start), AT(CUpti_ActivityJit2, end)),
    TIMES(DEVICE_GRAPH_TRACE, , AT(CUpti_ActivityDeviceGraphTrace, start), AT(CUpti_ActivityDeviceGraphTrace, end)),
    TIMES(CUDA_EVENT, , AT(CUpti_ActivityCudaEvent2, deviceTimestamp)),
};

static const unsigned short *times_of(CUpti_ActivityKind kind)
{
    for (size_t i = 0; i < CS_COUNT(times); i++)
        if (times[i].kind == kind) return times[i].at;
    return NULL;
}

cs_u64 cs_shared_begin(const CUpti_Activity *record)
{
    const unsigned short *at = times_of(record->kind);
    return at ? *(const cs_u64 *)((const char *)record + at[0]) : 0;
}

cs_u64 cs_client_now(CUpti_TimestampCallbackFunc clock)
{
    struct timespec now;
    if (clock) return clock();
    clock_gettime(CLOCK_REALTIME, &now); /* CUPTI's own without a callback */
    return (cs_u64)now.tv_sec * 1000000000u + (cs_u64)now.tv_nsec;
}

static void read_both(CUpti_TimestampCallbackFunc clock, cs_u64 *ticks, cs_u64 *theirs)
{
    cs_u64 best = UINT64_MAX;
    *ticks = *theirs = 0;
    for (int i = 0; i < 5; i++) {
        cs_u64 before = cs_ticks(), now = cs_client_now(clock), after = cs_ticks();
        if (after - before < best) best = after - before, *ticks = before + (after - before) / 2, *theirs = now;
    }
}

void cs_scale_begin(struct cs_scale *scale, CUpti_TimestampCallbackFunc clock)
{
    enum { SAME = 100000 };
    *scale = (struct cs_scale){.clock = clock, .rate = cs_clock_first_rate}; /* its clock counts nanoseconds, as CUPTI wants it */
    read_both(clock, &scale->ticks, &scale->theirs);
    cs_i64 gap = (cs_i64)(scale->theirs - scale->ticks);
    scale->same = gap < SAME && gap > -SAME; /* it counts what we count */
}

void cs_scale_extend(struct cs_scale *scale)
{
    enum { SHORT = 1000000 };
    cs_u64 ticks, theirs;
    if (scale->same) return;
    read_both(scale->clock, &ticks, &theirs);
    CS_KEEP_FLOATS;
    if (ticks > scale->ticks + SHORT) scale->rate = (double)(theirs - scale->theirs) / (double)(ticks - scale->ticks);
}

void cs_shared_convert(CUpti_Activity *record, const struct cs_scale *scale)
{
    const unsigned short *at = times_of(record->kind);
    if (scale->same || !at) return;
    CS_KEEP_FLOATS;
    for (int i = 0; i < 5 && at[i]; i++) {
        cs_u64 *time = (cs_u64 *)((char *)record + at[i]);
        if (*time) *time = scale->theirs + (cs_u64)(cs_i64)((double)(cs_i64)(*time - scale->ticks) * scale->rate);
    }
}
