/* Which call of which thread a profiler's number means (match/op.h). */
#include "tests/unit/match.h"

/* Each begins in the step of the counter in which the one before ended, and so does what the
 * profiler saw of it. */
TEST(calls_that_share_a_step_of_the_counter)
{
    REQUIRE(begin_plain());
    struct cs_op *ops[10];
    for (cs_u32 i = 0; i < 9; i++) ops[i] = called(1, 100, 10 * i, 10 * i + 10);
    for (cs_u32 i = 0; i < 9; i++)
        CHECK_IS(profiler_told(100, 1000 + i, 10 * i, 10 * i + 10 - i % 2), CS_OP_FOUND);
    CHECK_IS(profiler_told(100, 1009, 90, 95),
        CS_OP_LATER); /* the profiler tells of it before its record is read */
    ops[9] = called(1, 100, 90, 100);
    CHECK_IS(profiler_told(100, 1009, 90, 95), CS_OP_FOUND);
    for (cs_u32 i = 10; i-- > 0;) CHECK(cs_op_of(1000 + i) == ops[i]);
    for (cs_u32 i = 10; i-- > 0;)
        CHECK_IS(profiler_told(100, 2000 + i, 10 * i + i % 2, 10 * i + 10), CS_OP_FOUND);
    for (cs_u32 i = 0; i < 10; i++) CHECK(cs_op_of(2000 + i) == ops[i]);
}

TEST(a_call_that_has_one_step_in_common_with_ours_is_ours_if_one_is_within_the_other)
{
    REQUIRE(begin_plain());
    struct cs_op *a = called(1, 100, 10, 20), *b = called(1, 100, 30, 40);
    CHECK(profiler_told(100, 1, 10, 10) == CS_OP_FOUND && cs_op_of(1) == a);
    CHECK(profiler_told(100, 2, 20, 20) == CS_OP_FOUND && cs_op_of(2) == a);
    CHECK(profiler_told(100, 3, 40, 40) == CS_OP_FOUND && cs_op_of(3) == b);
    CHECK(profiler_told(100, 4, 19, 25) == CS_OP_FOUND && cs_op_of(4) == a);
    CHECK(profiler_told(100, 5, 25, 31) == CS_OP_FOUND && cs_op_of(5) == b);
    CHECK(profiler_told(100, 6, 5, 10) == CS_OP_NONE &&
          profiler_told(100, 7, 20, 25) == CS_OP_NONE &&
          profiler_told(100, 8, 40, 45) == CS_OP_LATER);
    CHECK(profiler_told(100, 9, 21, 29) == CS_OP_NONE &&
          profiler_told(100, 10, 41, 45) == CS_OP_LATER &&
          profiler_told(100, 11, 1, 9) == CS_OP_NONE);
    struct cs_op *moment = called(1, 100, 50, 50);
    CHECK(profiler_told(100, 12, 50, 55) == CS_OP_FOUND && cs_op_of(12) == moment);
    CHECK(profiler_told(100, 13, 45, 50) == CS_OP_FOUND && cs_op_of(13) == moment);
}

TEST(any_thread_is_found_by_the_kernels_number)
{
    REQUIRE(begin_plain());
    struct cs_op *ops[3];
    for (cs_u32 i = 0; i < 3; i++) ops[i] = called(i + 1, 1000 * (i + 1), 10, 20);
    for (cs_u32 i = 0; i < 3; i++)
        CHECK(profiler_told(i + 1, 7 + i, 12, 18) == CS_OP_FOUND && cs_op_of(7 + i) == ops[i]);
}

/* Only one of them was in the call all the time. */
TEST(of_threads_of_one_key_the_one_that_was_in_the_call_throughout)
{
    REQUIRE(begin_plain());
    struct cs_op *late = called(1, 100, 15, 25), *whole = called(2, 100, 1, 100),
                 *early = called(3, 100, 5, 15);
    CHECK(profiler_told(100, 7, 10, 20) == CS_OP_FOUND && cs_op_of(7) == whole && late && early);
}

TEST(a_call_is_looked_for_among_4096_before_the_last)
{
    enum { STEPS = 4096, CALLS = STEPS + 10 };
    REQUIRE(begin_plain());
    struct cs_stream stream;
    struct cs_match_lane *lane = lane_of(&stream, 1);
    for (cs_u64 i = 0; i < CALLS; i++) enqueue(lane, called(1, 100, 100 * i + 1, 100 * i + 50));
    const cs_u64 last = CALLS - 1;
    CHECK_IS(profiler_told(100, 1, 100 * last + 5, 100 * last + 45), CS_OP_FOUND);
    CHECK_IS(
        profiler_told(100, 2, 100 * (last - STEPS) + 5, 100 * (last - STEPS) + 45), CS_OP_FOUND);
    CHECK_IS(profiler_told(100, 3, 100 * last + 5, 100 * last + 45), CS_OP_FOUND);
    CHECK_IS(profiler_told(100, 4, 100 * (last - STEPS - 1) + 5, 100 * (last - STEPS - 1) + 45),
        CS_OP_NONE);
}

/* A wait or an event's record may have been read long after calls behind it. */
TEST(a_call_before_a_moment_is_looked_for_among_32768)
{
    enum { BACK = 1 << 15, CALLS = BACK + 10 };
    REQUIRE(begin_plain());
    struct cs_stream stream;
    struct cs_match_lane *lane = lane_of(&stream, 1);
    for (cs_u64 i = 0; i < CALLS; i++) enqueue(lane, called(1, 100, 100 * i + 1, 100 * i + 50));
    const cs_u64 last = CALLS - 1;
    bool known;
    const struct cs_op *found = cs_op_before(lane->last, 100 * (last - BACK) + 1, &known);
    CHECK(found && known && found->begin == 100 * (last - BACK) + 1);
    CHECK(!cs_op_before(lane->last, 100 * (last - BACK), &known) && !known);
    CHECK(!cs_op_before(0, UINT64_MAX, &known) && known &&
          cs_op_before(lane->last, UINT64_MAX, &known)->id == lane->last);
}

/* Numbers of events around the calls: a call that joins a range has no number of its own, and the
 * first of the range knows the last. */
TEST(a_range_of_calls_has_the_number_of_its_first)
{
    REQUIRE(begin_plain());
    struct cs_op *first = called(1, 1, 10, 11), *second = called(1, 1, 20, 21),
                 *third = called(1, 1, 30, 31);
    cs_op_marked(first, 5);
    cs_op_marked(third, 5 | CS_MARK_JOINS);
    cs_op_marked(second, 5 | CS_MARK_JOINS); /* read later */
    cs_op_marked(second, 6 | CS_MARK_JOINS); /* of a range that nobody knows */
    CHECK(cs_op_of(5) == first && !cs_op_of(6) && first->joined == third->id && !second->joined &&
          !third->joined);
    CHECK(!cs_op_is_outside(5));
    cs_op_outside(5);
    CHECK(cs_op_is_outside(5) && !cs_op_of(5) &&
          !cs_op_is_outside(5 + CS_CORRELATIONS_OF_OP * CS_OPS) && !cs_op_is_outside(0));
    cs_op_outside(0);
    CHECK(!cs_op_is_outside(0));
}
