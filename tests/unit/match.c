/* Which call a profiler's number means (match/op.h), the queue of a stream (match/queue.c), and
 * another client's clock (gpu/share_record.h). */
#include "tests/unit/match.h"

#include <sys/mman.h>

#include "shim/base/clock.h"
#include "shim/gpu/backend.h"
#include "shim/gpu/share_record.h"

TEST(a_call_is_found_by_its_thread_and_time)
{
    REQUIRE(begin_plain());
    struct cs_op *a = called(1, 100, 10, 20), *b = called(2, 200, 10, 20),
                 *c = called(1, 100, 30, 40);
    CHECK_IS(profiler_told(100, 7, 12, 18), CS_OP_FOUND);
    CHECK_IS(profiler_told(200, 8, 12, 18), CS_OP_FOUND);
    CHECK_IS(profiler_told(100, 9, 31, 39), CS_OP_FOUND);
    CHECK(
        cs_op_of(7) == a && cs_op_of(8) == b && cs_op_of(9) == c && !cs_op_of(10) && !cs_op_of(0));
    CHECK_IS(profiler_told(100, 11, 22, 28), CS_OP_NONE);
    CHECK_IS(profiler_told(100, 12, 50, 60), CS_OP_LATER);
    CHECK_IS(profiler_told(300, 13, 12, 18), CS_OP_LATER);
    called(50, 500, 10, 20);
    CHECK_IS(profiler_told(40, 14, 12, 18), CS_OP_LATER); /* no thread has that number */
    CHECK_IS(profiler_told(60, 15, 12, 18), CS_OP_LATER);
    CHECK_IS(profiler_told(50, 16, 12, 18), CS_OP_FOUND); /* the kernel's number does as well */
}

TEST(a_depth_never_goes_below_nothing)
{
    REQUIRE(begin_plain());
    struct cs_match_lane lane = {.depth = 3};
    cs_count_depth(&lane, 1, 1);
    CHECK_IS(lane.depth, 4);
    cs_count_depth(&lane, 2, -2);
    CHECK_IS(lane.depth, 2);
    cs_count_depth(&lane, 3, -5);
    CHECK_IS(lane.depth, 0);
}

TEST(calls_that_are_told_out_of_order)
{
    REQUIRE(begin_plain());
    struct cs_op *ops[10];
    for (cs_u32 i = 0; i < 10; i++) ops[i] = called(1, 100, 100 * i + 1, 100 * i + 50);
    for (cs_u32 i = 10; i-- > 0;)
        CHECK_IS(profiler_told(100, 1000 + i, 100 * i + 5, 100 * i + 45), CS_OP_FOUND);
    for (cs_u32 i = 0; i < 10; i++) CHECK(cs_op_of(1000 + i) == ops[i]);
}

/* Of a time when nothing was recorded: they have no op, and come before those that have. */
TEST(calls_that_are_none_of_ours_come_first)
{
    enum { CALLS = 20000, GAP = 100 * CALLS / 2 };
    REQUIRE(begin_plain());
    for (cs_u32 i = 0; i < CALLS; i++)
        called(
            1, 100, 100 * i + (i < CALLS / 2 ? 1 : GAP), 100 * i + (i < CALLS / 2 ? 50 : GAP + 50));
    for (cs_u32 i = 0; i < 1000; i++)
        CHECK_IS(profiler_told(100, 50000 + i, GAP + 1000 + i, GAP + 1000 + i), CS_OP_NONE);
    for (cs_u32 i = 0; i < CALLS / 2; i++)
        CHECK_IS(profiler_told(100, 1 + i, 100 * i + 5, 100 * i + 45), CS_OP_FOUND);
    for (cs_u32 i = 0; i < 1000; i++)
        CHECK_IS(profiler_told(100, 60000 + i, GAP + 3000 + i, GAP + 3000 + i), CS_OP_NONE);
    for (cs_u32 i = CALLS / 2; i < CALLS; i++)
        CHECK_IS(profiler_told(100, 1 + i, 100 * i + GAP + 5, 100 * i + GAP + 45), CS_OP_FOUND);
}

/* A call that failed, or that was told of twice, has no op. To look from there on at each later
 * call would take minutes: the alarm ends the test. */
