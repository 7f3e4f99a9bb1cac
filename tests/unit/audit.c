/* What the audit of the default stream makes of a program (audit/audit_model.h): operations fed to
 * it directly, in the order of time. */
#include "tests/unit/check.h"

#include "shim/audit/audit_model.h"
#include "shim/base/memory.h"
#include "shim/base/place.h"
#include "shim/calls/calls.h"
#include "shim/object/stream.h"

enum { CONTEXT = 77 };

static cs_u64 now;

static void begin(void)
{
    now = 100;
    REQUIRE(cs_tables_make(CS_TABLES_AUDIT, "a test"));
    cs_audit_lanes_begin();
    cs_audit_events_begin();
    cs_audit_pairs_begin();
    cs_audit_waits_begin();
    cs_audit_model_begin();
}

static cs_u16 lane_in(cs_u64 context, enum cs_audit_kind kind, cs_u64 key, bool blocking)
{
    struct cs_audit_lane what = {.key = {key | (cs_u64)kind << 32, context},
        .kind = kind,
        .blocking = blocking,
        .number = (cs_u32)key};
    what.context = cs_audit_context(context);
    return cs_audit_lane(&what);
}

static cs_u16 blocking(cs_u64 key) { return lane_in(CONTEXT, CS_AUDIT_CREATED, key, true); }
static cs_u16 nonblocking(cs_u64 key) { return lane_in(CONTEXT, CS_AUDIT_CREATED, key, false); }
static cs_u16 own(cs_u64 thread) { return lane_in(CONTEXT, CS_AUDIT_THREAD, thread, true); }
static cs_u16 legacy(void) { return lane_in(CONTEXT, CS_AUDIT_LEGACY, 7, true); }

/* Where a call goes: as it is, as it would be. */
struct on {
    cs_u16 stream, lane;
};
static struct on by_handle(cs_u16 stream) { return (struct on){stream, stream}; }
static struct on by_default(cs_u64 thread) { return (struct on){legacy(), own(thread)}; }

static struct cs_audit_step step_of(enum cs_audit_what what, struct on on)
{
    now += 10;
    return (struct cs_audit_step){.at = now,
        .what = what,
        .lane = on.lane,
        .context = cs_audit_context(CONTEXT),
        .op = {.begin = now, .begin_ns = now, .call = CS_CALL_cuLaunchKernel, .stream = on.stream}};
}

/* An operation of unknown memory, called from place `site`. */
static void work(cs_u64 site, struct on on)
{
    struct cs_audit_step step = step_of(CS_AUDIT_WORK, on);
    step.op.site = site;
    cs_audit_take(&step);
}

static void copy(cs_u64 site, struct on on, cs_u64 write, cs_u64 read, cs_u64 bytes)
{
    struct cs_audit_step step = step_of(CS_AUDIT_WORK, on);
    step.op.site = site;
    step.op.memory =
        (struct cs_audit_memory){{write, write + bytes}, {read, read + bytes}, true, false};
    cs_audit_take(&step);
}

static void event(enum cs_audit_what what, cs_ref event, struct on on)
{
    struct cs_audit_step step = step_of(what, on);
    step.event = event;
    cs_audit_take(&step);
}
static void record(cs_ref number, struct on on) { event(CS_AUDIT_RECORD, number, on); }
static void wait_for(cs_ref number, struct on on) { event(CS_AUDIT_WAIT, number, on); }

static void host(struct on on)
{
    struct cs_audit_step step = step_of(CS_AUDIT_HOST, on);
    cs_audit_take(&step);
}
static void host_event(cs_ref number) { event(CS_AUDIT_HOST, number, (struct on){0, 0}); }
static void host_context(void) { host((struct on){0, 0}); }

static cs_u32 pairs(void)
{
    cs_u32 n = 0;
    while (cs_audit_pair_at(n)) n++;
    return n;
}

#define SUMS(hazards_, unneeded_) \
    do { \
        CHECK_IS(cs_audit_sums.hazards, hazards_); \
        CHECK_IS(cs_audit_sums.unneeded, unneeded_); \
        CHECK_IS(cs_audit_sums.unseen, 0); \
    } while (0)

