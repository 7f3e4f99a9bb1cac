/* What is under way on a GPU at once (match/count.c), and the rounds that find it (match/match.c).
 */
#include "shim/base/clock.h"
#include "tests/unit/match.h"

static struct told {
    cs_u32 device;
    cs_u64 ns;
    struct cs_load load;
} told[64];
static int told_count;
static void load_told(cs_u32 device, cs_u64 ns, const struct cs_load *load)
{
    told[told_count++ % 64] = (struct told){device, ns, *load};
}

static bool is_shown = true;
static int shown;
static struct cs_match_lane *shown_on;
static bool shows(struct cs_match_found *found)
{
    return shown++, shown_on = found->lane, found->pid = 2, found->tid = 14, is_shown;
}
static bool is_closed;
static bool closed(void) { return is_closed; }
static int untimed;
static void without_times(int by) { untimed += by; }

static void begin(void)
{
    static const struct cs_match_sink sink = {.outside = inside,
        .closed = closed,
        .open_since = ever_since,
        .missed = missed,
        .depth = depth,
        .load = load_told,
        .work = shows,
        .without_times = without_times};
    cs_clock_init();
    REQUIRE(begin_told(&sink));
}

static const struct cs_gpu_work kernel = {.kind = CS_GPU_KERNEL}, set = {.kind = CS_GPU_SET},
                                graph = {.kind = CS_GPU_GRAPH};

#define CHECK_TOLD(nth, device_, ns_, works_, kernels_) \
    do { \
        CHECK(told_count > (nth)); \
        CHECK_IS(told[nth].device, device_); \
        CHECK_IS(told[nth].ns, ns_); \
        CHECK_IS(told[nth].load.works, works_); \
        CHECK_IS(told[nth].load.kernels, kernels_); \
    } while (0)

TEST(each_step_of_a_gpu_is_told_in_its_turn)
{
    begin();
    cs_count_load(&kernel, 1, 300, 400);
    cs_count_load(&kernel, 0, 100, 350);
    cs_count_load(&set, 0, 200, 250); /* no kernel */
    cs_count_load(&graph, 0, 200, 300);
    cs_count_load(&kernel, CS_GPU_PIDS, 100, 200); /* more GPUs than are counted */
    cs_count_settle(false);
    CHECK_IS(told_count, 7);
    CHECK_TOLD(0, 0, 100, 1, 1);
    CHECK_TOLD(1, 0, 200, 3, 2);
    CHECK_TOLD(2, 0, 250, 2, 2);
    CHECK_TOLD(3, 0, 300, 1, 1);
    CHECK_TOLD(4, 1, 300, 1, 1);
    CHECK_TOLD(5, 0, 350, 0, 0);
    CHECK_TOLD(6, 1, 400, 0, 0);
    CHECK_IS(cs_match.busy.edge_count, 0);
}

TEST(work_that_follows_at_once_is_no_step)
{
    begin();
    cs_count_load(&kernel, 0, 100, 200);
    cs_count_load(&kernel, 0, 200, 300);
    cs_count_settle(true);
    CHECK_IS(told_count, 2);
    CHECK_TOLD(0, 0, 100, 1, 1);
    CHECK_TOLD(1, 0, 300, 0, 0);
}

TEST(bytes_in_flight_are_counted_by_the_way_of_the_copy)
{
    static const unsigned char ways[] = {CS_LOAD_DTOD, CS_LOAD_HTOD, CS_LOAD_DTOH, CS_LOAD_HTOD,
        CS_LOAD_DTOH, CS_LOAD_DTOD, CS_LOAD_DTOD, CS_LOAD_DTOD, CS_LOAD_DTOD, CS_LOAD_DTOD,
        CS_LOAD_PTOP, CS_LOAD_DTOD};
    begin();
    for (unsigned char direction = 0; direction < sizeof ways; direction++) {
        for (int peer = 0; peer < 2; peer++) {
            const struct cs_gpu_work copy = {
                .kind = CS_GPU_COPY, .copy = {.bytes = 4096, .direction = direction, .peer = peer}};
            told_count = 0;
            cs_count_load(&copy, 0, 100, 200);
            cs_count_settle(true);
            CHECK_IS(told_count, 2);
            CHECK_TOLD(0, 0, 100, 1, 0);
            for (int way = 0; way < CS_LOAD_WAYS; way++)
                CHECK_IS(told[0].load.bytes[way],
                    way == (peer ? CS_LOAD_PTOP : ways[direction]) ? 4096 : 0);
            for (int way = 0; way < CS_LOAD_WAYS; way++) CHECK_IS(told[1].load.bytes[way], 0);
        }
    }
}