TEST(one_call_without_an_op_slows_nothing)
{
    enum { CALLS = 1 << 20 };
    REQUIRE(begin_plain());
    called(1, 100, 1, 50);
    called(1, 100, 101, 150);
    CHECK_IS(profiler_told(100, 1, 60, 90), CS_OP_NONE);
    for (cs_u32 i = 2; i < CALLS; i++) {
        called(1, 100, 100ull * i + 1, 100ull * i + 50);
        REQUIRE(profiler_told(100, i, 100ull * i + 5, 100ull * i + 45) == CS_OP_FOUND);
    }
}

TEST(threads_that_share_a_key)
{
    REQUIRE(begin_plain());
    struct cs_op *first = called(1, 100, 10, 20), *second = called(2, 100, 30, 40);
    CHECK_IS(profiler_told(100, 1, 32, 38), CS_OP_FOUND);
    CHECK_IS(profiler_told(100, 2, 12, 18), CS_OP_FOUND);
    CHECK(cs_op_of(1) == second && cs_op_of(2) == first);
    CHECK_IS(profiler_told(2, 3, 33, 37),
        CS_OP_FOUND); /* the kernel's number, which a client may have asked for */
    CHECK(cs_op_of(3) == second);
}

/* --- streams at work, while something is awaited from before --- */

static cs_u64 edges_told;
static cs_u32 at_work;
static void load(cs_u32 device, cs_u64 ns, const struct cs_load *load)
{
    (void)device, (void)ns, edges_told++, at_work = load->works;
}

/* So far apart that what is close together is not enough: the alarm ends a test that never makes
 * room. */
TEST(work_beside_a_long_kernel_is_joined_until_there_is_room)
{
    enum { PIECES = 2 * CS_EDGES, APART = 1000000 };
    static const struct cs_gpu_work kernel = {.kind = CS_GPU_KERNEL};
    static const struct cs_match_sink sink = {.outside = inside,
        .open_since = ever_since,
        .without_times = missed,
        .missed = missed,
        .depth = depth,
        .load = load};
    struct cs_stream stream;
    REQUIRE(begin_told(&sink));
    struct cs_match_lane *lane = lane_of(&stream, 5);
    enqueue(lane, called(1, 1, 1000, 1001));
    cs_count_load(&kernel, 0, 500, 2000);
    cs_count_settle(false);
    CHECK(edges_told == 1 && cs_match.busy.edge_count == 1); /* its end is behind the call */
    for (cs_u64 i = 1; i <= PIECES; i++) {
        cs_count_load(&kernel, 0, i * APART, i * APART + 500);
        REQUIRE(cs_match.busy.edge_count <= CS_EDGES);
    }
    CHECK_IS(edges_told, 1); /* what the kernel does beside them is not known */
    cs_count_settle(true);
    CHECK(edges_told > 1000 && at_work == 0);
}

static cs_u64 told_last, backwards;
static cs_u32 most_at_work;
static void load_in_order(cs_u32 device, cs_u64 ns, const struct cs_load *load)
{
    backwards += ns <= told_last;
    told_last = ns;
    if (load->works > most_at_work) most_at_work = load->works;
    (void)device, edges_told++, at_work = load->works;
}

/* Pieces of 6 ns, one every 10 ns, and those of another stream 5 ns later: told in the order of
 * their begin, or one stream after the other. */
static void count_two_streams(cs_u64 pieces, bool mixed)
{
    static const struct cs_gpu_work kernel = {.kind = CS_GPU_KERNEL};
    static const struct cs_match_sink sink = {.outside = inside,
        .open_since = ever_since,
        .without_times = missed,
        .missed = missed,
        .depth = depth,
        .load = load_in_order};
    REQUIRE(begin_told(&sink));
    for (cs_u64 i = 0; i < 2 * pieces; i++) {
        const cs_u64 n = mixed ? i : i < pieces ? 2 * i : 2 * (i - pieces) + 1;
        cs_count_load(&kernel, 0, 100 + 5 * n, 106 + 5 * n);
    }
    cs_count_settle(true);
    CHECK(!backwards && !at_work && most_at_work == 2);
    CHECK_IS(edges_told, 4 * pieces);
}

TEST(work_that_comes_in_order_is_counted_in_order) { count_two_streams(5000, true); }
TEST(work_that_comes_late_is_counted_in_order) { count_two_streams(5000, false); }