TEST(the_default_stream_after_a_blocking_one)
{
    begin();
    work(1, by_handle(blocking(13)));
    work(2, by_default(1));
    work(3, by_default(1));
    SUMS(1, 0);
    CHECK_IS(pairs(), 1);
    CHECK_IS(cs_audit_pair_at(0)->first.stream, 13);
    CHECK_IS(cs_audit_pair_at(0)->second.stream, 7);
}

TEST(a_blocking_one_after_the_default_stream)
{
    begin();
    work(1, by_default(1));
    work(2, by_handle(blocking(13)));
    work(3, by_handle(blocking(13)));
    work(4, by_handle(nonblocking(14)));
    SUMS(1, 0);
}

TEST(two_threads_on_the_default_stream)
{
    begin();
    work(1, by_default(1));
    work(2, by_default(1));
    SUMS(0, 0);
    work(3, by_default(2));
    work(4, by_default(1)); /* and back again */
    SUMS(2, 0);
}

TEST(nonblocking_streams_are_not_concerned)
{
    begin();
    work(1, by_handle(nonblocking(13)));
    work(2, by_default(1));
    work(3, by_handle(nonblocking(14)));
    SUMS(0, 0);
    CHECK_IS(cs_audit_sums.by_default, 1);
}

TEST(events_keep_the_order)
{
    begin();
    work(1, by_handle(blocking(13)));
    record(5, by_handle(blocking(13)));
    wait_for(5, by_default(1));
    work(2, by_default(1));
    SUMS(0, 0);
    CHECK_IS(cs_audit_sums.ordered[CS_AUDIT_BY_EVENT], 1);
    record(6, by_default(1));
    wait_for(6, by_default(2));
    work(3, by_default(2));
    SUMS(0, 0);
    CHECK_IS(cs_audit_sums.ordered[CS_AUDIT_BY_EVENT], 2);
}

TEST(an_event_that_was_recorded_before_does_not)
{
    begin();
    work(1, by_handle(blocking(13)));
    record(5, by_handle(blocking(13)));
    work(2, by_handle(blocking(13)));
    wait_for(5, by_default(1));
    work(3, by_default(1));
    SUMS(1, 0);
}

TEST(events_over_a_further_stream)
{
    begin();
    work(1, by_handle(blocking(13)));
    record(5, by_handle(blocking(13)));
    wait_for(5, by_handle(nonblocking(14)));
    record(6, by_handle(nonblocking(14)));
    wait_for(6, by_default(1));
    work(2, by_default(1));
    SUMS(0, 0);
}

TEST(the_host_keeps_the_order)
{
    begin();
    work(1, by_handle(blocking(13)));
    host(by_handle(blocking(13)));
    work(2, by_default(1));
    record(5, by_default(1));
    host_event(5);
    work(3, by_handle(blocking(13)));
    work(4, by_default(1));
    host_context();
    work(5, by_default(2));
    SUMS(1, 0); /* 3 before 4 */
    CHECK_IS(cs_audit_sums.ordered[CS_AUDIT_BY_HOST], 3);
}

TEST(what_the_host_waits_for_by_the_default_stream)
{
    begin();
    work(1, by_handle(blocking(13)));
    host(by_default(1)); /* as it is it waits for that stream too */
    SUMS(1, 0);
    CHECK_IS(cs_audit_pair_at(0)->second.stream, 0);
    work(2, by_handle(nonblocking(14))); /* is told once */
    work(3, by_default(1));
    SUMS(1, 0);
}

TEST(an_event_on_the_default_stream_stands_for_others)
{
    begin();
    work(1, by_handle(blocking(13)));
    record(5, by_default(1));
    SUMS(0, 0); /* nobody has relied on it yet */
    wait_for(5, by_handle(nonblocking(14)));
    work(2, by_handle(nonblocking(14)));
    SUMS(1, 0);
    begin();
    work(1, by_handle(blocking(13)));
    record(5, by_default(1));
    host_event(5);
    SUMS(1, 0);
}

