/* Which work released a wait of the host (match/cause.c): the file itself. */
#include "shim/match/cause.c"

#include "tests/unit/match.h"

static const struct cs_op *released[32]; /* by the number of the wait's thread */
static int released_count;
static void told_of(const struct cs_match_wait *wait, const struct cs_op *op)
{
    released[wait->tid] = op, released_count++;
}

static bool open_now(void) { return false; }

static void begin(void)
{
    static const struct cs_match_sink sink = {.outside = inside,
        .closed = open_now,
        .open_since = ever_since,
        .without_times = missed,
        .missed = missed,
        .depth = depth,
        .released = told_of};
    REQUIRE(begin_told(&sink));
}

static struct cs_op *called_on(struct cs_match_lane *lane, cs_u64 ticks, cs_u64 work_end_ns)
{
    struct cs_op *op = called(1, 1, ticks, ticks + 1);
    enqueue(lane, op);
    op->works = work_end_ns != 0;
    op->work_end_ns = work_end_ns;
    return op;
}

/* Where the host waited from 100 to 200 ns; whether that is kept. */
static bool wait_kept(const struct cs_match_lane *lane, cs_u32 device, cs_u64 ticks, cs_u32 tid)
{
    const cs_u32 before = cs_match.wait_count;
    cs_match_wait(
        (struct cs_match_wait){.begin_ns = 100, .end_ns = 200, .tid = tid}, lane, device, ticks);
    return cs_match.wait_count == before + 1;
}

/* The same, and it is looked at a round later; how many calls may have released it. */
static int waited(const struct cs_match_lane *lane, cs_u32 device, cs_u64 ticks, cs_u32 tid)
{
    REQUIRE(wait_kept(lane, device, ticks, tid));
    struct cs_waiting *wait = &cs_match.table.waits[cs_match.wait_count - 1];
    choose(wait);
    CHECK(wait->chosen && wait->first + wait->ops == cs_match.candidate_count);
    return (int)wait->ops;
}

TEST(a_wait_is_for_the_last_call_before_it)
{
    struct cs_stream stream;
    begin();
    cs_match.now = (struct cs_since){5, 7};
    struct cs_match_lane *lane = lane_of(&stream, 1);
    const struct cs_op *first = called_on(lane, 10, 0), *second = called_on(lane, 20, 0);
    CHECK_IS(waited(lane, 0, 9, 0), 0); /* nothing had been called */
    CHECK_IS(waited(lane, 0, 19, 3), 1);
    CHECK_IS(waited(lane, 0, 20, 4), 1);
    const struct cs_waiting *wait = &cs_match.table.waits[1];
    CHECK(
        wait->first == 0 && wait->wait.tid == 3 && wait->since.flushes == 5 && wait->since.ns == 7);
    CHECK(cs_match.table.candidates[0] == first->id && cs_match.table.candidates[1] == second->id &&
          wait[1].first == 1);
}

/* --- when they are chosen --- */

/* Another thread may have been in the call when the wait ended. Work that is given away in between
 * says nothing of the rings. */
TEST(a_wait_has_its_candidates_in_the_second_round_that_sees_it)
{
    struct cs_stream stream;
    begin();
    struct cs_match_lane *lane = lane_of(&stream, 1);
    REQUIRE(wait_kept(lane, 0, 15, 0));
    const struct cs_waiting *wait = &cs_match.table.waits[0];
    for (int i = 0; i < 3; i++) cs_match_give(false);
    CHECK(!wait->due && !wait->chosen);
    cs_match_round();
    CHECK(wait->due && !wait->chosen && cs_match.wait_count == 1);
    for (int i = 0; i < 3; i++) cs_match_give(false);
    CHECK(!wait->chosen);
    struct cs_op *op = called_on(lane, 10, 0);
    cs_match_round();
    CHECK(cs_match.wait_count == 1 && wait->chosen && wait->ops == 1 &&
          cs_match.table.candidates[wait->first] == op->id);
    op->works = 1, op->work_end_ns = 150;
    cs_match_give(false);
    CHECK_IS(released_count, 0);
    cs_match_round();
    CHECK(released[0] == op && released_count == 1 && !cs_match.wait_count);
}

