/* Whose work it is (match/lane.h), which call a thread's is (match/op.h), what was captured
 * (match/capture.c), and what released a wait (match/cause.c). */
#include "tests/unit/match.h"

static const struct cs_op *released[4];
static int released_count;
static void told_of(const struct cs_match_wait *wait, const struct cs_op *op)
{
    released[wait->tid] = op, released_count++;
}

static bool begin(void)
{
    static const struct cs_match_sink sink = {.outside = inside,
        .open_since = ever_since,
        .without_times = missed,
        .missed = missed,
        .depth = depth,
        .released = told_of};
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
    cs_match.table.waits[cs_match.wait_count++] =
        (struct cs_waiting){.wait = {begin_ns, end_ns, tid, 0},
            .chosen = true,
            .first = cs_match.candidate_count++,
            .ops = 1};
}

TEST(a_wait_is_released_by_what_ended_in_it)
{
    struct cs_stream stream;
    REQUIRE(begin());
    struct cs_match_lane *lane = lane_of(&stream, 5);
    struct cs_op *first = with_work(lane, 10, 150), *second = with_work(lane, 20, 250),
                 *without = called(1, 1, 30, 31), *out = called(1, 1, 40, 41);
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

/* A wait for a device: what it waits for is looked for in the round behind it, on all of the
 * streams, however many. */
TEST(a_wait_is_released_by_what_is_read_a_round_later)
{
    enum { STREAMS = 100 };
    static struct cs_stream streams[STREAMS];
    struct cs_op *ops[STREAMS];
    REQUIRE(begin());
    for (cs_u32 i = 0; i < STREAMS; i++) lane_of(&streams[i], 10 + i);
    for (int turn = 0; turn < 3; turn++)
        cs_match.table.waits[cs_match.wait_count++] =
            (struct cs_waiting){.wait = {100, 1000, (cs_u32)turn, 0}, .ticks = 50 + (cs_u64)turn};
    cs_waits_settle(false);
    CHECK_IS(cs_match.wait_count, 3);
    for (cs_u32 i = 0; i < STREAMS; i++)
        enqueue(cs_match_lane_of(&streams[i]), ops[i] = called(i, i, i == 70 ? 51 : 50, 52));
    cs_waits_settle(false);
    CHECK_IS(cs_match.candidate_count, 3 * STREAMS - 1);
    for (cs_u32 i = 0; i < STREAMS; i++)
        ops[i]->works = 1, ops[i]->work_end_ns = i == 70 ? 900 : 200 + i;
    cs_waits_settle(false);
    CHECK(released_count == 3 && released[0] == ops[STREAMS - 1] && released[1] == ops[70] &&
          released[2] == ops[70]);
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
    for (int i = 0; i < CS_WAITS; i++)
        cs_match_wait((struct cs_match_wait){100, 200, 0, 0}, i % 2 ? lanes[0] : NULL, 0, 50);
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
    CHECK(third == first && third->number == number && cs_match_lane_get(number) == third &&
          third->serial > serial);
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
    CHECK(cs_match_lane_of_work(&work, of_first) == first && first->gpu_id == 7 &&
          first->context == 1);
    CHECK(cs_match_lane_of_work(&work, NULL) == first);
    /* The stream is gone, and the next has its number: what the first one did goes to it all the
     * same. */
    second->gpu_id = 7, second->context = 1;
    first->next = 0, second->next = first->number;
    cs_match.table.lane_buckets[7 % CS_LANE_BUCKETS] = second->number;
    CHECK(cs_match_lane_of_work(&work, NULL) == second);
    CHECK(cs_match_lane_of_work(&work, of_first) == first &&
          cs_match_lane_of_work(&work, of_second) == second);
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
    while (other * 0x9e3779b9u >> (32 - CS_OP_THREADS_LOG2) !=
           100 * 0x9e3779b9u >> (32 - CS_OP_THREADS_LOG2))
        other++;
    struct cs_op *a = called(1, 100, 10, 20), *b = called(2, other, 10, 20);
    CHECK(cs_op_called(&(struct cs_gpu_call){12, 18, 100, 7}) == CS_OP_FOUND &&
          cs_op_called(&(struct cs_gpu_call){12, 18, other, 8}) == CS_OP_FOUND);
    CHECK(cs_op_of(7) == a && cs_op_of(8) == b);
}

/* More threads than a table of a few thousand has places for: alive at once, each with a key of its
 * own; and one after the other on the same stack, of which a call is searched among all. */
TEST(each_of_very_many_threads_keeps_its_calls)
{
    enum { FIRST = 100 };
    cs_u32 threads = 0;
    struct cs_op *ops[2] = {NULL};
    for (cs_u32 same = 0; same < 2; same++) {
        threads = same ? 8000 : 30000;
        REQUIRE(begin());
        for (cs_u32 i = 0; i < threads; i++) {
            struct cs_op *op = called(
                FIRST + i, same ? 7 : (FIRST + i) * 4096, 10 + 10 * (cs_u64)i, 19 + 10 * (cs_u64)i);
            if (i == 0 || i == threads - 1) ops[i != 0] = op;
        }
        for (cs_u32 i = 0; i < threads; i++) {
            const cs_u64 start = 12 + 10 * (cs_u64)i;
            CHECK(profiler_told(same ? 7 : (FIRST + i) * 4096, i + 1, start, start + 3) ==
                  CS_OP_FOUND);
        }
        CHECK(cs_op_of(1) == ops[0] && cs_op_of(threads) == ops[1]);
    }
    CHECK(profiler_told(FIRST, threads + 1, 12, 15) == CS_OP_FOUND &&
          cs_op_of(threads + 1) == ops[0]); /* by the kernel's number */
}

/* Stacks that lie 4 GiB apart give threads the same key: both are at work. The call whose times fit
 * closer made it. */
TEST(threads_of_one_key_that_call_at_the_same_time)
{
    REQUIRE(begin());
    struct cs_op *a = called(1, 100, 10, 40), *b = called(2, 100, 20, 60);
    CHECK(cs_op_called(&(struct cs_gpu_call){21, 58, 100, 7}) == CS_OP_FOUND &&
          cs_op_called(&(struct cs_gpu_call){11, 39, 100, 8}) == CS_OP_FOUND);
    CHECK(cs_op_of(7) == b && cs_op_of(8) == a);
    CHECK(cs_op_called(&(struct cs_gpu_call){41, 42, 100, 10}) == CS_OP_FOUND && cs_op_of(10) == b);
    struct cs_op *around = called(3, 100, 100, 190), *beside = called(4, 100, 150, 151);
    CHECK(cs_op_called(&(struct cs_gpu_call){140, 180, 100, 11}) == CS_OP_FOUND &&
          cs_op_of(11) == around && beside);
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
        struct cs_gpu_work work = {
            .kind = CS_GPU_KERNEL, .correlation = 30 + i, .stream = 8 - i, .context = 1};
        CHECK(cs_op_called(&(struct cs_gpu_call){30, 31, 100, 30 + i}) == CS_OP_FOUND);
        CHECK(cs_op_of_work(&work) == ops[1 - i] && cs_op_of(30 + i) == ops[1 - i]);
        work.stream = 9; /* nobody's: as the times say */
        CHECK(cs_op_of_work(&work) == ops[1 - i]);
        work.node = 1, work.stream = 7 + i; /* nodes run where the driver puts them */
        CHECK(cs_op_of_work(&work) == ops[1 - i]);
    }
    CHECK(!cs_op_of_work(
        &(struct cs_gpu_work){.kind = CS_GPU_KERNEL, .correlation = 99, .stream = 7}));
}

