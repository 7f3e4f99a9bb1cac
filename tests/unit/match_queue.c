/* The calls on a stream whose work has not come (match/queue.c): what the depth counts and when,
 * and launches whose kernels are missing. */
#include "tests/unit/match.h"

static cs_u64 told_ns[64];
static cs_u32 told_depth[64];
static int told_count, missed_by, without_times;

static void depth_told(const struct cs_match_lane *lane, cs_u64 ns)
{
    if (told_count < 64) told_ns[told_count] = ns, told_depth[told_count] = lane->depth;
    told_count++;
}
static void missed_told(int by) { missed_by += by; }
static void without_times_told(int by) { without_times += by; }
static int came_after_all[2];
static void came_told(bool untimed) { came_after_all[untimed]++; }

static struct cs_match_lane lane;

static void begin(void)
{
    missed_by = without_times = 0;
    static const struct cs_match_sink sink = {.outside = inside,
        .missed = missed_told,
        .without_times = without_times_told,
        .came_after_all = came_told,
        .depth = depth_told};
    REQUIRE(begin_told(&sink));
    cs_match_part(1);
    lane = (struct cs_match_lane){.used = true, .number = 1};
}

/* Its slice begins 1000 ns later than its ticks say. */
static struct cs_op *call(cs_u64 from, cs_u64 to)
{
    struct cs_op *op = called(1, 1, from, to);
    op->begin_ns = from + 1000;
    op->call = CS_CALL_cuLaunchKernel;
    cs_queue_add(&lane, op);
    return op;
}

/* Some work of the call has come, which ended then. */
static void come(struct cs_op *op, cs_u64 end_ticks)
{
    op->works++;
    cs_queue_came(op);
    cs_queue_arrived(&lane, op, end_ticks, end_ticks + 1000);
}

static void check_told(int nth, cs_u64 ns, cs_u32 depth)
{
    CHECK(told_count > nth);
    CHECK_IS(told_ns[nth], ns);
    CHECK_IS(told_depth[nth], depth);
}

TEST(a_depth_goes_up_with_each_call_and_down_with_its_work)
{
    begin();
    struct cs_op *a = call(10, 11), *b = call(20, 21);
    call(30, 31);
    CHECK_IS(told_count, 0); /* it may be that some are to come in between */
    come(a, 20);
    check_told(0, 1010, 1);
    check_told(1, 1020, 2);
    check_told(2, 1020, 1);
    CHECK_IS(told_count, 3); /* the third was called later */
    come(b, 40);
    check_told(3, 1030, 2);
    check_told(4, 1040, 1);
    CHECK_IS(told_count, 5);
    come(b, 50); /* more of it */
    CHECK_IS(told_count, 5);
}

TEST(calls_without_work_leave_with_the_one_behind_them)
{
    begin();
    struct cs_op *empty = call(10, 11), *beside = call(12, 30), *work = call(20, 21);
    come(work, 25);
    CHECK(empty->left && work->left && !beside->left); /* which may have come after it */
    CHECK(lane.first == beside->id);
    CHECK_IS(lane.depth, 1);
    CHECK_IS(told_count, 4);
    check_told(3, 1025, 1);
}

TEST(a_call_that_ends_as_the_next_one_begins_was_before_it)
{
    begin();
    struct cs_op *before = call(10, 20), *at_once = call(11, 21), *work = call(20, 22);
    come(work, 25);
    CHECK(before->left && !at_once->left);
}

/* --- launches whose kernels are missing --- */

TEST(a_launch_is_missed_when_something_behind_it_comes_first)
{
    begin();
    struct cs_op *first = call(10, 11), *copy = call(12, 13), *work = call(20, 21);
    copy->call = CS_CALL_cuMemcpyHtoDAsync_v2; /* it may have copied nothing */
    come(work, 25);
    CHECK_IS(missed_by, 1);
    CHECK(first->missed == 1 && !copy->missed && !work->missed);
    come(first, 24); /* it was late */
    CHECK_IS(missed_by, 0);
    CHECK(first->came && !first->missed);
    cs_queue_came(first);
    CHECK_IS(missed_by, 0);
}

TEST(a_launch_of_which_some_work_without_times_came_is_not_missed)
{
    begin();
    struct cs_op *first = call(10, 11), *work = call(20, 21);
    cs_queue_came(first);
    come(work, 25);
    CHECK(first->left && !missed_by);
}

/* A part of the trace that has ended stands as it is. */
TEST(what_comes_late_is_told_of_in_its_own_part)
{
    begin();
    struct cs_op *first = call(10, 11);
    come(call(20, 21), 25);
    CHECK_IS(missed_by, 1);
    struct cs_op *last = call(30, 31);
    cs_queue_ends(&lane, UINT64_MAX);
    cs_match_part(2);
    come(first, 24);
    CHECK(missed_by == 1 && !first->missed && came_after_all[false] == 1);
    come(last, 40);
    CHECK(without_times == 1 && !last->missed && came_after_all[true] == 1);
}