TEST(at_the_end_a_wait_is_settled_at_once)
{
    struct cs_stream stream;
    begin();
    struct cs_match_lane *lane = lane_of(&stream, 1);
    const struct cs_op *work = called_on(lane, 10, 150);
    called_on(lane, 12, 0);
    REQUIRE(wait_kept(lane, 0, 15, 0));
    cs_waits_settle(true);
    CHECK(released[0] == work && !cs_match.wait_count && !cs_match.candidate_count);
}

TEST(a_wait_for_a_stream_that_is_gone_is_for_nothing)
{
    struct cs_stream one, two;
    begin();
    struct cs_match_lane *lane = lane_of(&one, 1);
    called_on(lane, 10, 0);
    REQUIRE(wait_kept(lane, 0, 15, 0) && wait_kept(lane, 0, 15, 1));
    cs_waits_settle(false);
    cs_match_lane_free(&one);
    choose(&cs_match.table.waits[0]);
    CHECK_IS(cs_match.table.waits[0].ops, 0);
    REQUIRE(lane_of(&two, 2) == lane); /* another has its place */
    called_on(lane, 11, 0);
    cs_waits_settle(false);
    CHECK(!released_count && !cs_match.wait_count && !cs_match.candidate_count);
}

/* --- which --- */

TEST(what_had_ended_before_a_wait_holds_nobody_up)
{
    struct cs_stream stream;
    begin();
    struct cs_match_lane *lane = lane_of(&stream, 1);
    called_on(lane, 10, 100);
    CHECK_IS(waited(lane, 0, 15, 0), 0);
    called_on(lane, 20, 101);
    CHECK_IS(waited(lane, 0, 25, 0), 1);
}

TEST(a_wait_for_a_gpu_is_for_each_of_its_streams_that_is_at_work)
{
    enum { MANY = 100 };
    struct cs_stream streams[MANY + 2];
    begin();
    for (cs_u32 i = 0; i < MANY + 2; i++) {
        struct cs_match_lane *lane = lane_of(&streams[i], i + 1);
        lane->device = i == 0; /* one of another GPU; another one has no work under way */
        if (i != 1) called_on(lane, 10, 0);
        CHECK_IS(waited(NULL, 0, 15, 0), i < 2 ? 0 : i - 1);
        CHECK_IS(waited(NULL, 1, 15, 0), 1);
    }
}

/* The wait may be read late: what was within it has come by then. */
TEST(a_wait_for_a_gpu_is_also_for_what_has_come_since)
{
    struct cs_stream streams[3];
    begin();
    for (cs_u32 i = 0; i < 3; i++) {
        struct cs_match_lane *lane = lane_of(&streams[i], i + 1);
        called_on(lane, 10, 99 + i)->left = true;
        lane->worked_ns = 99 + i;
        lane->first = 0;
        CHECK(cs_lane_come(lane, NULL) == CS_CAME);
        CHECK_IS(waited(NULL, 0, 15, 0), i < 2 ? 0 : 1);
    }
}

/* --- how many --- */

static cs_u64 unknown(void) { return cs_no_room_count(CS_NO_ROOM_FOR_WAITS); }

/* The table of candidates is full up to one place: a wait for nine streams has no arrow, since the
 * work that ended last may be the one without a place. */
