/*
 * tool_runtime: calls of the runtime with those of the driver in them, made into a timeline at
 * CUSTREAM_TRACE as a clock tells them that often says the same twice: what a processor's counter
 * of few MHz gives. Prints how many of either it made; tests/cases/test_runtime.py says what has to
 * come of it.
 */
#include <stdio.h>

#include "shim/base/memory.h"
#include "shim/base/clock.h"
#include "shim/base/options.h"
#include "shim/base/realdl.h"
#include "shim/object/event.h"
#include "shim/object/kernel.h"
#include "shim/object/stream.h"
#include "shim/out/output.h"
#include "shim/trace/runtime.h"
#include "shim/trace/timeline.h"
#include "shim/trace/totals.h"

enum { GRAIN = 1000 };
static struct cs_thread thread = {.tid = 1001};
static cs_u64 start, passed, place, made[2];
static cs_u32 seed = 1;

static cs_u32 draw(cs_u32 below)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 16) % below;
}

static cs_u64 now(void)
{
    passed += draw(4) ? draw(GRAIN / 8) : draw(3 * GRAIN);
    return start + passed / GRAIN * GRAIN;
}

static void record(struct cs_record r)
{
    cs_runtime_before(&thread, place++);
    cs_timeline_record(&thread, &r);
}

static void driver_call(void)
{
    cs_u64 begin = now();
    record((struct cs_record){.begin = begin, .end = now(), .call = CS_CALL_cuStreamQuery});
    made[0]++;
}

static void runtime_call(cs_u32 calls)
{
    cs_u64 first = place, begin = now();
    passed += GRAIN - passed % GRAIN; /* as wrap/runtime.c waits */
    for (cs_u32 i = 0; i < calls; i++) driver_call();
    record((struct cs_record){
        .begin = begin, .end = now(), .call = CS_RUNTIME_cudaStreamQuery, .value = {first}});
    made[1]++;
}

int main(void)
{
    cs_options_read();
    cs_realdl_init();
    if (!cs_contexts_init() || !cs_streams_init() || !cs_events_init() || !cs_kernels_init())
        return 2;
    cs_clock_init();
    if (!cs_tables_make(CS_TABLES_TRACE, "a test") || !cs_output_open(&cs_totals_teller)) return 3;
    cs_clock_sync();
    cs_timeline_begin(CS_BEGIN_FILE);
    start = cs_ticks();
    for (int i = 0; i < 5000; i++) {
        if (!draw(3)) driver_call();
        runtime_call(draw(50) ? draw(4) : draw(CS_FILLED - 1));
    }
    cs_output_finish();
    printf("driver %llu runtime %llu\n", (unsigned long long)made[0], (unsigned long long)made[1]);
    return 0;
}
