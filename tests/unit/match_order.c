/* The place of a call in its stream's queue (match/queue.c), and whether its work has come. */
#include "tests/unit/match.h"

TEST(a_queue_is_in_the_order_of_the_calls)
{
    struct cs_match_lane lane = {.used = true};
    REQUIRE(begin_plain());
    struct cs_op *a = called(1, 1, 10, 11), *b = called(1, 1, 30, 31), *c = called(2, 2, 20, 21);
    cs_queue_add(&lane, a);
    cs_queue_add(&lane, b);
    cs_queue_add(&lane, c); /* read later, made earlier */
    CHECK(lane.first == a->id && lane.last == b->id && a->after == c->id && c->after == b->id &&
          b->before == c->id);
    bool known;
    CHECK(cs_op_before(lane.last, 25, &known) == c && known);
    struct cs_op *d = called(3, 3, 5, 6);
    cs_queue_add(&lane, d);
    CHECK(lane.first == d->id && !d->before);
    cs_queue_remove(&lane, 15, 25); /* the one in the middle */
    CHECK(c->left && a->after == b->id && b->before == a->id && lane.last == b->id);
    cs_queue_remove(&lane, 0, UINT64_MAX);
    CHECK(!lane.first && !lane.last && !lane.depth);
}

TEST(a_call_that_is_read_behind_4096_later_ones_finds_its_place)
{
    enum { LATER = 4096 };
    struct cs_match_lane lane = {.used = true};
    REQUIRE(begin_plain());
    for (cs_u64 i = 0; i < LATER; i++) cs_queue_add(&lane, called(1, 1, 100 + i, 100 + i));
    struct cs_op *early = called(2, 2, 10, 11);
    cs_queue_add(&lane, early);
    CHECK(lane.first == early->id && !early->before && early->after == early->id - LATER);
}

TEST(calls_that_are_read_late_are_counted)
{
    struct cs_match_lane lane = {.used = true};
    REQUIRE(begin_plain());
    struct cs_op *a = called(1, 1, 10, 11), *b = called(1, 1, 30, 31);
    cs_queue_add(&lane, a);
    cs_queue_add(&lane, b);
    a->works = 1;
    cs_queue_arrived(&lane, a, 40, 40); /* by its end both were in the queue */
    CHECK_IS(lane.depth, 1);
    CHECK(a->left && lane.first == b->id && lane.counted == b->id);
    struct cs_op *c = called(2, 2, 20, 35); /* made before b, perhaps run after it */
    cs_queue_add(&lane, c);
    CHECK_IS(lane.depth, 2);
    b->works = 1;
    cs_queue_arrived(&lane, b, 50, 50);
    CHECK_IS(lane.depth, 1);
    CHECK(!c->left && lane.first == c->id);
    c->works = 1;
    cs_queue_arrived(&lane, c, 60, 60);
    CHECK_IS(lane.depth, 0);
    CHECK(!lane.first);
}

/* Its work was counted until then, and goes on to be. */
TEST(a_call_that_was_captured_leaves_the_queue)
{
    struct cs_match_lane lane = {.used = true};
    REQUIRE(begin_plain());
    struct cs_op *a = called(1, 1, 10, 11), *b = called(1, 1, 20, 21), *c = called(1, 1, 30, 31);
    cs_queue_add(&lane, a);
    cs_queue_add(&lane, b);
    cs_queue_add(&lane, c);
    cs_queue_arrived(&lane, a, 15, 15);
    CHECK(lane.counted == a->id && lane.first == b->id);
    cs_queue_remove(&lane, 25, 35);
    CHECK(c->left && lane.last == b->id && lane.counted == a->id);
    b->works = 1;
    cs_queue_arrived(&lane, b, 40, 40);
    CHECK(!lane.first && b->counted && !lane.depth);
    cs_queue_arrived(NULL, a, 50, 50); /* of no stream */
}

/* Whether it has come, at a time when so many flushes have ended. */
static enum cs_come come(const struct cs_op *op, const struct cs_since *since, cs_u64 flushes)
{
    cs_match.now.flushes = flushes;
    return cs_op_come(op->id, since);
}

TEST(has_its_work_come)
{
    REQUIRE(begin_plain());
    struct cs_stream stream;
    struct cs_match_lane *lane = lane_of(&stream, 5);
    struct cs_op *nowhere = called(1, 1, 1, 2), *none = called(1, 1, 10, 11),
                 *here = called(1, 1, 20, 21), *out = called(1, 1, 30, 31);
    CHECK_IS(cs_lane_come(lane, NULL), CS_CAME);
    enqueue(lane, none);
    enqueue(lane, here);
    enqueue(lane, out);
    const struct cs_since since = {0, 0};
    CHECK_IS(come(nowhere, NULL, 0), CS_NONE);
    CHECK_IS(come(here, NULL, 1000), CS_AWAITED);
    here->works = 1;
    cs_queue_arrived(lane, here, 25, 25);
    CHECK_IS(come(none, &since, 0), CS_NONE); /* what stood before it made none */
    CHECK_IS(come(here, &since, 1000), CS_CAME);
    CHECK_IS(come(out, &since, 25), CS_AWAITED);
    CHECK_IS(cs_lane_come(lane, &since), CS_AWAITED);
    CHECK_IS(come(out, &since, 26), CS_LOST);
    CHECK_IS(cs_lane_come(lane, &since), CS_LOST);
    CHECK_IS(cs_op_come(out->id + 1, NULL), CS_LOST);
    cs_match_lane_free(&stream);
    CHECK_IS(come(out, NULL, 0), CS_NONE);
    CHECK(!cs_match_lane_made(&stream));
}
