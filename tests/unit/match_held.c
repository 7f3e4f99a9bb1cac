/* What the backend has brought in and has not been given away (match/held.c): who waits for whom,
 * how long, and in what order it is given. */
#include "shim/base/clock.h"
#include "shim/gpu/backend.h"
#include "tests/unit/match.h"

static struct cs_gpu_work works[16];
static struct cs_gpu_call calls[16];
static int work_count, call_count; /* that the backend has */

static void nothing(bool all) { (void)all; }
static bool stops; /* the writer, behind the first piece: for so long that the time it knows is over
                      a second old */
static void drain(const struct cs_gpu_sink *to)
{
    if (stops) {
        to->work(&works[0]);
        cs_match.held.now_ns = 1;
        to->work(&works[1]);
        work_count = 0;
    }
    for (int i = 0; i < work_count; i++) to->work(&works[i]);
    for (int i = 0; i < call_count; i++) to->call(&calls[i]);
    work_count = call_count = 0;
}
const struct cs_gpu_backend cs_gpu_none = {.name = "test", .flush = nothing, .drain = drain};

static cs_u32 given[64]; /* by their correlations */
static int given_count, untimed;
static cs_u64 lost;
static enum cs_loss lost_why = CS_LOSSES;
static enum cs_outside where = CS_INSIDE;

static enum cs_outside outside(cs_u64 ticks) { return (void)ticks, where; }
static bool closed(void) { return false; }
static bool shows(struct cs_match_found *found)
{
    return given[given_count++] = found->work->correlation, false;
}
static void lost_told(cs_u64 count, enum cs_loss why) { lost += count, lost_why = why; }
static void without_times(int by) { untimed += by; }

static void begin(void)
{
    static const struct cs_match_sink sink = {.outside = outside,
        .closed = closed,
        .open_since = ever_since,
        .work = shows,
        .lost = lost_told,
        .without_times = without_times};
    cs_clock_init();
    REQUIRE(begin_told(&sink));
}

static cs_u64 base; /* ticks */
static void has_work(cs_u32 correlation, cs_u32 stream, cs_u64 start, cs_u64 end)
{
    if (!base) base = cs_ticks();
    works[work_count++] = (struct cs_gpu_work){.kind = CS_GPU_KERNEL,
        .stream = stream,
        .correlation = correlation,
        .start = base + start,
        .end = base + end};
}
static void has_call(cs_u32 thread, cs_u32 correlation, cs_u64 start)
{
    calls[call_count++] = (struct cs_gpu_call){start, start + 1, thread, correlation};
}

static void round_at(cs_u64 flushes, cs_u64 ns)
{
    cs_match.now = (struct cs_since){flushes, ns};
    cs_held_collect();
    cs_match_round();
}

/* 900 ms from now, ticks. */
static cs_u64 soon(void)
{
    cs_u64 ticks = cs_ticks();
    while (cs_clock_ns(ticks) < cs_clock_ns(cs_ticks()) + 900000000) ticks += 1000000;
    return ticks;
}

TEST(work_in_another_clock_is_lost)
{
    begin();
    has_work(1, 1, 0, 100);
    has_work(2, 1, 200, 300);
    works[1].end = cs_ticks() + 40000000000; /* far from now, however fast the counter is */
    has_work(3, 1, 400, 500);
    works[2].start = works[2].end = 1; /* before the clock's begin */
    has_work(4, 1, 600, 700);
    works[3].start = works[3].end = soon(); /* within a second: the clock is not that exact */
    round_at(0, 0);
    CHECK_IS(lost, 2);
    CHECK_IS(lost_why, CS_LOSS_OTHER_CLOCK);
    CHECK_IS(cs_match.held.work_count, 2);
    round_at(0, 0);
    CHECK_IS(lost, 2); /* told once */
}

/* In the middle of what the backend has brought in, which is taken for as if it were one moment. */
TEST(work_that_ended_while_the_writer_was_stopped_is_not_lost)
{
    begin();
    has_work(1, 1, 0, 100);
    has_work(2, 1, 200, 300);
    while (cs_clock_ns(cs_ticks()) < 200000000)
        usleep(10000); /* so that 900 ms from now are more than a second from the clock's begin */
    works[1].end = soon();
    stops = true;
    round_at(0, 0);
    CHECK_IS(lost, 0);
    CHECK_IS(cs_match.held.work_count, 2);
}

TEST(work_without_times_is_given_as_such)
{
    begin();
    called(1, 100, 10, 20);
    has_call(100, 1, 12);
    has_work(1, 1, 0, 0);
    works[0].start = works[0].end = 0;
    has_work(0, 1, 100, 99); /* it ends before it begins, and its call is not known */
    has_work(1, 1, 100, 100);
    round_at(0, 0);
    CHECK_IS(untimed, 2);
    CHECK_IS(lost, 0);
    CHECK_IS(given_count, 1);
    CHECK_IS(cs_match.held.work_count, 0);
}

