/* What the audit of the default stream reads of records (audit/audit_read.h), told as the trace
 * tells it (trace/listener.h). */
#include "tests/unit/check.h"

#include "shim/audit/audit.h"
#include "shim/audit/audit_model.h"
#include "shim/base/clock.h"
#include "shim/base/options.h"
#include "shim/object/stream.h"
#include "shim/trace/listener.h"

enum { CONTEXT = 77 };

static cs_u64 now;

static struct cs_thread thread = {.tid = 4, .index = 1};
static struct cs_stream stream = {.object.ref = 5, .context = CONTEXT, .lane = 13},
                        default_stream = {
                            .origin = CS_STREAM_LEGACY, .context = CONTEXT, .lane = 7};

static void records_begin(void)
{
    setenv("CUSTREAM_DEFAULT_STREAM", "audit", 1);
    cs_options_read();
    cs_clock_init();
    cs_audit_listen();
    CS_TELL(begin);
    now = 100;
}

static void called(enum cs_call call, struct cs_stream *on, const cs_u64 value[CS_VALUES])
{
    now += 10;
    struct cs_record record = {.begin = now, .end = now + 5, .call = (cs_u16)call};
    if (value) memcpy(record.value, value, sizeof record.value);
    CS_TELL(call, &thread, &record, on, 0, now);
}

static void told(void (*function)(void), bool names_legacy)
{
    struct cs_record record = {
        .call = CS_CALL_SITE, .value = {(size_t)function + 2, names_legacy, CONTEXT}};
    CS_TELL(place, &thread, &record);
}

static void here(void) { abort(); }
static void there(void) { exit(1); }

TEST(a_place_is_that_of_the_next_call)
{
    records_begin();
    told(here, false);
    called(CS_CALL_cuLaunchKernel, &stream, NULL);
    told(there, false);
    called(CS_CALL_cuLaunchKernel, &default_stream, NULL);
    called(CS_CALL_cuLaunchKernel, &stream, NULL);
    told(here, false);
    CS_TELL(lost, &thread, 1); /* the call that it was told for */
    called(CS_CALL_cuLaunchKernel, &default_stream, NULL);
    cs_audit_rest();
    REQUIRE(cs_audit_pair_at(2) && !cs_audit_pair_at(3));
    CHECK(strstr(cs_audit_pair_at(0)->first.place, "(here+0x"));
    CHECK(strstr(cs_audit_pair_at(0)->second.place, "(there+0x"));
    CHECK(strstr(cs_audit_pair_at(1)->first.place, "(there+0x"));
    CHECK_TEXT(cs_audit_pair_at(1)->second.place, "");
    CHECK_TEXT(cs_audit_pair_at(2)->second.place, "");
    CHECK_IS(cs_audit_sums.lost, 1);
}

TEST(which_copies_the_host_waits_for)
{
    static const struct {
        enum cs_call call;
        cs_u64 value[CS_VALUES];
        int hazards, copies;
    } cases[] = {{CS_CALL_cuMemcpyDtoH_v2, {64, 1000, 2000}, 0, 0},
        {CS_CALL_cuMemcpyHtoD_v2, {64, 2000, 1000}, 0, 1},
        {CS_CALL_cuMemcpyHtoDAsync_v2, {64, 2000, 1000}, 1, 0},
        {CS_CALL_cuMemcpyDtoD_v2, {64, 2000, 3000}, 1, 0},
        {CS_CALL_cuMemcpy, {64, 2000, 3000}, 0, 1},
        {CS_CALL_cuMemcpyPeer, {64, 2000, 0, 3000}, 1, 0},
        {CS_CALL_cuMemcpyDtoA_v2, {64, 2000, 3000}, 1, 0},
        {CS_CALL_cuMemcpyAtoH_v2, {64, 1000, 2000}, 0, 0},
        {CS_CALL_cuMemcpy2D_v2, {64, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST}, 0, 0},
        {CS_CALL_cuMemcpy2D_v2, {64, CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE}, 0, 1},
        {CS_CALL_cuMemcpy3D_v2, {64, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_ARRAY}, 1, 0},
        {CS_CALL_cuMemsetD8_v2, {64, 0, 2000}, 1, 0}};
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        records_begin();
        called(cases[i].call, &default_stream, cases[i].value);
        called(CS_CALL_cuLaunchKernel, &stream, NULL);
        cs_audit_rest();
        if (cs_audit_sums.hazards != (cs_u64)cases[i].hazards ||
            cs_audit_sums.ordered[CS_AUDIT_BY_COPY] != (cs_u64)cases[i].copies)
            fprintf(stderr, "%s: ", cs_call_info[cases[i].call].name);
        CHECK_IS(cs_audit_sums.hazards, cases[i].hazards);
        CHECK_IS(cs_audit_sums.ordered[CS_AUDIT_BY_COPY], cases[i].copies);
    }
}