/* A thread was in it while another ended the capture; or the begin was not recorded, and what came
 * of the calls is known only by the end. */
TEST(calls_of_a_capture_make_no_work_whenever_they_are_read)
{
    REQUIRE(begin_plain() && cs_streams_init());
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    REQUIRE(stream);
    struct cs_match_lane *lane = cs_match_lane_of(stream);
    struct cs_op *captured = called(1, 1, 150, 151), *before = called(2, 2, 50, 51),
                 *behind = called(3, 3, 250, 251);
    enqueue(lane, before);
    enqueue(lane, captured);
    enqueue(lane, behind);
    cs_match_capture_ended(stream, 100, 200);
    CHECK_IS(cs_op_come(captured->id, NULL), CS_NONE);
    CHECK(cs_op_come(before->id, NULL) == CS_AWAITED && cs_op_come(behind->id, NULL) == CS_AWAITED);
    CHECK(lane->first == before->id && before->after == behind->id && lane->last == behind->id);
    CHECK(cs_captures(stream, 160) && !cs_captures(stream, 99) && !cs_captures(stream, 200));
}

/* --- a backend that has more than there is room for --- */

static cs_u64 works_left, calls_left; /* that it has */
static cs_u64 stray_at; /* how many works it has left when one comes of whose call nothing is known;
                           0: none does */
static cs_u64 strays_given;

static void nothing(bool all) { (void)all; }
static void more(const struct cs_gpu_sink *to)
{
    while ((works_left || calls_left) && to->has_room()) {
        for (int i = 0; i < CS_GPU_AT_ONCE && works_left; i++, works_left--)
            to->work(&(struct cs_gpu_work){.kind = CS_GPU_KERNEL,
                .start = cs_ticks(),
                .end = cs_ticks(),
                .stream = 1,
                .correlation = works_left == stray_at ? 99 : 1});
        for (int i = 0; i < CS_GPU_AT_ONCE && calls_left; i++, calls_left--)
            to->call(&(struct cs_gpu_call){1000, 1001, 7, 5});
    }
}
static void (*drains)(const struct cs_gpu_sink *) = more;
static void drain(const struct cs_gpu_sink *to) { drains(to); }
const struct cs_gpu_backend cs_gpu_none = {.name = "test", .flush = nothing, .drain = drain};

static bool given(struct cs_match_found *found)
{
    strays_given += found->work->correlation == 99;
    return false;
}
static bool open_now(void) { return false; }

/* Its works are of one call, which is known, but for the strays. */
static bool begin_with(cs_u64 works, cs_u64 calls, cs_u64 stray)
{
    static const struct cs_match_sink sink = {.outside = inside,
        .closed = open_now,
        .open_since = ever_since,
        .without_times = missed,
        .work = given};
    works_left = works, calls_left = calls, stray_at = stray;
    cs_clock_init();
    if (!begin_told(&sink)) return false;
    called(1, 100, 10, 20);
    return profiler_told(100, 1, 12, 18) == CS_OP_FOUND;
}

static void round_at(cs_u64 flushes)
{
    cs_match.now = (struct cs_since){flushes, 0};
    cs_held_collect();
}

/* What there is no room for is no reason to give away what waits, as long as room is found each
 * time: its call may be in what comes next. */
TEST(who_gets_on_has_patience)
{
    REQUIRE(begin_with(20 * CS_GPU_AT_ONCE, 0, 10 * CS_GPU_AT_ONCE));
    round_at(0);
    CHECK(cs_match_behind());
    cs_match_round();
    round_at(100);
    CHECK(cs_match_behind() && works_left < stray_at);
    CHECK_IS(strays_given, 0);
    cs_match_round();
    CHECK_IS(strays_given, 0);
    round_at(101);
    round_at(107); /* no room since, and so long */
    CHECK_IS(strays_given, 1);
}

/* At the end of a process no flush ends any more, and the writer goes on until all has been taken
 * over. */
static void all_is_taken(void)
{
    int rounds = 0;
    do {
        cs_match_collect();
        cs_match_round();
        if (cs_match_behind()) cs_gpu_flushes_pass();
    } while (cs_match_behind() && ++rounds < 50);
    CHECK(rounds < 50);
    CHECK(!works_left && !calls_left);
    cs_match_end();
}