/* A stream with work under way may still bring some that began then: no step behind that is told.
 */
TEST(steps_wait_for_streams_at_work)
{
    struct cs_stream stream;
    begin();
    struct cs_match_lane *lane = lane_of(&stream, 1);
    struct cs_op *op = called(1, 1, 150, 160);
    enqueue(lane, op);
    for (cs_u64 i = 0; i < 3; i++) cs_count_load(&kernel, 0, 100 + 50 * i, 120 + 50 * i);
    cs_count_settle(false);
    CHECK_IS(told_count, 2);    /* at 100 and 120; those from 150 on wait */
    lane->work.filled[0] = 151; /* it has shown some until then */
    cs_count_settle(false);
    CHECK_IS(told_count, 3);
    lane->work.filled[0] = 149;
    cs_count_settle(false);
    CHECK_IS(told_count, 3);
    op->id = 0; /* forgotten, so long ago it is */
    lane->work.filled[0] = 171;
    cs_count_settle(false);
    CHECK_IS(told_count, 4);
    lane->first = 0; /* all has come */
    cs_count_settle(false);
    CHECK_IS(told_count, 6);
    CHECK_TOLD(5, 0, 220, 0, 0);
}

enum { CELL = 200000, CELLS = 12000 }; /* of the counter */
static unsigned char most_of_cell[CELLS];
static cs_u64 last_ns, backwards;
static cs_u32 most_works, works_left;
static void load_of_cells(cs_u32 device, cs_u64 ns, const struct cs_load *load)
{
    backwards += ns <= last_ns;
    last_ns = ns, works_left = load->works;
    if (load->works > most_works) most_works = load->works;
    if (ns / CELL < CELLS && load->kernels > most_of_cell[ns / CELL])
        most_of_cell[ns / CELL] = (unsigned char)load->kernels;
    (void)device;
}

/* Pieces with pauses between them: beside the long one none may be missed, though there are more
 * edges than there is room for. */
TEST(work_that_is_joined_keeps_the_most_of_each_cell)
{
    enum { APART = 3 * CELL / 10 };
    static const struct cs_match_sink sink = {.outside = inside,
        .open_since = ever_since,
        .missed = missed,
        .depth = depth,
        .load = load_of_cells};
    struct cs_stream stream;
    REQUIRE(begin_told(&sink));
    cs_queue_add(lane_of(&stream, 5), called(1, 1, 1000, 1001));
    cs_count_load(&kernel, 0, 500, (cs_u64)CELLS * CELL);
    for (cs_u64 ns = APART; ns + 600 < (cs_u64)CELLS * CELL; ns += APART) {
        cs_count_load(&kernel, 0, ns, ns + 500);
        cs_count_load(&set, 0, ns + 100, ns + 600);
    }
    CHECK(cs_match.busy.grain && cs_match.busy.grain <= CELL);
    cs_count_settle(true);
    CHECK(!backwards && !works_left && most_works == 3);
    for (int i = 0; i < CELLS; i++) CHECK_IS(most_of_cell[i], 2);
}

/* --- rounds --- */

static struct cs_op *op_of(cs_u32 correlation)
{
    struct cs_op *op = called(1, 100, 10, 20);
    REQUIRE(cs_op_called(&(struct cs_gpu_call){12, 18, 100, correlation}) == CS_OP_FOUND &&
            cs_op_of(correlation) == op);
    return op;
}