/* What the other thread had called before, on that stream, has ended. */
TEST(work_of_threads_of_one_key_is_of_a_call_at_that_time)
{
    struct cs_stream streams[2];
    REQUIRE(begin());
    struct cs_match_lane *first = lane_of(&streams[0], 1), *second = lane_of(&streams[1], 2);
    first->gpu_id = 7, second->gpu_id = 8;
    struct cs_op *old = called(2, 100, 10, 20), *op = called(1, 100, 30, 50),
                 *other = called(2, 100, 50, 60), *later = called(2, 100, 61, 70);
    enqueue(second, old), enqueue(first, op), enqueue(second, other), enqueue(second, later);
    struct cs_gpu_work work = {.kind = CS_GPU_KERNEL, .correlation = 5, .stream = 8, .context = 1};
    CHECK(profiler_told(100, 5, 31, 32) == CS_OP_FOUND && cs_op_of(5) == op);
    other->came = true; /* it has its work */
    CHECK(cs_op_of_work(&work) == op);
    other->came = false;
    CHECK(cs_op_of_work(&work) == other && cs_op_of(5) == other);
}

TEST(a_capture_that_ended_unseen_covers_nothing_more)
{
    REQUIRE(begin());
    struct cs_stream *ended = cs_pool_new(&cs_streams), *goes_on = cs_pool_new(&cs_streams);
    REQUIRE(ended && goes_on);
    cs_match_capture_began(ended, 100);
    cs_match_capture_began(goes_on, 100);
    cs_store(&goes_on->capture_began, 100);
    struct cs_stream *joined = cs_pool_new(&cs_streams);
    cs_match_capture_joined(
        joined, 150, (const cs_u64[]){120, (cs_u64)cs_load(&goes_on->object.ref) << 32});
    cs_match_captures_resume(200); /* nothing was recorded from then on, until now */
    CHECK(cs_captures(ended, 150) && !cs_captures(ended, 250) && cs_captures(goes_on, 250));
    CHECK_IS(cs_match.captures.open, 2);
    CHECK(cs_captures(joined, 250));
    cs_store(&goes_on->capture_began, 160); /* another one, which began since */
    cs_match_captures_resume(300);
    CHECK_IS(cs_match.captures.open, 0);
    CHECK(cs_captures(goes_on, 160) && !cs_captures(joined, 350));
}