TEST(a_marker_on_the_default_stream_stands_between)
{
    begin();
    work(1, by_handle(blocking(13)));
    record(5, by_default(1));
    work(2, by_handle(blocking(14)));
    SUMS(1, 0);
    CHECK_IS(cs_audit_pair_at(0)->first.stream, 13);
    CHECK_IS(cs_audit_pair_at(0)->second.stream, 14);
}

TEST(what_follows_from_a_lost_order_is_not_told)
{
    begin();
    work(1, by_handle(blocking(13)));
    work(2, by_default(1));
    work(3, by_handle(blocking(14))); /* after 2, and so after 1 */
    work(4, by_handle(blocking(14)));
    SUMS(2, 0);
}

TEST(the_explicit_legacy_stream_stays)
{
    begin();
    work(1, by_handle(legacy()));
    work(2, by_handle(blocking(13)));
    work(3, by_handle(legacy()));
    SUMS(0, 0);
    CHECK_IS(cs_audit_sums.by_default, 0);
    work(4, by_default(1)); /* which is a blocking stream then */
    work(5, by_handle(legacy()));
    work(6, by_handle(blocking(13)));
    SUMS(0, 0);
    work(7, by_default(1));
    SUMS(1, 0); /* 6 before 7; by way of the legacy stream it would be kept */
}

TEST(a_threads_own_stream_is_where_it_would_go)
{
    begin();
    work(1, by_handle(own(1)));
    work(2, by_default(1));
    work(3, by_handle(own(1)));
    SUMS(0, 0);
    CHECK_IS(cs_audit_sums.ordered[CS_AUDIT_BY_STREAM], 2);
    work(4, by_default(2));
    SUMS(1, 0);
}

TEST(contexts_are_apart)
{
    begin();
    work(1, by_handle(lane_in(78, CS_AUDIT_CREATED, 20, true)));
    work(2, by_default(1));
    work(3, by_handle(lane_in(78, CS_AUDIT_CREATED, 20, true)));
    SUMS(0, 0);
}

TEST(copies_of_different_memory_need_no_order)
{
    begin();
    copy(1, by_default(1), 1000, 5000, 100);
    copy(2, by_handle(blocking(13)), 1100, 5000, 100); /* both read the same */
    SUMS(0, 1);
    copy(3, by_handle(blocking(13)), 1200, 5000, 100); /* no further wait */
    SUMS(0, 1);
    copy(4, by_handle(blocking(13)), 3000, 1099, 10);
    SUMS(1, 1);
    CHECK(cs_audit_pair_at(0)->same_memory);
}

TEST(an_operation_behind_may_depend_on_it)
{
    begin();
    copy(1, by_default(1), 1000, 5000, 100);
    copy(2, by_handle(blocking(13)), 2000, 6000, 100);
    SUMS(0, 1);
    work(3, by_handle(blocking(13)));
    SUMS(1, 1);
    CHECK(!cs_audit_pair_at(0)->same_memory);
}

TEST(an_older_one_of_the_same_stream_may_matter)
{
    begin();
    copy(1, by_default(1), 1000, 5000, 100);
    copy(2, by_default(1), 2000, 5000, 100);
    copy(3, by_handle(blocking(13)), 3000, 1000, 100);
    SUMS(1, 1); /* 1 before 3; 2 does not matter */
    CHECK_IS(pairs(), 1);
}

TEST(reading_twice_is_no_conflict_writing_is)
{
    begin();
    copy(1, by_default(1), 1000, 5000, 100);
    copy(2, by_handle(blocking(13)), 1050, 9000, 100);
    SUMS(1, 0);
    begin();
    copy(1, by_default(1), 1000, 5000, 100);
    copy(2, by_handle(blocking(13)), 5099, 9000, 100);
    SUMS(1, 0);
    begin();
    copy(1, by_default(1), 1000, 5000, 100);
    copy(2, by_handle(blocking(13)), 5100, 9000, 100);
    SUMS(0, 1);
}

