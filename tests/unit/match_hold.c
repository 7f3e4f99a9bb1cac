/* What a piece of work waited for after its call (match/hold.c): the last that ended in that time,
 * if the work began soon after. */
#include "shim/base/clock.h"
#include "tests/unit/match.h"

enum { SOON = 50000 };

static cs_u64 called_ns, call_begin;
static struct cs_op op; /* whose work is asked about */

static void begin(void)
{
    static const struct cs_match_sink sink = {.outside = inside,
        .open_since = ever_since,
        .without_times = missed,
        .missed = missed,
        .depth = depth};
    cs_clock_init();
    REQUIRE(begin_told(&sink) && cs_streams_init());
    call_begin = cs_ticks();
    op = (struct cs_op){.id = 1, .begin = call_begin, .end = call_begin + 1000};
    called_ns = cs_clock_ns(op.end);
}

/* The lane of a new stream of the program's. */
static struct cs_match_lane *new_lane(
    enum cs_stream_origin origin, unsigned flags, int device, cs_u32 context)
{
    static cs_u32 number = 13;
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    REQUIRE(stream);
    cs_store(&stream->origin, origin);
    stream->flags = flags, stream->device = device, stream->lane = number++;
    struct cs_match_lane *lane = cs_match_lane_of(stream);
    REQUIRE(lane);
    lane->context = context;
    return lane;
}
static struct cs_match_lane *any_lane(void)
{
    return new_lane(CS_STREAM_CREATED, CU_STREAM_NON_BLOCKING, 0, 1);
}

/* Its work began so long after the call. The last wait on its lane may be one that was made
 * meanwhile. */
static struct cs_hold hold(struct cs_match_lane *lane, cs_u64 after_ns)
{
    op.event_wait = lane->event_wait;
    struct cs_hold hold;
    cs_match_hold(
        &hold, &(struct cs_match_found){.op = &op, .lane = lane, .start_ns = called_ns + after_ns});
    return hold;
}

#define CHECK_HOLD(lane, after_ns, why_, stream_) \
    do { \
        const struct cs_hold hold_ = hold(lane, after_ns); \
        CHECK_IS(hold_.ns, after_ns); \
        CHECK_IS(hold_.why, why_); \
        CHECK_IS(hold_.stream, stream_); \
    } while (0)

TEST(work_that_begins_with_its_call_waited_for_nothing)
{
    begin();
    struct cs_match_lane *lane = any_lane();
    CHECK_HOLD(lane, 0, CS_HOLD_LAUNCH, 0);
    CHECK_HOLD(lane, 1, CS_HOLD_LAUNCH, 0);
    called_ns -= 5;
    CHECK_IS(hold(lane, 0).ns, 0); /* clocks of two processors */
}

TEST(work_waits_for_the_work_before_it_on_its_stream)
{
    begin();
    struct cs_match_lane *lane = any_lane();
    lane->worked_ns = called_ns + 600;
    CHECK_HOLD(lane, 1000, CS_HOLD_STREAM, 0);
    CHECK_HOLD(lane, 600, CS_HOLD_STREAM, 0);
    CHECK_HOLD(lane, 599, CS_HOLD_LAUNCH, 0); /* it was not at its end yet */
    lane->worked_ns = called_ns;
    CHECK_HOLD(lane, 1000, CS_HOLD_LAUNCH, 0); /* it had ended by the end of the call */
    lane->worked_ns = called_ns + 1;
    CHECK_HOLD(lane, 1000, CS_HOLD_STREAM, 0);
}