TEST(who_has_taken_all_is_not_behind)
{
    REQUIRE(begin_with(CS_GPU_AT_ONCE, 0, 0));
    round_at(0);
    CHECK(!works_left && !cs_match_behind());
}

TEST(work_without_a_call_does_not_stop_the_end)
{
    REQUIRE(begin_with(12 * CS_GPU_AT_ONCE, 0, 12 * CS_GPU_AT_ONCE));
    all_is_taken();
    CHECK_IS(strays_given, 1);
}

TEST(calls_without_a_record_do_not_stop_the_end)
{
    REQUIRE(begin_with(0, 12 * CS_GPU_AT_ONCE, 0));
    all_is_taken();
}

/* As a backend that minds no room: what waits for its call is given away then, in its turn. */
static void more_than_room(const struct cs_gpu_sink *to)
{
    const cs_u64 now = cs_ticks(); /* on a busy machine the loop takes longer than the second by
                                      which times may be ahead */
    for (int i = 0; i <= CS_HELD_WORKS; i++)
        to->work(&(struct cs_gpu_work){
            .kind = CS_GPU_KERNEL, .start = now, .end = now, .stream = 1, .correlation = 99});
}

TEST(a_full_table_is_given_away)
{
    REQUIRE(begin_with(0, 0, 0));
    drains = more_than_room;
    round_at(0);
    CHECK_IS(strays_given, CS_HELD_WORKS);
    CHECK_IS(cs_match.held.work_count, 1);
}

static int of_strangers;
static void some(const struct cs_gpu_sink *to)
{
    for (; of_strangers; of_strangers--)
        to->work(&(struct cs_gpu_work){.kind = CS_GPU_KERNEL,
            .start = cs_ticks(),
            .end = cs_ticks(),
            .stream = 1,
            .correlation = 99});
}
static bool asks_for_calls_after(int pieces)
{
    static cs_u64 flushes;
    of_strangers = pieces;
    round_at(flushes += 10);
    round_at(flushes += 10); /* the calls have had their time */
    cs_match_round();
    return cs_gpu_calls_missing(false);
}

TEST(eight_pieces_of_work_in_a_row_without_calls_have_the_backend_asked_for_them)
{
    REQUIRE(begin_with(0, 0, 0));
    drains = some;
    CHECK(!asks_for_calls_after(7));
    CHECK(asks_for_calls_after(1));
    CHECK(!asks_for_calls_after(7)); /* it counts from none again */
    CHECK(asks_for_calls_after(9));
}

/* Unfinished when it was taken, and nothing tells of which call. */
static int untimed;
static void without_times(int by) { untimed += by; }
static void one_without_times(const struct cs_gpu_sink *to)
{
    to->work(&(struct cs_gpu_work){.kind = CS_GPU_KERNEL, .start = cs_ticks(), .stream = 1});
}

TEST(work_without_times_or_a_call_is_counted_at_once)
{
    static const struct cs_match_sink sink = {.outside = inside,
        .closed = open_now,
        .open_since = ever_since,
        .without_times = without_times};
    cs_clock_init();
    REQUIRE(begin_told(&sink));
    drains = one_without_times;
    cs_held_collect();
    CHECK_IS(untimed, 1);
    CHECK_IS(cs_match.held.work_count, 0);
}

TEST(work_in_order_takes_two_tables_of_places)
{
    REQUIRE(begin_with(0, 0, 0));
    const size_t n = CS_HELD_WORKS / 2;
    for (cs_u32 i = 0; i < n; i++)
        cs_held_put(&(struct cs_gpu_work){
            .kind = CS_GPU_KERNEL, .start = 1 + n - i, .end = 1 + n - i, .stream = 1});
    REQUIRE(cs_held_choose(true) == n);
    for (size_t i = 0; i < n; i++) REQUIRE(cs_held_nth(i)->work.start == i + 2);
    const struct cs_held_place *const places[] = {cs_match.table.came, cs_match.table.chosen};
    const void *const *tables = (const void *const *)&cs_match.table;
    for (size_t i = 0; i < sizeof cs_match.table / sizeof *tables; i++)
        for (int k = 0; k < 2; k++)
            CHECK(tables[i] <= (const void *)places[k] ||
                  tables[i] >=
                      (const void *)(places[k] + CS_HELD_WORKS)); /* and no other lies in them */
}

