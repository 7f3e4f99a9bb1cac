/* Whose work it is (match/lane.h), which call a thread's is (match/op.h), what was captured (match/capture.c), and what released a wait (match/cause.c). */
#include "tests/unit/match.h"

static const struct cs_op *released[4];
static int released_count;
static void told_of(const struct cs_match_wait *wait, const struct cs_op *op) { released[wait->tid] = op, released_count++; }

static bool begin(void)
{
    static const struct cs_match_sink sink = {.outside = inside, .missed = missed, .depth = depth, .released = told_of};
    return begin_told(&sink) && cs_streams_init();
}

static struct cs_op *with_work(struct cs_match_lane *lane, cs_u64 begin_ns, cs_u64 work_end_ns)
{
    struct cs_op *op = called(1, 1, begin_ns, begin_ns + 1);
    enqueue(lane, op);
    op->works = 1;
    op->work_end_ns = work_end_ns;
    return op;
}

static void wait_of(cs_u32 tid, cs_u64 begin_ns, cs_u64 end_ns, const struct cs_op *op)
{
    cs_match.table.candidates[cs_match.candidate_count] = op->id;
    cs_match.table.waits[cs_match.wait_count++] = (struct cs_waiting){.wait = {begin_ns, end_ns, tid, 0}, .chosen = true, .first = cs_match.candidate_count++, .ops = 1};
}

TEST(a_wait_is_released_by_what_ended_in_it)
{
    struct cs_stream stream;
    REQUIRE(begin());
    struct cs_match_lane *lane = lane_of(&stream, 5);
    struct cs_op *first = with_work(lane, 10, 150), *second = with_work(lane, 20, 250), *without = called(1, 1, 30, 31), *out = called(1, 1, 40, 41);
    enqueue(lane, without);
    without->left = true; /* it made no work */
    enqueue(lane, out);
    wait_of(0, 100, 200, first);
    wait_of(1, 200, 300, without);
    wait_of(2, 300, 400, second); /* had ended before */
    wait_of(3, 300, 400, out);
    cs_waits_settle(false);
    CHECK(released[0] == first && released[1] == second && !released[2] && released_count == 2);
    CHECK(cs_match.wait_count == 1 && cs_match.table.waits[0].wait.tid == 3);
    cs_waits_settle(true);
    CHECK(released_count == 2 && !cs_match.wait_count);
}

/* A wait for a device: what it waits for is looked for in the round behind it, on all of the streams, however many. */
TEST(a_wait_is_released_by_what_is_read_a_round_later)
{
    enum { STREAMS = 100 };
    static struct cs_stream streams[STREAMS];
    struct cs_op *ops[STREAMS];
    REQUIRE(begin());
    for (cs_u32 i = 0; i < STREAMS; i++) lane_of(&streams[i], 10 + i);
    for (int turn = 0; turn < 3; turn++) cs_match.table.waits[cs_match.wait_count++] = (struct cs_waiting){.wait = {100, 1000, (cs_u32)turn, 0}, .ticks = 50 + (cs_u64)turn};
    cs_waits_settle(false);
    CHECK_IS(cs_match.wait_count, 3);
    for (cs_u32 i = 0; i < STREAMS; i++) enqueue(cs_match_lane_of(&streams[i]), ops[i] = called(i, i, i == 70 ? 51 : 50, 52));
    cs_waits_settle(false);
    CHECK_IS(cs_match.candidate_count, 3 * STREAMS - 1);
    for (cs_u32 i = 0; i < STREAMS; i++) ops[i]->works = 1, ops[i]->work_end_ns = i == 70 ? 900 : 200 + i;
    cs_waits_settle(false);
    CHECK(released_count == 3 && released[0] == ops[STREAMS - 1] && released[1] == ops[70] && released[2] == ops[70]);
    CHECK(!cs_match.wait_count && !cs_match.candidate_count);
}

/* A program that asks again and again fills the room: those that something holds up have theirs. */
TEST(waits_for_nothing_leave_room_for_others)
{
    struct cs_stream idle, busy;
    REQUIRE(begin());
    struct cs_match_lane *lanes[] = {lane_of(&idle, 5), lane_of(&busy, 6)};
    lanes[1]->device = 1;
    const struct cs_op *op = with_work(lanes[1], 10, 150);
    for (int i = 0; i < CS_WAITS; i++) cs_match_wait((struct cs_match_wait){100, 200, 0, 0}, i % 2 ? lanes[0] : NULL, 0, 50);
    CHECK_IS(cs_match.wait_count, CS_WAITS / 2);
    cs_match_wait((struct cs_match_wait){100, 200, 1, 0}, lanes[1], 1, 50);
    cs_match_wait((struct cs_match_wait){100, 200, 2, 0}, NULL, 1, 50);
    CHECK_IS(cs_match.wait_count, CS_WAITS / 2 + 2);
    cs_waits_settle(true);
    CHECK(!released[0] && released[1] == op && released[2] == op && !cs_match.wait_count);
}