TEST(of_a_wait_that_is_mostly_idle_the_cause_is_not_known)
{
    begin();
    struct cs_match_lane *lane = any_lane();
    CHECK_HOLD(lane, SOON, CS_HOLD_LAUNCH, 0);
    CHECK_HOLD(lane, SOON + 1, CS_HOLD_UNKNOWN, 0);
    const cs_u64 whole = 4 * SOON;
    lane->worked_ns = called_ns + whole - SOON;
    CHECK_HOLD(lane, whole, CS_HOLD_STREAM, 0);
    lane->worked_ns = called_ns + whole / 2;
    CHECK_HOLD(lane, whole, CS_HOLD_STREAM, 0);
    lane->worked_ns--;
    CHECK_HOLD(lane, whole, CS_HOLD_UNKNOWN, 0);
    lane->worked_ns = called_ns + 10;
    CHECK_HOLD(lane, SOON + 10, CS_HOLD_STREAM, 0); /* soon enough, however short it was */
}

/* --- events --- */

static struct cs_op *works_on(struct cs_match_lane *lane, cs_u64 begin_ticks, cs_u64 end_ns)
{
    struct cs_op *made = called(1, 1, begin_ticks, begin_ticks + 1);
    enqueue(lane, made);
    made->works = end_ns != 0;
    made->work_end_ns = end_ns;
    return made;
}

/* A stream waits for an event that was recorded on another one. */
static void waits_for(
    struct cs_match_lane *lane, const struct cs_match_lane *on, cs_u64 recorded, cs_u64 ticks)
{
    const cs_u64 cause[2] = {recorded, (cs_u64)on->stream << 32};
    cs_match_stream_waits(lane, ticks, cause);
}

TEST(work_waits_for_the_work_before_an_event)
{
    begin();
    struct cs_match_lane *lane = any_lane(), *other = any_lane();
    works_on(other, call_begin - 500, called_ns + 700);
    works_on(other, call_begin - 300, called_ns + 800); /* after the record */
    lane->worked_ns = called_ns + 600;
    waits_for(lane, other, call_begin - 400, call_begin + 1); /* the stream waits after the call */
    CHECK_HOLD(lane, 1000, CS_HOLD_STREAM, 0);
    waits_for(lane, other, call_begin - 400, call_begin);
    CHECK_HOLD(lane, 1000, CS_HOLD_EVENT, other->tid);
    lane->worked_ns = called_ns + 700;
    CHECK_HOLD(lane, 1000, CS_HOLD_STREAM, 0);
    lane->worked_ns = called_ns + 701;
    CHECK_HOLD(lane, 1000, CS_HOLD_STREAM, 0);
    lane->worked_ns = 0;
    CHECK_HOLD(lane, 700, CS_HOLD_EVENT, other->tid);
    CHECK_HOLD(lane, 700 + 2 * SOON + 700, CS_HOLD_UNKNOWN, 0); /* no stream is named then */
}

TEST(an_event_of_its_own_or_of_no_known_stream_holds_nothing_up)
{
    begin();
    struct cs_match_lane *lane = any_lane(), *empty = any_lane(), gone = {.stream = 0};
    works_on(lane, call_begin - 500, called_ns + 700);
    waits_for(lane, lane, call_begin - 400, call_begin - 10);
    waits_for(
        lane, empty, call_begin - 400, call_begin - 10); /* nothing was called before the record */
    waits_for(lane, &gone, call_begin - 400, call_begin - 10);
    waits_for(NULL, lane, call_begin - 400, call_begin - 10);
    CHECK(!lane->event_wait && !cs_match.event_wait_count);
    CHECK_HOLD(lane, 1000, CS_HOLD_LAUNCH, 0);
}

TEST(of_many_events_the_one_that_came_last_counts)
{
    enum { EVENTS = 40 };
    begin();
    struct cs_match_lane *lane = any_lane(), *beside = any_lane(), *others[EVENTS];
    for (cs_u32 i = 0; i < EVENTS; i++) {
        others[i] = any_lane();
        works_on(others[i], call_begin - 500, called_ns + 900 - 10 * i);
        waits_for(lane, others[i], call_begin - 400, call_begin - 10);
        waits_for(beside, others[0], call_begin - 400,
            call_begin - 10); /* another stream's, in between */
    }
    for (cs_u32 i = 0; i < EVENTS; i++)
        CHECK_HOLD(lane, 900 - 10 * i, CS_HOLD_EVENT, others[i]->tid);
    CHECK_HOLD(lane, 1000, CS_HOLD_EVENT, others[0]->tid);
}