TEST(captured_work_is_no_work)
{
    begin();
    struct on origin = by_handle(blocking(13)), member = by_handle(blocking(14));
    event(CS_AUDIT_CAPTURE, 0, origin);
    work(1, origin);
    record(5, origin);
    wait_for(5, member);
    work(2, member);
    event(CS_AUDIT_CAPTURED, 0, origin);
    CHECK_IS(cs_audit_sums.captured, 2);
    work(3, by_default(1));
    SUMS(0, 0);
    work(4, member); /* captures no more */
    SUMS(1, 0);
}

TEST(a_copy_from_host_memory_may_return_early)
{
    begin();
    struct cs_audit_step step = step_of(CS_AUDIT_WORK, by_default(1));
    cs_audit_take(&step);
    step.what = CS_AUDIT_HOST;
    step.weak = step.copy = true;
    cs_audit_take(&step);
    CHECK(!cs_audit_sums.doubt[CS_AUDIT_DOUBT_COPY]);
    work(2, by_handle(blocking(13)));
    SUMS(0, 0);
    CHECK(cs_audit_sums.doubt[CS_AUDIT_DOUBT_COPY]);
    CHECK_IS(cs_audit_sums.ordered[CS_AUDIT_BY_COPY], 1);
    host(by_default(1));
    work(3, by_handle(blocking(14)));
    CHECK_IS(cs_audit_sums.ordered[CS_AUDIT_BY_COPY], 1);
    CHECK_IS(cs_audit_sums.ordered[CS_AUDIT_BY_HOST], 1);
}

TEST(an_answer_is_no_wait)
{
    begin();
    work(1, by_handle(blocking(13)));
    struct cs_audit_step step = step_of(CS_AUDIT_HOST, by_handle(blocking(13)));
    step.asked = true;
    cs_audit_take(&step);
    work(2, by_handle(nonblocking(14))); /* no order is kept there as it is */
    CHECK(!cs_audit_sums.doubt[CS_AUDIT_DOUBT_ANSWER]);
    record(5, by_default(1));
    wait_for(5, by_handle(nonblocking(14)));
    work(3, by_handle(nonblocking(14)));
    SUMS(0, 0);
    CHECK(cs_audit_sums.doubt[CS_AUDIT_DOUBT_ANSWER]);
    begin();
    work(1, by_handle(blocking(13)));
    step = step_of(CS_AUDIT_HOST, by_handle(blocking(13)));
    step.asked = true;
    cs_audit_take(&step);
    host(by_handle(blocking(13)));
    work(2, by_default(1));
    SUMS(0, 0);
    CHECK(!cs_audit_sums.doubt[CS_AUDIT_DOUBT_ANSWER]); /* it has been waited for too */
    CHECK_IS(cs_audit_sums.ordered[CS_AUDIT_BY_HOST], 1);
}

TEST(an_answer_that_would_be_another)
{
    begin();
    work(1, by_handle(blocking(13)));
    struct cs_audit_step step = step_of(CS_AUDIT_HOST, by_handle(blocking(13)));
    step.asked = step.denied = true;
    cs_audit_take(&step); /* about the same work in both */
    CHECK(!cs_audit_sums.doubt[CS_AUDIT_DOUBT_DENIED]);
    step = step_of(CS_AUDIT_HOST, by_default(1));
    step.asked = step.denied = true;
    host(by_handle(blocking(13)));
    cs_audit_take(&step); /* that has been waited for */
    CHECK(!cs_audit_sums.doubt[CS_AUDIT_DOUBT_DENIED]);
    work(2, by_handle(blocking(13)));
    step = step_of(CS_AUDIT_HOST, by_default(1));
    step.asked = step.denied = true;
    cs_audit_take(&step);
    CHECK(cs_audit_sums.doubt[CS_AUDIT_DOUBT_DENIED]);
    SUMS(0, 0);
}

TEST(whether_threads_matter)
{
    for (int shared = 0; shared < 2; shared++) {
        begin();
        struct cs_audit_step step =
            step_of(CS_AUDIT_WORK, by_handle(shared ? blocking(13) : nonblocking(13)));
        step.op.tid = 2;
        cs_audit_take(&step);
        step = step_of(CS_AUDIT_HOST, (struct on){0, 0});
        step.op.tid = 2;
        cs_audit_take(&step);
        step = step_of(CS_AUDIT_WORK, by_default(1));
        step.op.tid = 1;
        cs_audit_take(&step);
        SUMS(0, 0);
        CHECK(cs_audit_sums.several);
        CHECK_IS(cs_audit_sums.implied, shared);
    }
}