TEST(a_capture_that_has_ended_covers_nothing_that_comes_later)
{
    REQUIRE(begin());
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    REQUIRE(stream);
    cs_match_capture_began(stream, 100);
    CHECK(cs_captures(stream, 150) && !cs_captures(stream, 50));
    cs_match_capture_ended(stream, 100, 200);
    CHECK(cs_captures(stream, 199) &&
          !cs_captures(stream, 200)); /* a thread was in a call meanwhile */
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
    for (work.context = 1; work.context <= CONTEXTS; work.context++)
        CHECK(cs_match_lane_of_work(&work, NULL) == lanes[work.context - 1]);
    cs_match_lane_free(&streams[1]);
    for (work.context = 1; work.context <= CONTEXTS; work.context++)
        if (work.context != 2) CHECK(cs_match_lane_of_work(&work, NULL) == lanes[work.context - 1]);
}

/* --- captures --- */

/* What had been read of each leaves with its end, and what is read later never comes to the lane.
 */
TEST(a_lane_remembers_its_last_capture)
{
    REQUIRE(begin());
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    REQUIRE(stream);
    struct cs_match_lane *lane = cs_match_lane_of(stream);
    struct cs_op *older = called(1, 1, 150, 151), *between = called(1, 1, 250, 251),
                 *captured = called(1, 1, 350, 351);
    enqueue(lane, older), enqueue(lane, between), enqueue(lane, captured);
    cs_match_capture_ended(stream, 300, 400);
    CHECK(captured->left && !between->left && !older->left);
    CHECK_IS(lane->captured_until, 400);
    cs_match_capture_ended(
        stream, 100, 200); /* its begin was not recorded, and another thread was in it */
    CHECK(older->left && !between->left);
    CHECK(lane->first == between->id && lane->last == between->id);
    CHECK_IS(lane->captured_until, 400);
    CHECK(cs_captures(stream, 350) && cs_captures(stream, 399) && !cs_captures(stream, 400) &&
          !cs_captures(stream, 250) && cs_captures(stream, 150));
    CHECK_IS(cs_match.captures.open, 0);
}

/* The oldest gives way, and one that goes on is counted until then. */
TEST(the_last_members_of_captures_are_known)
{
    REQUIRE(begin());
    struct cs_stream *stream = cs_pool_new(&cs_streams), *other = cs_pool_new(&cs_streams);
    REQUIRE(stream && other);
    cs_match_capture_began(other, 50);
    CHECK_IS(cs_match.captures.open, 1);
    for (cs_u64 i = 1; i <= CS_MEMBERS; i++) {
        CHECK_IS(cs_match.captures.open, 1);
        CHECK(cs_captures(other, 60));
        cs_match_capture_ended(stream, 1000 * i, 1000 * i + 100);
    }
    CHECK_IS(cs_match.captures.open, 0);
    CHECK(!cs_captures(other, 60));
    cs_ref members[CS_MEMBERS];
    cs_u64 from[CS_MEMBERS];
    const cs_ref ref = cs_load(&stream->object.ref);
    CHECK(
        cs_capture_members(ref, 1100, members, from) == 1 && members[0] == ref && from[0] == 1000);
    cs_match_capture_ended(stream, 5000000, 5000100);
    CHECK_IS(cs_capture_members(ref, 1100, members, from), 0);
}