TEST(a_lane_that_is_used_again_is_another)
{
    struct cs_stream a, b, c;
    REQUIRE(begin());
    struct cs_match_lane *first = lane_of(&a, 1), *second = lane_of(&b, 2);
    const cs_u32 number = first->number, serial = second->serial;
    cs_match_lane_free(&a);
    CHECK(!cs_match_lane_get(number));
    cs_match.lanes.high = CS_MATCH_LANES; /* no other is left */
    struct cs_match_lane *third = lane_of(&c, 3);
    CHECK(third == first && third->number == number && cs_match_lane_get(number) == third && third->serial > serial);
}

TEST(a_number_is_learnt_from_the_work_of_a_call)
{
    struct cs_stream a, b;
    REQUIRE(begin());
    struct cs_match_lane *first = lane_of(&a, 1), *second = lane_of(&b, 2);
    struct cs_op *of_first = called(1, 1, 10, 11), *of_second = called(1, 1, 20, 21);
    of_first->lane = first->number;
    of_second->lane = second->number;
    const struct cs_gpu_work work = {.kind = CS_GPU_KERNEL, .stream = 7, .context = 1};
    CHECK(cs_match_lane_of_work(&work, of_first) == first && first->gpu_id == 7 && first->context == 1);
    CHECK(cs_match_lane_of_work(&work, NULL) == first);
    /* The stream is gone, and the next has its number: what the first one did goes to it all the same. */
    second->gpu_id = 7, second->context = 1;
    first->next = 0, second->next = first->number;
    cs_match.table.lane_buckets[7 % CS_LANE_BUCKETS] = second->number;
    CHECK(cs_match_lane_of_work(&work, NULL) == second);
    CHECK(cs_match_lane_of_work(&work, of_first) == first && cs_match_lane_of_work(&work, of_second) == second);
}

TEST(work_of_a_stream_that_no_program_made_has_a_lane_of_its_context_and_gpu)
{
    REQUIRE(begin());
    struct cs_gpu_work work = {.kind = CS_GPU_KERNEL, .device = 2, .context = 5, .stream = 9};
    const struct cs_match_lane *lane = cs_match_lane_of_work(&work, NULL);
    REQUIRE(lane);
    CHECK(lane->device == 2 && lane->context == 5 && lane->gpu_id == 9);
    CHECK(cs_match_lane_of_work(&work, NULL) == lane);
    work.device = 5, work.context = 2;
    CHECK(cs_match_lane_of_work(&work, NULL) != lane);
}

/* Threads whose keys lead to the same place of the table. */
TEST(threads_that_meet_in_the_table_keep_their_calls)
{
    REQUIRE(begin());
    cs_u32 other = 101;
    while ((other * 0x9e3779b9u >> 20) % CS_OP_THREADS != (100 * 0x9e3779b9u >> 20) % CS_OP_THREADS) other++;
    struct cs_op *a = called(1, 100, 10, 20), *b = called(2, other, 10, 20);
    CHECK(cs_op_called(&(struct cs_gpu_call){12, 18, 100, 7}) == CS_OP_FOUND && cs_op_called(&(struct cs_gpu_call){12, 18, other, 8}) == CS_OP_FOUND);
    CHECK(cs_op_of(7) == a && cs_op_of(8) == b);
}

/* Stacks that lie 4 GiB apart give threads the same key: both are at work. The call whose times fit closer made it. */
TEST(threads_of_one_key_that_call_at_the_same_time)
{
    REQUIRE(begin());
    struct cs_op *a = called(1, 100, 10, 40), *b = called(2, 100, 20, 60);
    CHECK(cs_op_called(&(struct cs_gpu_call){21, 58, 100, 7}) == CS_OP_FOUND && cs_op_called(&(struct cs_gpu_call){11, 39, 100, 8}) == CS_OP_FOUND);
    CHECK(cs_op_of(7) == b && cs_op_of(8) == a);
    CHECK(cs_op_called(&(struct cs_gpu_call){41, 42, 100, 10}) == CS_OP_FOUND && cs_op_of(10) == b);
    struct cs_op *around = called(3, 100, 100, 190), *beside = called(4, 100, 150, 151);
    CHECK(cs_op_called(&(struct cs_gpu_call){140, 180, 100, 11}) == CS_OP_FOUND && cs_op_of(11) == around && beside);
}