TEST(at_the_end_each_launch_has_a_kernel_or_is_counted)
{
    begin();
    struct cs_op *beside = call(5, 30), *missed = call(10, 11), *work = call(20, 21),
                 *untimed = call(30, 31), *copy = call(40, 41), *last = call(50, 51);
    copy->call = CS_CALL_cuMemcpyHtoDAsync_v2; /* it may have copied nothing */
    come(work, 25);
    cs_queue_came(untimed); /* the profiler has told of it, without times */
    cs_queue_ends(&lane, UINT64_MAX);
    CHECK(missed->missed && missed_by == 1); /* and is not counted a second time */
    CHECK(beside->untimed && last->untimed && !copy->missed && without_times == 2);
    cs_queue_ends(&lane, 0);
    CHECK_IS(without_times, 2);
    cs_queue_came(last); /* its stream was gone for long, and it came all the same */
    CHECK(without_times == 1 && missed_by == 1);
}

TEST(behind_the_end_of_times_nothing_has_any)
{
    begin();
    call(10, 11)->call = CS_CALL_cuMemcpyHtoDAsync_v2;
    call(20, 26)->call = CS_CALL_cuMemcpyHtoDAsync_v2;
    call(30, 31)->call = CS_CALL_cuGraphLaunch;
    call(40, 41)->call = CS_CALL_cuMemsetD8Async;
    call(50, 51)->call = CS_CALL_cuLaunchHostFunc; /* a profiler tells of none */
    cs_queue_ends(&lane, 25);
    CHECK_IS(without_times, 3);
}

TEST(launches_behind_one_that_is_forgotten_are_counted_at_the_end)
{
    begin();
    call(1, 2);
    for (cs_u32 i = 0; i < CS_OPS; i++) called(1, 1, 3, 4); /* on other streams */
    for (cs_u64 i = 0; i < 100; i++) call(10 + i, 10 + i);
    cs_queue_ends(&lane, UINT64_MAX);
    CHECK_IS(without_times, 100);
}

TEST(work_without_a_call_may_be_that_of_a_launch_before_it)
{
    begin();
    call(10, 11), call(20, 21), call(30, 31);
    lane.stray_ns = 1025;
    cs_queue_ends(&lane, UINT64_MAX);
    CHECK_IS(without_times, 1);
}

TEST(what_may_have_been_captured_is_not_counted)
{
    begin();
    call(10, 11), call(20, 21), call(30, 31);
    cs_queue_unsure(&lane, 20, 30);
    cs_queue_ends(&lane, 0);
    CHECK_IS(without_times, 2);
}

/* --- calls that were captured --- */

TEST(captured_calls_leave_the_depth)
{
    begin();
    struct cs_op *a = call(10, 11), *b = call(20, 21), *c = call(30, 31), *d = call(40, 41),
                 *e = call(50, 51);
    come(e, 60); /* all were counted, and the launches before are missed */
    CHECK_IS(missed_by, 4);
    told_count = 0;
    cs_queue_remove(&lane, 20, 40);
    CHECK_IS(missed_by, 2);
    CHECK(!b->lane && !c->lane && a->after == d->id && d->before == a->id && !told_count);
    struct cs_op *f = call(70, 71), *g = call(80, 81), *h = call(90, 91);
    f->lane = g->lane = h->lane = 1;
    come(f, 100);
    CHECK_IS(lane.depth, 2);
    told_count = 0;
    cs_queue_remove(&lane, 80, 90); /* the end is none of it */
    CHECK(g->left && !g->lane && !h->left && h->lane == 1);
    CHECK_IS(told_count, 1);
    check_told(0, 1090, 1);
    CHECK(lane.first == h->id && f->after == h->id && h->before == f->id);
    cs_queue_remove(&lane, 91, UINT64_MAX); /* nothing is there */
    CHECK_IS(told_count, 1);
    cs_queue_remove(&lane, 0, UINT64_MAX);
    CHECK_IS(lane.depth, 0);
    CHECK(!lane.first && lane.last == f->id); /* its work has come, as that of the fifth has */
}

TEST(nothing_is_added_twice_or_lost_where_calls_begin_together)
{
    begin();
    struct cs_op *a = call(10, 11), *b = call(10, 12), *c = call(10, 13);
    CHECK(lane.first == a->id && lane.last == c->id && a->after == b->id && b->after == c->id &&
          c->before == b->id && b->before == a->id && !a->before && !c->after);
}

/* --- calls so long ago that they are forgotten --- */

TEST(the_last_calls_are_kept_and_no_others)
{
    begin();
    CHECK(!cs_op_get(0) && !cs_op_get(CS_OP_BEFORE_FIRST) && !cs_op_get(CS_OP_BEFORE_FIRST + 1));
    struct cs_op *first = called(1, 100, 1, 2);
    CHECK(first->id == CS_OP_BEFORE_FIRST + 1 && cs_op_get(first->id) == first &&
          cs_match_op(first->id) == first && !cs_op_get(first->id + 1));
    for (cs_u32 i = 1; i < CS_OPS; i++) called(1, 100, 10 * i, 10 * i + 1);
    CHECK(cs_op_get(CS_OP_BEFORE_FIRST + 1) == first && first->begin == 1);
    called(1, 100, 10 * CS_OPS, 10 * CS_OPS + 1);
    CHECK(!cs_op_get(CS_OP_BEFORE_FIRST + 1) && cs_op_get(CS_OP_BEFORE_FIRST + 2) &&
          cs_op_get(cs_match.ops.newest) == first);
}