TEST(streams_join_a_capture_by_events_and_leave_it_with_its_end)
{
    REQUIRE(begin());
    struct cs_stream *origin = cs_pool_new(&cs_streams), *joined = cs_pool_new(&cs_streams),
                     *third = cs_pool_new(&cs_streams), *none = cs_pool_new(&cs_streams);
    const cs_ref on = cs_load(&origin->object.ref), second = cs_load(&joined->object.ref);
    cs_match_capture_began(origin, 100);
    cs_match_capture_joined(
        none, 150, (const cs_u64[]){99, (cs_u64)on << 32}); /* recorded before it */
    cs_match_capture_joined(none, 150, (const cs_u64[]){120, 0});
    cs_match_capture_joined(joined, 150, (const cs_u64[]){120, (cs_u64)on << 32});
    cs_match_capture_joined(joined, 160, (const cs_u64[]){120, (cs_u64)on << 32}); /* it has */
    cs_match_capture_joined(third, 180, (const cs_u64[]){170, (cs_u64)second << 32});
    CHECK_IS(cs_match.captures.open, 3);
    CHECK(cs_captures(joined, 150) && !cs_captures(joined, 149) && cs_captures(third, 180) &&
          !cs_captures(third, 179) && !cs_captures(none, 150));
    cs_ref members[CS_MEMBERS];
    cs_u64 from[CS_MEMBERS];
    CHECK_IS(cs_capture_members(on, 200, members, from), 0);
    struct cs_stream *beside = cs_pool_new(&cs_streams);
    cs_match_capture_ended(beside, 100, 200); /* another capture, of that very time */
    cs_match_capture_ended(origin, 100, 200);
    CHECK_IS(cs_capture_members(cs_load(&beside->object.ref), 200, members, from), 1);
    CHECK_IS(
        cs_capture_members(on, 199, members, from) + cs_capture_members(on, 201, members, from), 0);
    CHECK_IS(cs_match.captures.open, 0);
    REQUIRE(cs_capture_members(on, 200, members, from) == 3);
    CHECK(from[0] == 100 && from[1] == 150 && from[2] == 180 && members[0] == on &&
          members[1] == second);
    /* A thread was in its wait while another ended the capture. */
    cs_match_capture_joined(none, 190, (const cs_u64[]){185, (cs_u64)on << 32});
    CHECK_IS(cs_capture_members(on, 200, members, from), 4);
    CHECK_IS(cs_match.captures.open, 0);
}

/* The program's thread is ahead of its records: the stream says that it captures. */
TEST(a_capture_whose_begin_has_not_been_read)
{
    REQUIRE(begin());
    struct cs_stream *origin = cs_pool_new(&cs_streams), *joined = cs_pool_new(&cs_streams);
    cs_store(&origin->capture_began, 100);
    CHECK(cs_captures(origin, 100) && !cs_captures(origin, 99));
    cs_match_capture_joined(
        joined, 150, (const cs_u64[]){99, (cs_u64)cs_load(&origin->object.ref) << 32});
    CHECK(!cs_captures(joined, 150));
    cs_match_capture_joined(
        joined, 150, (const cs_u64[]){100, (cs_u64)cs_load(&origin->object.ref) << 32});
    CHECK(cs_captures(joined, 150) && cs_match.captures.open == 1);
}

/* --- lanes --- */

TEST(a_streams_lane_is_found_by_its_place_and_has_its_priority)
{
    struct cs_stream stream = {.device = 3, .lane = 17, .priority = -4, .gpu_id = 9};
    REQUIRE(begin());
    cs_store(&stream.object.ref, 5u << CS_REF_INDEX_BITS | 77);
    CHECK(!cs_match_lane_made(&stream));
    const struct cs_match_lane *lane = cs_match_lane_of(&stream);
    REQUIRE(lane);
    CHECK(lane->device == 3 && lane->tid == 17 && lane->priority == -4 && lane->gpu_id == 9 &&
          lane->stream == cs_load(&stream.object.ref));
    CHECK_IS(cs_match.table.lane_of_stream[77], lane->number);
    CHECK(cs_match_lane_of(&stream) == lane);
    cs_store(&stream.object.ref, 6u << CS_REF_INDEX_BITS | 77); /* the next stream in that place */
    CHECK(!cs_match_lane_made(&stream));
}

TEST(places_of_lanes_are_used_again_the_last_one_first)
{
    struct cs_stream streams[6];
    cs_u32 numbers[6];
    REQUIRE(begin());
    for (cs_u32 i = 0; i < 3; i++) numbers[i] = lane_of(&streams[i], i)->number;
    cs_match_lane_free(&streams[0]);
    cs_match_lane_free(&streams[2]);
    cs_match_lane_free(&streams[2]); /* it has none */
    for (cs_u32 i = 3; i < 6; i++) numbers[i] = lane_of(&streams[i], i)->number;
    CHECK(numbers[3] == numbers[2] && numbers[4] == numbers[0] && numbers[5] == 4);
    CHECK(cs_match_lanes_high() == 4 && !cs_match_lane_get(0) && !cs_match_lane_get(5));
}