/* The record of the call may be on its way to the ring. */
TEST(a_call_waits_a_flush_for_its_record)
{
    begin();
    for (cs_u32 i = 0; i < 3; i++) has_call(100, 1 + i, 10 * (i + 1));
    round_at(5, 0);
    CHECK_IS(cs_match.held.call_count, 3);
    called(1, 100, 20, 22); /* the second one's */
    called(1, 100, 90, 92);
    round_at(6, 0);
    CHECK(!cs_op_of(1) && cs_op_of(2) && !cs_op_of(3));
    CHECK_IS(cs_match.held.call_count,
        0); /* its thread has recorded later ones: they are none of ours */
    has_call(200, 7, 10);
    round_at(7, 0);
    round_at(8, 0);
    CHECK_IS(cs_match.held.call_count, 1);
    round_at(9, 0);
    CHECK_IS(cs_match.held.call_count, 0);
}

TEST(at_the_edge_of_a_window_a_call_waits_half_a_second)
{
    begin();
    where = CS_MAY_BE_OUTSIDE;
    has_call(200, 7, 10);
    round_at(0, 1000);
    round_at(50, 500000999);
    CHECK(cs_match.held.call_count == 1 && !cs_op_is_outside(7));
    round_at(50, 500001000);
    CHECK(!cs_match.held.call_count && cs_op_is_outside(7));
    has_call(200, 8, 10);
    round_at(51, 0);
    CHECK_IS(cs_match.held.call_count, 1);
    cs_held_calls(true); /* no record comes any more */
    CHECK(!cs_match.held.call_count && cs_op_is_outside(8));
}

TEST(a_call_without_a_record_is_no_call_from_outside)
{
    begin();
    has_call(200, 7, 10);
    round_at(0, 0);
    round_at(2, 0);
    CHECK(!cs_match.held.call_count && !cs_op_is_outside(7) && !cs_op_of(7));
}

TEST(work_is_given_in_the_order_of_its_begin)
{
    static const cs_u64 rows[][3] = {{3, 300, 400}, {1, 100, 150}, {4, 300, 350}, {2, 100, 120},
        {5, 500, 600}, {6, 500, 600}, {7, 50, 60}};
    static const cs_u32 order[] = {
        7, 1, 2, 3, 4, 5, 6}; /* of those that begin at once the longer one first */
    begin();
    called(1, 100, 10, 20);
    for (cs_u32 i = 0; i < CS_COUNT(rows); i++) {
        has_call(100, (cs_u32)rows[i][0], 12);
        has_work((cs_u32)rows[i][0], 1 + i, rows[i][1], rows[i][2]);
    }
    round_at(0, 0);
    CHECK_IS(given_count, CS_COUNT(order));
    for (size_t i = 0; i < CS_COUNT(order); i++) CHECK_IS(given[i], order[i]);
}

/* What began before it, or stands on another stream, need not wait. */
TEST(work_that_waits_for_its_call_holds_up_what_follows_it_on_its_stream)
{
    begin();
    called(1, 100, 10, 20);
    has_call(100, 1, 12);
    has_work(9, 1, 200, 210); /* its call has not come */
    has_work(1, 1, 100, 110);
    has_work(1, 1, 200, 210);
    has_work(1, 1, 300, 310);
    has_work(1, 2, 300, 310);
    round_at(10, 0);
    CHECK_IS(given_count, 2);
    CHECK_IS(cs_match.held.work_count, 3);
    round_at(12, 0);
    CHECK_IS(given_count, 2);
    round_at(13, 0); /* it has had its time */
    CHECK_IS(given_count, 5);
    CHECK(given[2] == 9 && given[3] == 1 && given[4] == 1);
    CHECK_IS(cs_match.held.work_count, 0);
}

TEST(the_last_round_gives_all)
{
    begin();
    has_work(9, 1, 200, 210);
    has_work(8, 1, 100, 110);
    round_at(0, 0);
    CHECK_IS(given_count, 0);
    cs_match_end();
    CHECK(given_count == 2 && given[0] == 8 && given[1] == 9);
}

/* Of a time when nothing was recorded: neither is it shown, nor does it wait. */
TEST(work_from_outside_is_not_shown)
{
    begin();
    cs_op_outside(9);
    has_work(9, 1, 200, 210);
    round_at(0, 0);
    CHECK(!given_count && !cs_match.held.work_count);
    where = CS_OUTSIDE;
    has_work(0, 1, 300, 310);
    called(1, 100, 10, 20);
    where = CS_INSIDE;
    has_call(100, 1, 12);
    cs_held_collect();
    cs_match_round();
    where = CS_OUTSIDE;
    given_count = 0;
    has_work(0, 1, 400, 410); /* no call */
    has_work(1, 1, 500, 510); /* of a call that was recorded before */
    round_at(0, 0);
    CHECK(given_count == 1 && given[0] == 1);
}