/* Pairs of a call on the default stream and one on a blocking stream: whether the memory that they
 * name makes them depend on each other. */
TEST(what_calls_say_of_memory)
{
    static const struct {
        enum cs_call first;
        cs_u64 one[CS_VALUES];
        enum cs_call second;
        cs_u64 two[CS_VALUES];
        int hazards;
    } cases[] = {
        {CS_CALL_cuMemsetD8Async, {64, 0, 1000}, CS_CALL_cuMemcpyDtoDAsync_v2, {64, 5000, 1000}, 1},
        {CS_CALL_cuMemsetD8Async, {64, 0, 1000}, CS_CALL_cuMemcpyDtoDAsync_v2, {64, 5000, 1064}, 0},
        {CS_CALL_cuMemsetD32Async, {256, 0, 1000}, CS_CALL_cuMemcpyDtoHAsync_v2, {64, 90000, 1255},
            1},
        {CS_CALL_cuMemsetD2D8Async, {64, 0, 1000}, CS_CALL_cuMemcpyDtoDAsync_v2, {64, 5000, 9000},
            1}, /* rows: how far they reach is not told */
        {CS_CALL_cuMemcpyDtoHAsync_v2, {64, 1000, 2000}, CS_CALL_cuMemcpyHtoDAsync_v2,
            {64, 3000, 1000}, 1}, /* by way of the host */
        {CS_CALL_cuMemcpyPeerAsync, {64, 1000, 7, 2000}, CS_CALL_cuMemsetD8Async, {64, 0, 2063}, 1},
        {CS_CALL_cuMemcpyPeerAsync, {64, 1000, 7, 2000}, CS_CALL_cuMemsetD8Async, {64, 0, 2064}, 0},
        {CS_CALL_cuMemcpyHtoAAsync_v2, {64, 1000, 2000}, CS_CALL_cuMemcpyHtoAAsync_v2,
            {64, 1001, 2000}, 0}, /* arrays, by their handles */
        {CS_CALL_cuMemcpyHtoAAsync_v2, {64, 1000, 2000}, CS_CALL_cuMemcpyHtoAAsync_v2,
            {64, 1000, 2000}, 1},
        {CS_CALL_cuMemcpy2DAsync_v2, {64, 2, 2}, CS_CALL_cuMemsetD8Async, {64, 0, 2064}, 1},
        {CS_CALL_cuMemPrefetchAsync, {64, 1000}, CS_CALL_cuLaunchKernel, {0}, 0},
        {CS_CALL_cuMemAllocAsync, {64, 1000}, CS_CALL_cuLaunchKernel, {0}, 1}};
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        records_begin();
        called(cases[i].first, &default_stream, cases[i].one);
        called(cases[i].second, &stream, cases[i].two);
        cs_audit_rest();
        if (cs_audit_sums.hazards != (cs_u64)cases[i].hazards) fprintf(stderr, "%zu: ", i);
        CHECK_IS(cs_audit_sums.hazards, cases[i].hazards);
        CHECK_IS(cs_audit_sums.unneeded, !cases[i].hazards);
    }
}

TEST(calls_that_cannot_be_followed)
{
    records_begin();
    called(CS_CALL_cuLaunchKernel, NULL, NULL);
    called(CS_CALL_cuLaunchCooperativeKernelMultiDevice, NULL, NULL);
    called(CS_CALL_cuStreamSynchronize, NULL, NULL);
    cs_audit_rest();
    CHECK_IS(cs_audit_sums.unseen, 3);
    called(CS_CALL_cuMemFree_v2, NULL, (cs_u64[CS_VALUES]){1000});      /* no work */
    called(CS_CALL_cuStreamWaitEvent, &stream, (cs_u64[CS_VALUES]){9}); /* it was never recorded */
    called(CS_CALL_cuEventQuery, NULL, (cs_u64[CS_VALUES]){0});
    called(CS_CALL_cuStreamGetFlags, &stream, NULL);
    cs_audit_rest();
    CHECK_IS(cs_audit_sums.unseen, 3);
}