/* Before that moment it is not certain whether anything was recorded. */
static cs_u64 edge;
static enum cs_outside at_the_edge(cs_u64 ticks)
{
    return ticks < edge ? CS_MAY_BE_OUTSIDE : CS_INSIDE;
}

static void at_and_behind_the_edge(const struct cs_gpu_sink *to)
{
    to->work(&(struct cs_gpu_work){
        .kind = CS_GPU_KERNEL, .start = edge - 1, .end = edge - 1, .stream = 1, .correlation = 99});
    to->work(&(struct cs_gpu_work){
        .kind = CS_GPU_KERNEL, .start = edge, .end = edge, .stream = 1, .correlation = 1});
    drains = more;
}

static cs_u64 shown;
static bool shows(struct cs_match_found *found) { return shown++, (void)found, false; }

static cs_u64 shown_at(cs_u64 flushes, cs_u64 ns)
{
    cs_match.now = (struct cs_since){flushes, ns};
    cs_held_collect();
    cs_match_round();
    return shown;
}

/* Longer than elsewhere, and not for good: what comes behind it on its stream waits for it. */
TEST(work_at_the_edge_of_a_window_waits_half_a_second_for_its_call)
{
    static const struct cs_match_sink sink = {.outside = at_the_edge,
        .closed = open_now,
        .open_since = ever_since,
        .without_times = missed,
        .work = shows};
    cs_clock_init();
    edge = cs_ticks();
    REQUIRE(begin_told(&sink));
    called(1, 100, 10, 20);
    REQUIRE(profiler_told(100, 1, 12, 18) == CS_OP_FOUND);
    drains = at_and_behind_the_edge;
    CHECK_IS(shown_at(0, 0), 0);
    CHECK_IS(shown_at(2, 0), 0);
    CHECK_IS(shown_at(100, 499999999), 0);
    CHECK_IS(
        shown_at(100, 500000000), 1); /* the one at the edge was of a call that was not recorded */
    CHECK_IS(cs_match.held.work_count, 0);
}

static cs_u64 of_call;
static void one_work(const struct cs_gpu_sink *to)
{
    to->work(&(struct cs_gpu_work){.kind = CS_GPU_KERNEL,
        .start = edge,
        .end = edge,
        .stream = 1,
        .correlation = (cs_u32)of_call});
    drains = more;
}

/* In between, what waits is not looked at: it waits on. */
TEST(work_waits_until_its_call_is_told_of_or_two_flushes_are_over)
{
    static const struct cs_match_sink sink = {.outside = at_the_edge,
        .closed = open_now,
        .open_since = ever_since,
        .without_times = missed,
        .work = shows};
    cs_clock_init();
    edge = cs_ticks();
    REQUIRE(begin_told(&sink));
    called(1, 100, 10, 20);
    drains = one_work, of_call = 1;
    for (int i = 0; i < 3; i++) CHECK_IS(shown_at(1, (cs_u64)i), 0);
    REQUIRE(profiler_told(100, 1, 12, 18) == CS_OP_FOUND);
    CHECK_IS(shown_at(1, 5), 1);
    CHECK_IS(cs_match.held.work_count, 0);
    drains = one_work, of_call = 2; /* of which nobody tells */
    for (cs_u64 flushes = 1; flushes <= 3; flushes++) CHECK_IS(shown_at(flushes, 6), 1);
    CHECK_IS(cs_match.held.work_count, 1);
    drains = one_work, of_call = 1; /* another, behind it on its stream */
    CHECK_IS(shown_at(3, 7), 1);
    CHECK_IS(shown_at(4, 8), 3);
    CHECK_IS(cs_match.held.work_count, 0);
}

/* Of a time when nothing was recorded, for sure: no op will come. */
static enum cs_outside outside(cs_u64 ticks) { return (void)ticks, CS_OUTSIDE; }
static void one_call(const struct cs_gpu_sink *to)
{
    to->call(&(struct cs_gpu_call){1000, 1001, 7, 5});
}

TEST(a_call_from_outside_is_known_as_such_at_once)
{
    static const struct cs_match_sink sink = {
        .outside = outside, .closed = open_now, .open_since = ever_since, .without_times = missed};
    REQUIRE(begin_told(&sink));
    drains = one_call;
    cs_held_collect();
    CHECK(cs_op_is_outside(5) && !cs_op_is_outside(6) && !cs_match.held.call_count);
}