/* Their times do not tell, or tell the wrong one: the work stands on the stream of one of them. */
TEST(work_of_threads_of_one_key_goes_by_its_stream)
{
    struct cs_stream streams[2];
    struct cs_match_lane *lanes[2];
    struct cs_op *ops[2];
    REQUIRE(begin());
    for (cs_u32 i = 0; i < 2; i++) {
        lanes[i] = lane_of(&streams[i], i + 1);
        lanes[i]->gpu_id = 7 + i;
        ops[i] = called(i + 1, 100, 10 + i, 50 + i);
        enqueue(lanes[i], ops[i]);
    }
    called(1, 100, 60, 70), called(2, 100, 60, 70), called(2, 200, 10, 50);
    for (cs_u32 i = 0; i < 2; i++) {
        struct cs_gpu_work work = {.kind = CS_GPU_KERNEL, .correlation = 30 + i, .stream = 8 - i, .context = 1};
        CHECK(cs_op_called(&(struct cs_gpu_call){30, 31, 100, 30 + i}) == CS_OP_FOUND);
        CHECK(cs_op_of_work(&work) == ops[1 - i] && cs_op_of(30 + i) == ops[1 - i]);
        work.stream = 9; /* nobody's: as the times say */
        CHECK(cs_op_of_work(&work) == ops[1 - i]);
        work.node = 1, work.stream = 7 + i; /* nodes run where the driver puts them */
        CHECK(cs_op_of_work(&work) == ops[1 - i]);
    }
    CHECK(!cs_op_of_work(&(struct cs_gpu_work){.kind = CS_GPU_KERNEL, .correlation = 99, .stream = 7}));
}

TEST(a_capture_that_ended_unseen_covers_nothing_more)
{
    REQUIRE(begin());
    struct cs_stream *ended = cs_pool_new(&cs_streams), *goes_on = cs_pool_new(&cs_streams);
    REQUIRE(ended && goes_on);
    cs_match_capture_began(ended, 100);
    cs_match_capture_began(goes_on, 100);
    cs_store(&goes_on->capture_began, 100);
    cs_match_captures_resume(200); /* nothing was recorded from then on, until now */
    CHECK(cs_captures(ended, 150) && !cs_captures(ended, 250) && cs_captures(goes_on, 250));
    CHECK_IS(cs_match.captures.open, 1);
}

TEST(a_capture_that_has_ended_covers_nothing_that_comes_later)
{
    REQUIRE(begin());
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    REQUIRE(stream);
    cs_match_capture_began(stream, 100);
    CHECK(cs_captures(stream, 150) && !cs_captures(stream, 50));
    cs_match_capture_ended(stream, 100, 200);
    CHECK(cs_captures(stream, 199) && !cs_captures(stream, 200)); /* a thread was in a call meanwhile */
}

/* The numbers count anew in each context. */
TEST(streams_of_one_number_in_several_contexts)
{
    enum { CONTEXTS = 4 };
    struct cs_stream streams[CONTEXTS];
    struct cs_match_lane *lanes[CONTEXTS];
    struct cs_gpu_work work = {.kind = CS_GPU_KERNEL, .stream = 7};
    REQUIRE(begin());
    for (cs_u32 i = 0; i < CONTEXTS; i++) {
        struct cs_op *op = called(1, 1, 10 * (i + 1), 10 * (i + 1) + 1);
        lanes[i] = lane_of(&streams[i], i + 1);
        op->lane = lanes[i]->number;
        work.context = i + 1;
        CHECK(cs_match_lane_of_work(&work, op) == lanes[i]);
    }
    for (work.context = 1; work.context <= CONTEXTS; work.context++) CHECK(cs_match_lane_of_work(&work, NULL) == lanes[work.context - 1]);
    cs_match_lane_free(&streams[1]);
    for (work.context = 1; work.context <= CONTEXTS; work.context++)
        if (work.context != 2) CHECK(cs_match_lane_of_work(&work, NULL) == lanes[work.context - 1]);
}