TEST(a_time_between_events_is_an_answer)
{
    records_begin();
    called(CS_CALL_cuEventRecord, &default_stream, (cs_u64[CS_VALUES]){8});
    called(CS_CALL_cuLaunchKernel, &stream, NULL);
    called(CS_CALL_cuEventRecord, &default_stream, (cs_u64[CS_VALUES]){9});
    called(CS_CALL_cuEventElapsedTime, NULL, (cs_u64[CS_VALUES]){8, 9});
    cs_audit_rest();
    CHECK_IS(cs_audit_sums.hazards, 1);
    CHECK(cs_audit_sums.doubt[CS_AUDIT_DOUBT_TIME]);
}

/* The kernel on `stream`, a synchronous copy of so many bytes, and a kernel on the default stream.
 */
static void copy_between(cs_u64 bytes)
{
    records_begin();
    called(CS_CALL_cuLaunchKernel, &default_stream, NULL);
    called(CS_CALL_cuMemcpyDtoH_v2, &default_stream, (cs_u64[CS_VALUES]){bytes, 1000, 2000});
    called(CS_CALL_cuLaunchKernel, &stream, NULL);
    cs_audit_rest();
    CHECK_IS(cs_audit_sums.hazards, 0);
}

TEST(a_copy_of_nothing_is_no_wait)
{
    copy_between(64);
    CHECK(!cs_audit_sums.doubt[CS_AUDIT_DOUBT_COPY]);
    copy_between(0);
    CHECK(cs_audit_sums.doubt[CS_AUDIT_DOUBT_COPY]);
}

TEST(what_is_not_followed)
{
    static const enum cs_call handed_on[] = {CS_CALL_cuIpcGetEventHandle,
        CS_CALL_cuIpcOpenEventHandle, CS_CALL_cuGraphAddEventWaitNode, CS_CALL_cuGraphAddNode_v2};
    for (size_t i = 0; i < CS_COUNT(handed_on); i++) {
        records_begin();
        called(CS_CALL_cuEventDestroy_v2, NULL, (cs_u64[CS_VALUES]){9});
        called(CS_CALL_cuGraphLaunch, &stream, NULL);
        cs_audit_rest();
        CHECK(!cs_audit_sums.elsewhere);
        called(handed_on[i], NULL, (cs_u64[CS_VALUES]){9, 9, 9});
        cs_audit_rest();
        CHECK(cs_audit_sums.elsewhere);
    }
    records_begin();
    called(CS_CALL_cuMemcpyPeerAsync, &stream, (cs_u64[CS_VALUES]){64, 2000, 0, 3000});
    CHECK(!cs_audit_sums.doubt[CS_AUDIT_DOUBT_PEER]);
    called(CS_CALL_cuMemcpyPeer, &default_stream, (cs_u64[CS_VALUES]){64, 2000, 0, 3000});
    CHECK(cs_audit_sums.doubt[CS_AUDIT_DOUBT_PEER]);
    struct cs_record refused = {.begin = now,
        .end = now + 5,
        .call = CS_CALL_cuStreamBeginCapture_v2,
        .result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED};
    CS_TELL(call, &thread, &refused, &stream, 0, now);
    CHECK(!cs_audit_sums.doubt[CS_AUDIT_DOUBT_REFUSED]);
    CS_TELL(call, &thread, &refused, &default_stream, 0, now);
    CHECK(cs_audit_sums.doubt[CS_AUDIT_DOUBT_REFUSED]);
}

/* It has no records, and no row: nobody else's memory may be taken for one. */
TEST(a_thread_beyond_those_that_have_a_row)
{
    static struct cs_thread beyond = {.tid = 4, .index = INT32_MAX};
    records_begin();
    cs_store(&beyond.state, CS_THREAD_LIVE);
    cs_store(&cs_threads, &beyond);
    CS_TELL(round_begins);
    CS_TELL(lost, &beyond, 3);
    CS_TELL(round);
    CS_TELL(thread_ends, &beyond);
    CHECK_IS(cs_audit_sums.lost, 3);
}