/* For events that the work before had to wait for too, it has waited. A call that made no work is
 * not that work. */
TEST(events_count_since_the_work_before)
{
    begin();
    struct cs_match_lane *lane = any_lane(), *first = any_lane(), *second = any_lane();
    works_on(first, call_begin - 500, called_ns + 900);
    works_on(second, call_begin - 500, called_ns + 800);
    struct cs_op *before = works_on(lane, call_begin - 200, called_ns + 100),
                 *without = works_on(lane, call_begin - 100, 0);
    op.before = without->id;
    waits_for(lane, first, call_begin - 400, call_begin - 200);
    CHECK_HOLD(lane, 1000, CS_HOLD_LAUNCH, 0);
    waits_for(lane, second, call_begin - 400, call_begin - 199);
    CHECK_HOLD(lane, 1000, CS_HOLD_EVENT, second->tid);
    waits_for(lane, first, call_begin - 400, call_begin - 50);
    CHECK_HOLD(lane, 1000, CS_HOLD_EVENT, first->tid);
    CHECK_HOLD(lane, 850, CS_HOLD_EVENT, second->tid);
    without->works = 1; /* it did */
    CHECK_HOLD(lane, 850, CS_HOLD_LAUNCH, 0);
    before->works = without->works = 0;
    CHECK_HOLD(lane, 1000, CS_HOLD_EVENT, first->tid);
}

/* The one that is forgotten may have come last: then nobody knows. */
TEST(the_last_65536_waits_for_events_are_kept)
{
    begin();
    struct cs_match_lane *lane = any_lane(), *first = any_lane(), *second = any_lane();
    works_on(first, call_begin - 500, called_ns + 900);
    works_on(second, call_begin - 500, called_ns + 800);
    waits_for(lane, first, call_begin - 400, call_begin - 10);
    waits_for(lane, second, call_begin - 400, call_begin - 10);
    CHECK_IS(lane->event_wait, 2);
    cs_match.event_wait_count = CS_EVENT_WAITS;
    CHECK_HOLD(lane, 1000, CS_HOLD_EVENT, first->tid);
    cs_match.event_wait_count++; /* of other streams */
    CHECK_HOLD(lane, 1000, CS_HOLD_UNKNOWN, 0);
    CHECK_HOLD(lane, 0, CS_HOLD_LAUNCH, 0); /* it did not wait */
    cs_match.event_wait_count++;
    CHECK_HOLD(lane, 1000, CS_HOLD_UNKNOWN, 0);
    waits_for(lane, first, call_begin - 400, call_begin - 10);
    CHECK(lane->event_wait == CS_EVENT_WAITS + 3 && cs_match.table.event_waits[2].op);
    CHECK_HOLD(lane, 1000, CS_HOLD_UNKNOWN, 0); /* the ones before are forgotten */
    struct cs_op *before = works_on(lane, call_begin - 20, called_ns + 100);
    op.before = before->id;
    before->event_wait = 2; /* which that has waited for */
    CHECK_HOLD(lane, 1000, CS_HOLD_EVENT, first->tid);
    before->event_wait = 1;
    CHECK_HOLD(lane, 1000, CS_HOLD_UNKNOWN, 0);
}

/* A call that makes no work, such as an event's record or an empty copy, gives way to the one
 * before it: sixteen times. */
TEST(before_an_event_calls_without_work_give_way)
{
    enum { STEPS = 16 };
    begin();
    for (int without = 0; without <= STEPS + 1; without++) {
        struct cs_match_lane *lane = any_lane(), *other = any_lane();
        works_on(other, call_begin - 500, called_ns + 700);
        for (int i = 0; i < without; i++) works_on(other, call_begin - 499 + (cs_u64)i, 0);
        waits_for(lane, other, call_begin - 400, call_begin - 10);
        CHECK_HOLD(lane, 1000, without <= STEPS ? CS_HOLD_EVENT : CS_HOLD_LAUNCH,
            without <= STEPS ? other->tid : 0);
    }
}