TEST(where_candidates_have_no_room_no_call_is_named)
{
    enum { STREAMS = 9, FIT = CS_CANDIDATES / STREAMS };
    _Static_assert((int)FIT < (int)CS_WAITS && CS_CANDIDATES % STREAMS == 1, "one place is left");
    struct cs_stream streams[STREAMS];
    struct cs_op *ops[STREAMS];
    begin();
    for (cs_u32 i = 0; i < STREAMS; i++) ops[i] = called_on(lane_of(&streams[i], i + 1), 10, 0);
    for (int i = 0; i < FIT; i++) REQUIRE(waited(NULL, 0, 15, 1) == STREAMS);
    CHECK_IS(waited(NULL, 0, 15, 2), 0);
    CHECK_IS(waited(cs_match_lane_of(&streams[STREAMS - 1]), 0, 15, 3),
        1); /* its one call has that place */
    CHECK_IS(waited(cs_match_lane_of(&streams[STREAMS - 1]), 0, 15, 4), 0);
    for (cs_u32 i = 0; i < STREAMS; i++) ops[i]->works = 1, ops[i]->work_end_ns = 120 + i;
    cs_waits_settle(false);
    CHECK(released[1] == ops[STREAMS - 1] && !released[2] && released[3] == ops[STREAMS - 1] &&
          !released[4]);
    CHECK(released_count == FIT + 1 && !cs_match.wait_count && !cs_match.candidate_count);
    CHECK_IS(unknown(), 2);
}

TEST(more_waits_than_there_is_room_for_are_counted)
{
    struct cs_stream stream, idle;
    begin();
    struct cs_match_lane *lane = lane_of(&stream, 1);
    struct cs_op *op = called_on(lane, 10, 0);
    for (int i = 0; i < CS_WAITS; i++) REQUIRE(wait_kept(lane, 0, 15, 1));
    CHECK(!wait_kept(lane_of(&idle, 2), 0, 15, 0)); /* which nothing holds up */
    CHECK_IS(unknown(), 0);
    CHECK(!wait_kept(lane, 0, 15, 0) && !wait_kept(NULL, 0, 15, 0));
    CHECK_IS(unknown(), 2);
    op->works = 1, op->work_end_ns = 150;
    cs_waits_settle(true);
    CHECK(released_count == CS_WAITS && unknown() == 2);
}

/* Of two streams the one's call is out of the table, or too far back, before the wait is looked at
 * or after: it may have been the one. */
TEST(where_a_call_is_forgotten_none_is_named)
{
    for (int after = 0; after < 3; after++) {
        struct cs_stream streams[3];
        const cs_u64 before = unknown();
        begin();
        cs_match.ops.cannot_grow = true;
        struct cs_match_lane *lane = lane_of(&streams[0], 1), *other = lane_of(&streams[1], 2),
                             *third = lane_of(&streams[2], 3);
        struct cs_op *op = called_on(lane, 10, 160);
        lane->worked_ns = 160, lane->first = 0;
        third->worked_ns = 100;
        third->last = op->id; /* long since: it is not asked for */
        third->first = 0;
        REQUIRE(wait_kept(NULL, 0, 15, 5) && wait_kept(third, 0, 15, 6));
        if (after == 1) choose(&cs_match.table.waits[0]), choose(&cs_match.table.waits[1]);
        if (after == 2)
            for (int i = 0; i <= 1 << 15; i++) called_on(lane, 30, 0);
        else
            for (int i = 0; i < CS_OPS; i++) called(1, 1, 20, 21);
        struct cs_op *last = called_on(other, 14, 150);
        other->worked_ns = 150;
        last->begin = 14;
        released[5] = NULL;
        cs_waits_settle(true);
        CHECK(!released[5]);
        CHECK_IS(unknown(), before + 1 + (after == 1));
    }
}

/* Of the second half, for a stream and for a GPU. */
TEST(where_many_wait_those_that_something_holds_up_have_room)
{
    static const struct {
        cs_u64 worked_ns;
        bool awaited, of_stream, of_gpu;
        cs_u32 device;
    } rows[] = {{100, false, false, false, 0}, {101, false, true, true, 0},
        {0, true, true, true, 0}, {101, true, true, false, 1}};
    for (size_t i = 0; i < CS_COUNT(rows); i++) {
        struct cs_stream before, stream, behind;
        begin();
        lane_of(&before, 1);
        struct cs_match_lane *lane = lane_of(&stream, 2);
        lane_of(&behind, 3);
        lane->device = rows[i].device;
        lane->worked_ns = rows[i].worked_ns;
        if (rows[i].awaited) called_on(lane, 10, 0);
        cs_match.wait_count = CS_WAITS / 2 - 1;
        CHECK(wait_kept(cs_match_lane_of(&before), 0, 15, 0)); /* the last of the first half */
        CHECK_IS(wait_kept(lane, rows[i].device, 15, 0), rows[i].of_stream);
        CHECK_IS(wait_kept(NULL, 0, 15, 0), rows[i].of_gpu);
        CHECK(!wait_kept(cs_match_lane_of(&before), 0, 15, 0));
    }
}