static void give(cs_u32 correlation, cs_u64 start, cs_u64 end)
{
    cs_held_put(&(struct cs_gpu_work){.kind = CS_GPU_KERNEL,
        .correlation = correlation,
        .start = start,
        .end = end,
        .stream = 1});
    cs_match_give(true);
}

TEST(a_call_knows_its_last_work)
{
    begin();
    cs_match_part(3);
    struct cs_op *op = op_of(1);
    const cs_u64 now = cs_ticks();
    give(1, now, now + 5000);
    CHECK(shown_on && shown_on->worked_ns == cs_clock_ns(now + 5000));
    CHECK(op->works == 1 && op->came && op->work_end_ns == cs_clock_ns(now + 5000) &&
          op->work_pid == 2 && op->work_tid == 14 && op->work_file == 3);
    cs_match_part(4);
    give(1, now, now + 4000);
    CHECK(op->works == 2 && op->work_end_ns == cs_clock_ns(now + 5000) && op->work_file == 3);
    give(1, now, now + 9000);
    CHECK(op->works == 3 && op->work_end_ns == cs_clock_ns(now + 9000) && op->work_file == 4);
    CHECK_IS(shown, 3);
}

TEST(work_that_is_not_shown_is_none_of_its_call)
{
    begin();
    struct cs_op *op = op_of(1);
    is_shown = false;
    give(1, 1000, 2000);
    CHECK(shown == 1 && !op->works && !cs_match.busy.edge_count);
    op->muted = true;
    give(1, 1000, 2000);
    CHECK_IS(shown, 1);
    give(1, 0, 2000); /* without times: it has come all the same */
    CHECK(untimed == 1 && op->came && !op->works);
}

TEST(the_work_of_a_range_is_that_of_its_last_call_too)
{
    struct cs_stream stream;
    begin();
    struct cs_match_lane *lane = lane_of(&stream, 1);
    struct cs_op *first = op_of(1), *last = called(1, 100, 30, 40);
    enqueue(lane, first), enqueue(lane, last);
    first->joined = last->id;
    give(1, cs_ticks(), cs_ticks() + 1000);
    CHECK(first->works == 1 && last->works == 1 && first->left && last->left && !lane->first);
}

TEST(a_stream_is_settled_when_its_work_has_come_or_will_not)
{
    struct cs_stream stream, none = {.lane = 99};
    begin();
    cs_store(&none.object.ref, 1u << CS_REF_INDEX_BITS | 99);
    CHECK(cs_match_settled(&none) && !cs_match_filled(&none));
    struct cs_match_lane *lane = lane_of(&stream, 1);
    CHECK(cs_match_settled(&stream));
    lane->over = false;
    enqueue(lane, called(1, 1, 10, 20));
    lane->work.filled[0] = 70;
    CHECK_IS(cs_match_filled(&stream), 70);
    cs_match.now.flushes = 4;
    CHECK(!cs_match_settled(&stream) && lane->over && lane->ended.flushes == 4);
    cs_match.now.flushes = 29;
    CHECK(!cs_match_settled(&stream) && lane->ended.flushes == 4);
    cs_match.now.flushes = 30;
    CHECK(cs_match_settled(&stream));
}

TEST(a_life_is_cut_where_no_work_crosses)
{
    struct cs_stream stream, none = {.lane = 99};
    bool awaited = true;
    begin();
    cs_store(&none.object.ref, 1u << CS_REF_INDEX_BITS | 99);
    CHECK(cs_match_cut(&none, 500, &awaited) == 500 && !awaited);
    struct cs_match_lane *lane = lane_of(&stream, 1);
    lane->work.filled[0] = 400;
    CHECK(cs_match_cut(&stream, 500, &awaited) == 500 && !awaited && lane->work.filled[0] == 500);
    CHECK(cs_match_cut(&stream, 300, &awaited) == 500 && !awaited && lane->work.filled[0] == 500);
    enqueue(lane, called(1, 1, 10, 20));
    CHECK(cs_match_cut(&stream, 900, &awaited) == 500 && awaited && lane->work.filled[0] == 500);
}
