/*
 * tool_ranges: NVTX records as they come where a ring was full or rings are drained in another
 * order than they were filled, made into a timeline at CUSTREAM_TRACE. Each step is one record on
 * one of two threads; tests/cases/test_nvtx.py says what has to come of it.
 */
#include "shim/base/memory.h"
#include "shim/base/clock.h"
#include "shim/base/options.h"
#include "shim/base/realdl.h"
#include "shim/object/event.h"
#include "shim/object/kernel.h"
#include "shim/object/stream.h"
#include "shim/out/output.h"
#include "shim/trace/annotation.h"
#include "shim/trace/thread_row.h"
#include "shim/trace/timeline.h"
#include "shim/trace/totals.h"

static struct cs_thread threads[2] = {{.tid = 1001, .index = 1}, {.tid = 1002, .index = 2}};
static cs_u64 tick;

static void step(
    int thread, enum cs_call call, const char *text, cs_u32 id, cs_u32 place, cs_u64 begin)
{
    struct cs_record r = {.begin = begin ? begin : tick, .end = tick, .call = (cs_u16)call};
    struct cs_annotation what = {.text = cs_name_add(text)};
    cs_annotation_pack(
        r.value, &what, (struct cs_annotation_record){.id = id, .place = (cs_u16)place});
    cs_timeline_record(&threads[thread], &r);
    tick += 100000;
}

static void pushes_and_pops(void)
{
    step(0, CS_CALL_RANGE_PUSH, "around", 1, 0, 0);
    step(0, CS_CALL_RANGE_PUSH, "pop lost", 2, 1, 0);
    step(0, CS_CALL_RANGE_PUSH, "next", 3, 1, 0); /* stands where "pop lost" stood */
    step(0, CS_CALL_RANGE_PUSH, "pop lost too", 4, 2, 0);
    step(0, CS_CALL_RANGE_POP, "next", 3, 1, tick - 200000);
    step(0, CS_CALL_RANGE_POP, "push lost", 5, 1, tick - 50000);
    step(0, CS_CALL_RANGE_PUSH, "lower", 6, 1, 0);
    step(0, CS_CALL_RANGE_PUSH, "upper", 7, 2, 0);
    step(0, CS_CALL_RANGE_POP, "lower", 6, 3, tick - 200000); /* "upper" keeps its place */
    step(0, CS_CALL_RANGE_POP, "upper", 7, 1, tick - 200000);
    cs_u64 now = tick;
    for (cs_u32 i = 0; i < 3; i++)
        tick = now, step(0, CS_CALL_RANGE_PUSH, "at once", 8 + i, 1 + i, 0); /* all in one tick */
    for (cs_u32 i = 3; i-- > 0;)
        tick = now, step(0, CS_CALL_RANGE_POP, "at once", 8 + i, 1 + i, now);
    step(0, CS_CALL_RANGE_POP, "around", 1, 0, 0);
}

static void process_ranges(void)
{
    step(0, CS_CALL_RANGE_START, "in order", 1, 0, 0);
    step(1, CS_CALL_RANGE_END, "in order", 1, 0, 0);
    cs_u64 began = tick - 50000;
    step(1, CS_CALL_RANGE_END, "end first", 2, 0, 0);
    step(0, CS_CALL_RANGE_START, "end first", 2, 0, began);
    step(1, CS_CALL_RANGE_END, "never begun", 3, 0, 0);
    for (cs_u32 i = 0; i < 20000; i++)
        step(0, CS_CALL_RANGE_START, "many", 100 + i, 0, 0); /* more than can be kept apart */
    for (cs_u32 i = 0; i < 20000; i++) step(1, CS_CALL_RANGE_END, "many", 100 + i, 0, 0);
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
    for (int i = 0; i < 2; i++)
        cs_thread_row(&threads[i])->announced = true; /* their names are nobody's */
    tick = cs_ticks();
    pushes_and_pops();
    process_ranges();
    cs_annotations_end();
    cs_output_finish();
    return 0;
}