/* --- what released them --- */

TEST(a_wait_is_released_by_the_work_that_ended_last_in_it)
{
    static const struct {
        cs_u64 ends[3];
        int by; /* -1: none */
    } rows[] = {{{150, 120, 0}, 0}, {{120, 150, 0}, 1}, {{150, 150, 0}, 0}, {{200, 150, 0}, 0},
        {{201, 150, 0}, 1}, {{201, 300, 0}, -1}, {{101, 0, 0}, 0}, {{100, 0, 0}, -1},
        {{100, 150, 0}, 1}};
    begin();
    for (cs_u32 i = 0; i < CS_COUNT(rows); i++) {
        struct cs_stream streams[3];
        struct cs_op *ops[3];
        for (cs_u32 k = 0; k < 3; k++) {
            struct cs_match_lane *lane = lane_of(&streams[k], 10 * (i + 1) + k);
            lane->device = i;
            ops[k] = called_on(lane, 10, 0);
        }
        REQUIRE(waited(NULL, i, 15, i) == 3);
        cs_waits_settle(false);
        CHECK(!released[i] && cs_match.wait_count == 1); /* some of it is still out */
        for (cs_u32 k = 0; k < 3; k++)
            ops[k]->works = rows[i].ends[k] != 0, ops[k]->work_end_ns = rows[i].ends[k],
            ops[k]->left = true;
        cs_waits_settle(false);
        CHECK_IS(cs_match.wait_count, 0);
        CHECK(released[i] == (rows[i].by < 0 ? NULL : ops[rows[i].by]));
    }
}

/* A call that made no work gives way to the one before it: sixteen times. */
TEST(a_wait_behind_calls_without_work)
{
    enum { STEPS = 16 };
    begin();
    for (cs_u32 without = 0; without <= STEPS + 1; without++) {
        struct cs_stream stream;
        struct cs_match_lane *lane = lane_of(&stream, without + 1);
        const struct cs_op *work = called_on(lane, 10, 150);
        for (cs_u32 i = 0; i < without; i++) called_on(lane, 20 + i, 0)->left = true;
        REQUIRE(waited(lane, 0, 90, without) == 1);
        cs_waits_settle(false);
        CHECK(released[without] == (without <= STEPS ? work : NULL));
    }
}

TEST(waits_whose_work_is_out_stay_in_their_order)
{
    struct cs_stream streams[5];
    struct cs_op *ops[5];
    begin();
    for (cs_u32 i = 0; i < 5; i++) {
        struct cs_match_lane *lane = lane_of(&streams[i], i + 1);
        ops[i] = called_on(lane, 10, 0);
        REQUIRE(waited(lane, 0, 15, i) == 1);
    }
    for (cs_u32 i = 0; i < 5; i += 2) ops[i]->works = 1, ops[i]->work_end_ns = 150;
    cs_waits_settle(false);
    CHECK(released_count == 3 && cs_match.wait_count == 2);
    for (cs_u32 i = 0; i < 2; i++) {
        const struct cs_waiting *wait = &cs_match.table.waits[i];
        CHECK(wait->wait.tid == 1 + 2 * i && wait->first == i && wait->ops == 1 &&
              cs_match.table.candidates[i] == ops[1 + 2 * i]->id);
    }
    CHECK_IS(cs_match.candidate_count, 2);
    cs_match.now.flushes = 25;
    cs_waits_settle(false);
    CHECK_IS(cs_match.wait_count, 2);
    cs_match.now.flushes = 26; /* it will not come */
    cs_waits_settle(false);
    CHECK(released_count == 3 && !cs_match.wait_count && !cs_match.candidate_count);
}