/* The profiler's number of a stream leads to its lane until the stream is gone, wherever that
 * stands among those with the same hash. */
TEST(numbers_that_meet_in_the_table_lead_each_to_its_lane)
{
    enum { STREAMS = 4 };
    struct cs_stream streams[STREAMS];
    struct cs_match_lane *lanes[STREAMS];
    for (cs_u32 gone = 0; gone < STREAMS; gone++) {
        REQUIRE(begin());
        for (cs_u32 i = 0; i < STREAMS; i++) {
            streams[i] = (struct cs_stream){.gpu_id = 9 + i * CS_LANE_BUCKETS, .lane = 13 + i};
            cs_store(&streams[i].object.ref, 1u << CS_REF_INDEX_BITS | i);
            lanes[i] = cs_match_lane_of(&streams[i]);
            lanes[i]->context = 1;
        }
        cs_match_lane_free(&streams[gone]);
        for (cs_u32 i = 0; i < STREAMS; i++) {
            const struct cs_gpu_work work = {
                .kind = CS_GPU_KERNEL, .stream = 9 + i * CS_LANE_BUCKETS, .context = 1};
            if (i != gone) CHECK(cs_match_lane_of_work(&work, NULL) == lanes[i]);
        }
        const struct cs_gpu_work work = {
            .kind = CS_GPU_KERNEL, .stream = 9 + gone * CS_LANE_BUCKETS, .context = 1};
        const struct cs_match_lane *own = cs_match_lane_of_work(&work, NULL);
        CHECK(own && !own->stream && own->gpu_id == work.stream);
    }
}

TEST(work_goes_to_the_lane_of_its_call_only_if_that_may_be)
{
    struct cs_stream stream;
    REQUIRE(begin());
    struct cs_match_lane *lane = lane_of(&stream, 1);
    struct cs_op *op = called(1, 1, 10, 11);
    op->lane = lane->number;
    lane->gpu_id = 7, lane->context = 5;
    CHECK(cs_match_lane_of_work(&(struct cs_gpu_work){.stream = 7, .context = 5}, op) == lane);
    CHECK(cs_match_lane_of_work(&(struct cs_gpu_work){.stream = 7, .context = 6}, op) != lane);
    CHECK(cs_match_lane_of_work(&(struct cs_gpu_work){.stream = 7, .context = 4}, op) != lane);
    CHECK(cs_match_lane_of_work(
              &(struct cs_gpu_work){.stream = 7, .context = 5, .device = 1}, op) != lane);
    CHECK(cs_match_lane_of_work(&(struct cs_gpu_work){.stream = 8, .context = 5}, op) != lane);
    lane->gpu_id = 0;
    op->graph = true; /* a graph runs where the driver puts it */
    CHECK(cs_match_lane_of_work(&(struct cs_gpu_work){.stream = 20, .context = 5}, op) != lane);
    op->graph = false;
    const struct cs_match_lane *known =
        cs_match_lane_of_work(&(struct cs_gpu_work){.stream = 21, .context = 5}, NULL);
    CHECK(cs_match_lane_of_work(&(struct cs_gpu_work){.stream = 21, .context = 5}, op) == known &&
          !lane->gpu_id);
    CHECK(cs_match_lane_of_work(&(struct cs_gpu_work){.stream = 22, .context = 5}, op) == lane &&
          lane->gpu_id == 22);
}

TEST(work_that_names_our_stream_goes_there)
{
    REQUIRE(begin());
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    REQUIRE(stream);
    struct cs_op *op = called(1, 1, 10, 11);
    CHECK(cs_match_lane_of_work(
              &(struct cs_gpu_work){
                  .stream = 7, .context = 5, .vstream = cs_load(&stream->object.ref)},
              op) == cs_match_lane_of(stream));
}

TEST(a_row_has_32_levels)
{
    struct cs_match_lane lane = {.used = true};
    for (cs_u32 level = 0; level < CS_LANE_LEVELS; level++) {
        CHECK_IS(cs_row_level(&lane.work, 10), level);
        cs_u64 from = 10;
        CHECK_IS(cs_row_place(&lane.work, &from, 20), level);
        CHECK_IS(lane.work.filled[level], 20);
    }
    lane.sync.filled[0] = UINT64_MAX; /* that is another row */
    CHECK_IS(cs_row_level(&lane.work, 19), CS_LANE_LEVELS);
    CHECK_IS(cs_row_level(&lane.work, 20), 0);
    cs_u64 from = 20;
    CHECK(cs_row_place(&lane.work, &from, 15) == 0 && from == 20 &&
          lane.work.filled[0] == 20); /* never less */
}