/* Its work may come: the table grows before it would be forgotten, and knows no older one than it
 * did. */
TEST(a_call_that_is_awaited_is_kept_while_the_table_can_grow)
{
    enum { BEFORE = 10, NUMBER = 2 * CS_CORRELATIONS_OF_OP * CS_OPS };
    begin();
    for (int i = 0; i < BEFORE; i++) called(2, 100, 1, 2);
    struct cs_op *op = call(10, 11);
    const cs_u64 id = op->id;
    op->lane = lane.number;
    *cs_correlated(NUMBER) = (struct cs_correlated){NUMBER, (cs_u32)id};
    cs_u64 others = 0;
    for (; others < CS_OPS - 1; others++) called(1, 100, 20 + others, 20 + others);
    CHECK(cs_op_get(id) == op && cs_match.ops.size == CS_OPS);
    for (; others < CS_OPS_MOST - 1; others++) called(1, 100, 20 + others, 20 + others);
    CHECK_IS(cs_match.ops.size, CS_OPS_MOST);
    op = cs_op_get(id);
    REQUIRE(op && op->id == id && op->begin == 10 && op == cs_op_of(NUMBER) && lane.first == id);
    for (int i = 1; i <= BEFORE; i++) CHECK(!cs_op_get(id - (cs_u64)i));
    for (cs_u64 other = id + 1; other <= cs_match.ops.newest; other++)
        CHECK_IS(cs_op_get(other)->id, other);
    called(1, 100, 20 + others, 20 + others);
    CHECK(!cs_op_get(id) && cs_op_get(id + 1) && cs_match.ops.size == CS_OPS_MOST);
}

/* It has its first size again when nothing has been awaited for a second, and knows the last calls.
 */
TEST(a_table_that_has_grown_is_given_back)
{
    enum { NUMBER = 100 };
    const cs_u64 second = 1000000000, now = 5 * second;
    begin();
    struct cs_op *op = call(10, 11);
    const cs_u64 id = op->id;
    op->lane = lane.number;
    for (cs_u64 other = 0; other < CS_OPS; other++) called(1, 100, 20 + other, 20 + other);
    CHECK_IS(cs_match.ops.size, 2 * CS_OPS);
    for (cs_u32 i = 0; i < CS_OPS; i++)
        *cs_correlated(NUMBER + i) = (struct cs_correlated){NUMBER + i, (cs_u32)(id + 1 + i)};
    *cs_correlated(NUMBER + 2 * CS_OPS) =
        (struct cs_correlated){NUMBER + 2 * CS_OPS, (cs_u32)(id + 1)};
    cs_ops_rest(false, now);
    cs_ops_rest(true, now + 2 * second);
    cs_ops_rest(false, now + 3 * second);
    cs_ops_rest(false, now + 4 * second);
    CHECK(cs_match.ops.size == 2 * CS_OPS && cs_op_get(id));
    cs_ops_rest(false, now + 4 * second + 1);
    CHECK(cs_match.ops.size == CS_OPS && !cs_op_get(id));
    for (cs_u64 other = id + 1; other <= cs_match.ops.newest; other++)
        CHECK_IS(cs_op_get(other)->id, other);
    for (cs_u32 i = 1; i < CS_OPS; i++) CHECK_IS(cs_op_of(NUMBER + i)->id, id + 1 + i);
    CHECK(cs_op_of(NUMBER + 2 * CS_OPS)->id == id + 1);
    called(1, 100, 30 + CS_OPS, 30 + CS_OPS);
    CHECK(cs_match.ops.size == CS_OPS && !cs_op_get(id + 1) && cs_op_get(id + 2));
}

TEST(a_depth_forgets_calls_with_the_ring)
{
    begin();
    call(10, 11);
    call(20, 21);
    struct cs_op *third = call(30, 31), *fourth = call(40, 41), *last = call(50, 51);
    come(third, 60); /* all five were counted, and the first two left with it */
    CHECK_IS(lane.depth, 2);
    told_count = 0;
    cs_match.ops.newest = fourth->id + CS_OPS; /* another has its place */
    CHECK(!cs_op_get(lane.first));
    come(last, 70);
    CHECK_IS(told_count, 1);
    CHECK_IS(lane.depth, 0);
    CHECK(!lane.first);
}

TEST(calls_behind_forgotten_ones_stay_counted)
{
    begin();
    struct cs_op *first = call(10, 11), *second = call(20, 21), *third = call(30, 31),
                 *fourth = call(40, 41);
    come(first, 50);
    CHECK_IS(lane.depth, 3);
    second->id = 0;
    come(third, 60);
    CHECK(lane.first == fourth->id);
    CHECK_IS(lane.depth, 1);
}