TEST(patience_is_counted_in_flushes)
{
    const struct cs_since since = {10, 0};
    cs_match.now = (struct cs_since){12, 0};
    CHECK(cs_is_over(&since, CS_FOR_RECORD) && !cs_is_over(&since, CS_FOR_CALL));
    cs_match.now.flushes = 13;
    CHECK(cs_is_over(&since, CS_FOR_CALL) && !cs_is_over(&since, CS_FOR_EDGE));
    cs_match.now.ns = 500000000;
    CHECK(cs_is_over(&since, CS_FOR_EDGE));
    cs_match.now.ns++;
    CHECK(cs_is_over(&since, CS_FOR_EDGE));
    cs_match.now.flushes = 15;
    CHECK(!cs_is_over(&since, CS_FOR_ROOM));
    cs_match.now.flushes = 16;
    CHECK(cs_is_over(&since, CS_FOR_ROOM));
}

static cs_u64 CUPTIAPI own_ticks(void) { return cs_ticks(); }
static cs_u64 CUPTIAPI half_speed(void) { return 5000000000000u + cs_ticks() / 2; }

TEST(times_in_a_clients_clock)
{
    struct cs_scale scale;
    CUpti_ActivityMemset4 set = {.kind = CUPTI_ACTIVITY_KIND_MEMSET};
    cs_clock_init();
    cs_scale_begin(&scale, own_ticks);
    CHECK(scale.same);
    set.start = cs_ticks(), set.end = 0;
    cs_u64 start = set.start;
    cs_shared_convert((CUpti_Activity *)&set, &scale);
    CHECK_IS(set.start, start);
    CHECK_IS(cs_shared_begin((CUpti_Activity *)&set), start);

    cs_scale_begin(&scale, half_speed);
    CHECK(!scale.same);
    for (cs_u64 until = cs_ticks() + 50000000; cs_ticks() < until;) {}
    cs_scale_extend(&scale);
    set.start = start = cs_ticks();
    cs_shared_convert((CUpti_Activity *)&set, &scale);
    cs_i64 off = (cs_i64)(set.start - (5000000000000u + start / 2));
    CHECK(off < 1000000 && off > -1000000);
    CHECK_IS(set.end, 0); /* what has no time gets none */
    CUpti_Activity none = {.kind = CUPTI_ACTIVITY_KIND_NAME};
    CHECK_IS(cs_shared_begin(&none), 0);
}

/* What a capture costs does not depend on what else was called: the pages of those calls may not
 * even be read. */
TEST(a_capture_reads_its_own_calls_alone)
{
    enum { CAPTURED = 100, PAGE = 4096 };
    REQUIRE(begin_plain() && cs_streams_init());
    struct cs_stream *stream = cs_pool_new(&cs_streams), *other = cs_pool_new(&cs_streams);
    REQUIRE(stream && other);
    struct cs_node_call *calls = cs_match.table.node_calls;
    struct cs_match_lane *lane = cs_match_lane_of(stream);
    for (cs_u64 i = 0; i < CS_NODE_CALLS; i++) {
        bool captured = i >= CS_NODE_CALLS - CAPTURED;
        calls[cs_match.graphs.calls++] = (struct cs_node_call){.begin = 1000 + 2 * i,
            .end = 1001 + 2 * i,
            .kind = CS_KIND_LAUNCH,
            .stream = cs_load(&(captured ? stream : other)->object.ref),
            .before = captured ? lane->node_calls : 0};
        if (captured) lane->node_calls = i + 1;
    }
    const cs_u64 began = 1000 + 2 * (CS_NODE_CALLS - CAPTURED), ended = 1000 + 2 * CS_NODE_CALLS;
    REQUIRE(!mprotect(calls, (CS_NODE_CALLS - CAPTURED) * sizeof *calls / PAGE * PAGE, PROT_NONE));
    cs_match_capture_began(stream, began);
    cs_match_capture_ended(stream, began, ended);
    cs_match_graph_captured(stream, began, ended, 5, CAPTURED);
    CHECK(cs_match.table.lists[1].serial == 1 && cs_match.table.lists[1].stands);
    REQUIRE(!mprotect(calls, CS_NODE_CALLS * sizeof *calls, PROT_READ | PROT_WRITE));
}
