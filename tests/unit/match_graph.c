/* Which stream a node of a captured graph was captured from (match/graph.c), as the graph's work is asked for it. */
#include "shim/gpu/backend.h"
#include "shim/object/graph.h"
#include "tests/unit/match.h"

static cs_u32 graphs; /* so far */
static cs_u64 now = 1000;

static bool open_now(void) { return false; }

static bool begin(void)
{
    static const struct cs_match_sink sink = {.outside = inside, .closed = open_now, .missed = missed, .depth = depth};
    return begin_told(&sink) && cs_streams_init();
}

static struct cs_stream *stream_new(void)
{
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    REQUIRE(stream);
    return stream;
}

/* As cs_match_graph_call keeps it; the test has no GPU. */
static void launch(struct cs_stream *stream, cs_name kernel)
{
    struct cs_match_lane *lane = cs_match_lane_of(stream);
    const cs_u64 begin = now += 10;
    cs_match.table.node_calls[cs_match.graphs.calls++] = (struct cs_node_call){
        .begin = begin, .end = begin + 5, .before = lane->node_calls,
        .stream = cs_load(&stream->object.ref), .kind = CS_KIND_LAUNCH, .kernel = kernel};
    lane->node_calls = cs_match.graphs.calls;
}

/* An executable graph of so many launches of the kernel; its number. */
static cs_u32 captured(struct cs_stream *stream, cs_name kernel, cs_u32 launches)
{
    const cs_u64 began = now += 10;
    cs_match_capture_began(stream, began);
    for (cs_u32 i = 0; i < launches; i++) launch(stream, kernel);
    cs_match_capture_ended(stream, began, now += 10);
    const cs_u32 graph = ++graphs, exec = 100 + graph;
    cs_match_graph_captured(stream, began, now, graph, launches);
    cs_match_graph_instantiated(graph, exec, launches);
    return exec;
}

static struct cs_stream *of_node(cs_u32 exec, cs_u32 index, cs_name kernel)
{
    const cs_u64 node = (cs_u64)exec << 32 | index;
    return cs_graph_stream(&(struct cs_gpu_work){.kind = CS_GPU_KERNEL, .start = now + 10, .end = now + 20, .kernel.name = kernel, .graph = exec, .node = node});
}

TEST(each_graph_has_nodes_of_its_own)
{
    REQUIRE(begin());
    struct cs_stream *a = stream_new(), *b = stream_new(), *c = stream_new();
    const cs_u32 of_a = captured(a, 7, 3), of_b = captured(b, 8, 2), of_c = captured(c, 7, 1);
    for (cs_u32 i = 0; i < 3; i++) CHECK(of_node(of_a, i, 7) == a);
    for (cs_u32 i = 0; i < 2; i++) CHECK(of_node(of_b, i, 8) == b);
    CHECK(of_node(of_c, 0, 7) == c);
    CHECK(!of_node(of_a, 3, 7) && !of_node(of_b, 0, 7) && !of_node(99, 0, 7)); /* no such node; another kernel; no such graph */
}

/* The program may destroy the stream at once: what the graph does later is not that stream's. */
TEST(a_node_runs_on_a_stream_only_while_that_lives)
{
    REQUIRE(begin());
    struct cs_stream *stream = stream_new();
    const cs_u32 exec = captured(stream, 7, 1);
    cs_store(&stream->ended, now + 20);
    CHECK(of_node(exec, 0, 7) == stream); /* it ends with it */
    cs_store(&stream->ended, now + 100);
    CHECK(of_node(exec, 0, 7) == stream);
    cs_store(&stream->ended, now + 19);
    CHECK(!of_node(exec, 0, 7));
}

/* A profiler that begins anew counts its graphs from the start: a number means another graph then, of which nothing is known yet. */
TEST(numbers_of_a_profiler_that_has_begun_anew_are_not_those_of_before)
{
    REQUIRE(begin());
    struct cs_stream *stream = stream_new();
    const cs_u32 exec = captured(stream, 7, 1);
    CHECK(of_node(exec, 0, 7) == stream);
    cs_add(&cs_graph_epoch, 1);
    cs_match_round();
    CHECK(!of_node(exec, 0, 7));
}