/* --- the legacy default stream --- */

static void worked(struct cs_match_lane *lane, cs_u64 begin_ticks, cs_u64 end_ns)
{
    cs_hold_worked(lane, &(struct cs_op){.begin = begin_ticks}, end_ns);
}

TEST(the_default_stream_and_those_that_wait_for_it_hold_each_other_up)
{
    begin();
    struct cs_match_lane *legacy = new_lane(CS_STREAM_LEGACY, 0, 1, 5),
                         *blocking = new_lane(CS_STREAM_CREATED, 0, 1, 5),
                         *second = new_lane(CS_STREAM_PER_THREAD, 0, 1, 5),
                         *free = new_lane(CS_STREAM_CREATED, CU_STREAM_NON_BLOCKING, 1, 5),
                         *elsewhere = new_lane(CS_STREAM_CREATED, 0, 1, 6),
                         *far = new_lane(CS_STREAM_CREATED, 0, 2, 5);
    worked(legacy, call_begin - 10, called_ns + 500);
    CHECK_HOLD(blocking, 1000, CS_HOLD_DEFAULT, legacy->tid);
    CHECK_HOLD(second, 1000, CS_HOLD_DEFAULT, legacy->tid);
    CHECK_HOLD(free, 1000, CS_HOLD_LAUNCH, 0);
    CHECK_HOLD(elsewhere, 1000, CS_HOLD_LAUNCH, 0); /* of another context */
    CHECK_HOLD(far, 1000, CS_HOLD_LAUNCH, 0);       /* of another GPU */
    CHECK_HOLD(legacy, 1000, CS_HOLD_STREAM, 0);
    worked(free, call_begin - 10, called_ns + 900);
    CHECK_HOLD(legacy, 1000, CS_HOLD_STREAM, 0);
    worked(blocking, call_begin - 10, called_ns + 700);
    CHECK_HOLD(legacy, 1000, CS_HOLD_DEFAULT, blocking->tid);
    CHECK_HOLD(second, 1000, CS_HOLD_DEFAULT, legacy->tid); /* not each other */
    worked(second, call_begin - 10, called_ns + 699);
    CHECK_HOLD(legacy, 1000, CS_HOLD_DEFAULT, blocking->tid);
    worked(second, call_begin - 1, called_ns + 700);
    CHECK_HOLD(legacy, 1000, CS_HOLD_DEFAULT, second->tid);
    worked(second, call_begin,
        called_ns + 800); /* called when this work was, or later: that is no wait for it */
    CHECK_HOLD(legacy, 1000, CS_HOLD_STREAM, 0);
}

/* Work is told of in the order of its begin: a short one may come after a longer one. */
TEST(a_stream_has_worked_until_its_last_end)
{
    begin();
    struct cs_match_lane *lane = any_lane(), internal = {.device = 1};
    worked(lane, 1, 500);
    worked(lane, 2, 400);
    CHECK_IS(lane->worked_ns, 500);
    worked(lane, 3, 501);
    CHECK_IS(lane->worked_ns, 501);
    worked(&internal, 1, 700); /* of no stream that is known */
    CHECK_IS(internal.worked_ns, 700);
    struct cs_match_lane *beyond = new_lane(CS_STREAM_CREATED, 0, CS_GPU_PIDS, 1);
    worked(beyond, 1, 900); /* more GPUs than the trace has rows for */
    CHECK_IS(beyond->worked_ns, 900);
    for (cs_u32 i = 0; i < CS_GPU_PIDS; i++)
        CHECK(!cs_match.default_work[i].blocking.end_ns && !cs_match.default_work[i].legacy.end_ns);
}
