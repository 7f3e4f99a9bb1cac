#include "shim/trace/thread_clock.h"

#include <time.h>

#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/base/options.h"
#include "shim/trace/record.h"

CS_READ_MOSTLY _Atomic cs_u64 cs_edge_ticks = UINT64_MAX;

void cs_thread_clock_begin(void)
{
    enum { EDGE_NS = 200000 };
    cs_store(&cs_edge_ticks, cs_option_is(CS_OPTION_THREAD_CLOCKS, "off") ? UINT64_MAX : (cs_u64)(EDGE_NS / cs_clock_first_rate));
}

cs_u64 cs_thread_clock_read(struct cs_thread *thread, enum cs_thread_clock_at at)
{
    CS_KEEP_ERRNO;
    struct timespec cpu;
    const cs_u64 now = cs_ticks();
    if (!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu))
        cs_record_put_if_room(thread, &(struct cs_record){
            .begin = now, .call = CS_CALL_CLOCK, .value = {(cs_u64)cpu.tv_sec * 1000000000u + (cs_u64)cpu.tv_nsec, at}});
    if (CS_UNLIKELY(cs_self != thread)) cs_ring_look_again(&thread->ring); /* a handler has forked in the middle of that: this is the child, and the ring half set */
    return cs_ticks();
}