TEST(what_was_enqueued_while_the_host_waited_may_be_under_way)
{
    begin();
    work(1, by_handle(blocking(13)));
    struct cs_audit_step step = step_of(CS_AUDIT_HOST, by_handle(blocking(13)));
    work(2, by_handle(blocking(13))); /* by another thread, before the wait was over */
    cs_audit_take(&step);
    work(3, by_default(1));
    SUMS(1, 0);
}

TEST(pairs_are_told_apart_by_their_places)
{
    begin();
    for (int i = 0; i < 5; i++) {
        work(1, by_handle(blocking(13)));
        work(2, by_default(1));
    }
    SUMS(9, 0);
    CHECK_IS(pairs(), 2);
    CHECK_IS(cs_audit_pair_at(0)->count, 5);
    CHECK_IS(cs_audit_pair_at(1)->count, 4);
    work(3, by_handle(blocking(13)));
    CHECK_IS(pairs(), 3);
}

TEST(long_histories)
{
    begin();
    for (int i = 0; i < 10000; i++) {
        copy(1, by_default(1), 1000, 5000, 100);
        copy(2, by_handle(blocking(13)), 2000, 6000, 100);
        if (!(i % 100)) host_context();
    }
    CHECK_IS(cs_audit_sums.hazards, 0);
    CHECK_IS(cs_audit_sums.unseen, 0);
    for (int i = 0; i < CS_AUDIT_HISTORY + 1; i++) copy(1, by_default(1), 1000, 5000, 100);
    copy(2, by_handle(blocking(13)), 2000, 6000, 100);
    CHECK(cs_audit_sums.unseen); /* the oldest could not be examined */
}

TEST(more_streams_than_there_are_lanes)
{
    begin();
    for (cs_u64 i = 0; i < 3 * CS_AUDIT_LANES; i++) {
        cs_u16 lane = blocking(1000 + i); /* none of them is a live stream's */
        REQUIRE(lane);
        work(1, by_handle(lane));
        if (i % 16 == 15) host_context();
    }
    CHECK_IS(cs_audit_sums.hazards, 0);
    work(2, by_default(1));
    CHECK_IS(cs_audit_sums.hazards, 0);
    work(1, by_handle(blocking(10)));
    work(2, by_default(1));
    CHECK_IS(cs_audit_sums.hazards, 2);
}

__attribute__((noinline)) static const void *return_address_of_here(void)
{
    return __builtin_return_address(0);
}

TEST(places)
{
    char text[256];
    int line;
    const void *here = return_address_of_here(); /* in a function that is not exported */
    CHECK_TEXT(cs_place_function(here), "places");
    cs_place_text(here, text, sizeof text);
    CHECK(strstr(text, "audit+0x") == text && strstr(text, " (places+0x"));
    cs_place_text((const char *)(size_t)&drand48 + 1, text,
        sizeof text); /* of a library, by its exported name if there is no other */
    CHECK(strstr(text, "libc.so.6+0x") == text && strstr(text, "drand48"));
    cs_place_text(&line, text, sizeof text);
    CHECK_TEXT(text, "");
    cs_place_text(NULL, text, sizeof text);
    CHECK_TEXT(text, "");
    CHECK_TEXT(cs_place_function(NULL), "");
}

TEST(events_of_a_whole_context)
{
    begin();
    work(1, by_handle(blocking(13)));
    work(2, by_handle(blocking(14)));
    record(5, (struct on){0, 0});
    wait_for(5, by_default(1));
    work(3, by_default(1));
    SUMS(0, 0);
    work(4, by_default(1));
    record(6, by_default(1));
    wait_for(6, (struct on){0, 0});
    work(5, by_handle(blocking(14)));
    SUMS(0, 0);
}
