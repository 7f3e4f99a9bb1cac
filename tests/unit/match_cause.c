/* Which work released a wait of the host (match/cause.c): the file itself, as where there is a GPU. */
#include "shim/gpu/backend.h"

static bool gpu_is_on = true;
#define cs_gpu_is_on() gpu_is_on
#include "shim/match/cause.c"
#undef cs_gpu_is_on

#include "tests/unit/match.h"

static const struct cs_op *released[32]; /* by the number of the wait's thread */
static int released_count;
static void told_of(const struct cs_match_wait *wait, const struct cs_op *op) { released[wait->tid] = op, released_count++; }

static void begin(void)
{
    static const struct cs_match_sink sink = {.outside = inside, .missed = missed, .depth = depth, .released = told_of};
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

/* Where the host waited from 100 to 200 ns; how many calls may have released it. */
static int waited(const struct cs_match_lane *lane, cs_u32 device, cs_u64 ticks, cs_u32 tid)
{
    const cs_u32 before = cs_match.wait_count;
    cs_match_wait((struct cs_match_wait){.begin_ns = 100, .end_ns = 200, .tid = tid}, lane, device, ticks);
    return cs_match.wait_count == before ? 0 : cs_match.table.waits[before].ops;
}

TEST(a_wait_is_for_the_last_call_before_it)
{
    struct cs_stream stream;
    begin();
    cs_match.now = (struct cs_since){5, 7};
    struct cs_match_lane *lane = lane_of(&stream, 1);
    const struct cs_op *first = called_on(lane, 10, 0);
    called_on(lane, 20, 0);
    CHECK_IS(waited(lane, 0, 9, 0), 0); /* nothing had been called */
    CHECK_IS(waited(lane, 0, 19, 3), 1);
    const struct cs_waiting *wait = &cs_match.table.waits[0];
    CHECK(wait->op[0] == first->id && wait->wait.tid == 3 && wait->since.flushes == 5 && wait->since.ns == 7);
    gpu_is_on = false;
    CHECK_IS(waited(lane, 0, 19, 4), 0);
}

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
    enum { MANY = CS_CANDIDATES + 2 };
    struct cs_stream streams[MANY + 2];
    begin();
    for (cs_u32 i = 0; i < MANY + 2; i++) {
        struct cs_match_lane *lane = lane_of(&streams[i], i + 1);
        lane->device = i == 0; /* one of another GPU; another one has no work under way */
        if (i != 1) called_on(lane, 10, 0);
        CHECK_IS(waited(NULL, 0, 15, 0), i < 2 ? 0 : i - 1 < CS_CANDIDATES ? i - 1 : CS_CANDIDATES);
        CHECK_IS(waited(NULL, 1, 15, 0), 1);
    }
}

TEST(more_waits_than_there_is_room_for_have_no_arrow)
{
    struct cs_stream stream;
    begin();
    struct cs_match_lane *lane = lane_of(&stream, 1);
    called_on(lane, 10, 0);
    cs_match.wait_count = CS_WAITS - 1;
    CHECK_IS(waited(lane, 0, 15, 0), 1);
    CHECK_IS(waited(lane, 0, 15, 0), 0);
    CHECK_IS(cs_match.wait_count, CS_WAITS);
}

TEST(a_wait_is_released_by_the_work_that_ended_last_in_it)
{
    static const struct {
        cs_u64 ends[3];
        int by; /* -1: none */
    } rows[] = {{{150, 120, 0}, 0}, {{120, 150, 0}, 1}, {{150, 150, 0}, 0}, {{200, 150, 0}, 0}, {{201, 150, 0}, 1}, {{201, 300, 0}, -1}, {{101, 0, 0}, 0}, {{100, 0, 0}, -1}, {{100, 150, 0}, 1}};
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
        for (cs_u32 k = 0; k < 3; k++) ops[k]->works = rows[i].ends[k] != 0, ops[k]->work_end_ns = rows[i].ends[k], ops[k]->left = true;
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
    CHECK(cs_match.table.waits[0].wait.tid == 1 && cs_match.table.waits[1].wait.tid == 3);
    cs_match.now.flushes = 25;
    cs_waits_settle(false);
    CHECK_IS(cs_match.wait_count, 2);
    cs_match.now.flushes = 26; /* it will not come */
    cs_waits_settle(false);
    CHECK(released_count == 3 && !cs_match.wait_count);
}
