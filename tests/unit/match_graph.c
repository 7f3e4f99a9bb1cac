/* Which stream a node of a captured graph was captured from (match/graph.c): the file itself, as
 * where there is a GPU. */
#include "shim/gpu/backend.h"

static bool gpu_is_on = true, gpu_marks;
#define cs_gpu_is_on() gpu_is_on
#define cs_gpu_marks() gpu_marks
#include "shim/match/graph.c"
#undef cs_gpu_is_on
#undef cs_gpu_marks

#include "tests/unit/match.h"

static cs_u32 graphs; /* so far */
static cs_u64 now = 1000;

static bool open_now(void) { return false; }

static bool begin(void)
{
    static const struct cs_match_sink sink = {.outside = inside,
        .closed = open_now,
        .open_since = ever_since,
        .without_times = missed,
        .missed = missed,
        .depth = depth};
    return begin_told(&sink) && cs_streams_init();
}

static struct cs_stream *stream_new(void)
{
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    REQUIRE(stream);
    return stream;
}

static cs_ref ref_of(const struct cs_stream *stream) { return cs_load(&stream->object.ref); }

/* Whether the call is kept. */
static bool called_at(
    struct cs_stream *stream, cs_u16 call, cs_u64 begin, cs_u64 end, const cs_u64 *values)
{
    const cs_u64 before = cs_match.graphs.calls;
    struct cs_record r = {
        .begin = begin, .end = end, .call = call, .stream = stream ? ref_of(stream) : 0};
    if (values) memcpy(r.value, values, 2 * sizeof *values);
    cs_match_graph_call(&r, stream);
    return cs_match.graphs.calls > before;
}
static void launch_at(struct cs_stream *stream, cs_name kernel, cs_u64 begin)
{
    CHECK(called_at(stream, CS_CALL_cuLaunchKernel, begin, begin + 5, (cs_u64[]){kernel, 0}));
}
static void launch(struct cs_stream *stream, cs_name kernel)
{
    launch_at(stream, kernel, now += 10);
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
    return cs_graph_stream(&(struct cs_gpu_work){.kind = CS_GPU_KERNEL,
        .start = now + 10,
        .end = now + 20,
        .kernel.name = kernel,
        .graph = exec,
        .node = node});
}

static cs_u64 forgotten(void) { return cs_no_room_count(CS_NO_ROOM_FOR_NODES); }

TEST(each_graph_has_nodes_of_its_own)
{
    REQUIRE(begin());
    struct cs_stream *a = stream_new(), *b = stream_new(), *c = stream_new();
    const cs_u32 of_a = captured(a, 7, 3), of_b = captured(b, 8, 2), of_c = captured(c, 7, 1);
    for (cs_u32 i = 0; i < 3; i++) CHECK(of_node(of_a, i, 7) == a);
    for (cs_u32 i = 0; i < 2; i++) CHECK(of_node(of_b, i, 8) == b);
    CHECK(of_node(of_c, 0, 7) == c);
    CHECK(!of_node(of_a, 3, 7) && !of_node(of_b, 0, 7) &&
          !of_node(99, 0, 7)); /* no such node; another kernel; no such graph */
    CHECK_IS(forgotten(), 0);
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

/* A profiler that begins anew counts its graphs from the start: a number means another graph then,
 * of which nothing is known yet. */
TEST(numbers_of_a_profiler_that_has_begun_anew_are_not_those_of_before)
{
    REQUIRE(begin());
    struct cs_stream *stream = stream_new();
    const cs_u32 exec = captured(stream, 7, 1);
    CHECK(of_node(exec, 0, 7) == stream);
    cs_add(&cs_graph_epoch, 1);
    CHECK(!of_node(exec, 0, 7));
    cs_add(&cs_graph_epoch, 1); /* and again: what is captured since is known */
    const cs_u32 next = captured(stream, NAME_OTHERS + 1, 1);
    CHECK(of_node(next, 0, NAME_OTHERS + 1) == stream);
    cs_add(&cs_graph_epoch, 1);
    cs_match_graph_instantiated(0, 300, 1); /* of a graph that nobody knows */
    CHECK(!of_node(300, 0, 7) && !of_node(300, 0, NAME_OTHERS + 1));
}

/* --- which calls make a node --- */

TEST(calls_that_make_a_node)
{
    static const struct {
        cs_u16 call;
        cs_u64 flags; /* the second value */
        bool makes;
    } rows[] = {
        {CS_CALL_cuLaunchKernel, 0, true},
        {CS_CALL_cuMemcpyHtoDAsync_v2, 0, true},
        {CS_CALL_cuMemsetD8Async, 0, true},
        {CS_CALL_cuLaunchHostFunc, 0, true},
        {CS_CALL_cuStreamWriteValue32_v2, 0, true},
        {CS_CALL_cuMemAllocAsync, 0, true},
        {CS_CALL_cuSignalExternalSemaphoresAsync, 0, true},
        {CS_CALL_cuGraphLaunch, 0, true},
        {CS_CALL_cuGraphInstantiateWithFlags, 0, false},
        {CS_CALL_cuStreamQuery, 0, false},
        {CS_CALL_cuStreamSynchronize, 0, false},
        {CS_CALL_cuStreamWaitEvent, 0, false},
        {CS_CALL_cuStreamWaitEvent, CU_EVENT_WAIT_EXTERNAL, true},
        {CS_CALL_cuStreamWaitEvent, 2, false},
        {CS_CALL_cuStreamWaitEvent_ptsz, 0, false},
        {CS_CALL_cuStreamWaitEvent_ptsz, CU_EVENT_WAIT_EXTERNAL, true},
        {CS_CALL_cuEventRecordWithFlags, 0, false},
        {CS_CALL_cuEventRecordWithFlags, CU_EVENT_RECORD_EXTERNAL, true},
        {CS_CALL_cuEventRecordWithFlags, 2, false},
        {CS_CALL_cuEventRecordWithFlags_ptsz, 0, false},
        {CS_CALL_cuEventRecordWithFlags_ptsz, CU_EVENT_RECORD_EXTERNAL, true},
        {CS_CALL_cuEventRecord, 1, false},
        {CS_CALL_cuEventSynchronize, 1, false},
    };
    REQUIRE(begin());
    struct cs_stream *stream = stream_new();
    for (size_t i = 0; i < CS_COUNT(rows); i++) {
        now += 10;
        if (called_at(stream, rows[i].call, now, now + 5, (cs_u64[]){7, rows[i].flags}) ==
            rows[i].makes)
            continue;
        fprintf(stderr, "%s with %llu\n", cs_call_info[rows[i].call].name,
            (unsigned long long)rows[i].flags);
        check_failures++;
    }
}

TEST(calls_are_kept_only_where_they_count)
{
    REQUIRE(begin());
    struct cs_stream *stream = stream_new();
    CHECK(!called_at(NULL, CS_CALL_cuLaunchKernel, 10, 15, NULL));
    struct cs_record failed = {.begin = 10,
        .end = 15,
        .call = CS_CALL_cuLaunchKernel,
        .stream = ref_of(stream),
        .result = CUDA_ERROR_INVALID_VALUE};
    cs_match_graph_call(&failed, stream);
    gpu_marks = true; /* events around the calls know nothing of nodes */
    CHECK(!called_at(stream, CS_CALL_cuLaunchKernel, 10, 15, NULL));
    gpu_marks = gpu_is_on = false;
    CHECK(!called_at(stream, CS_CALL_cuLaunchKernel, 10, 15, NULL));
    CHECK_IS(cs_match.graphs.calls, 0);
    gpu_is_on = true;
    CHECK(called_at(stream, CS_CALL_cuLaunchKernel, 10, 15, NULL));
}

/* --- lists --- */

static bool stands(cs_u64 serial)
{
    const struct cs_node_list *l = list_get(serial);
    REQUIRE(l);
    return l->stands;
}

/* Two streams in one capture: nodes are numbered by the time of their calls. */
TEST(nodes_are_in_the_order_of_their_calls_whatever_stream_they_are_on)
{
    enum { CALLS = 9 };
    static const cs_u64 order[2][CALLS] = {{5, 6, 7, 8}, {0, 4, 1, 3, 2}};
    static const int counts[] = {4, 5};
    REQUIRE(begin());
    struct cs_stream *streams[] = {stream_new(), stream_new()};
    const cs_u64 began = now += 10;
    cs_match_capture_began(streams[0], began);
    cs_match_capture_joined(
        streams[1], began + 1, (cs_u64[]){began + 1, (cs_u64)ref_of(streams[0]) << 32});
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < counts[k]; i++)
            launch_at(streams[k], 10 + (cs_name)order[k][i], began + 10 + 10 * order[k][i]);
    now = began + 1000;
    cs_match_capture_ended(streams[0], began, now);
    cs_match_graph_captured(streams[0], began, now, 1, CALLS);
    cs_match_graph_instantiated(1, 101, CALLS);
    for (cs_u32 i = 0; i < CALLS; i++) CHECK(of_node(101, i, 10 + i) == streams[i < 5]);
}

/* What was called before the capture, or after it, or on a stream before that joined, stands in no
 * list. */
TEST(a_list_has_the_calls_of_its_capture_alone)
{
    REQUIRE(begin());
    struct cs_stream *stream = stream_new(), *joined = stream_new();
    const cs_u64 began = 1000, ended = 2000;
    launch_at(stream, 7, began - 100);
    cs_match_capture_began(stream, began);
    launch_at(stream, 8, began);
    CHECK(called_at(stream, CS_CALL_cuLaunchKernel, began - 50, began + 50,
        (cs_u64[]){7, 0})); /* another thread's, which was under way */
    launch_at(joined, 7, began + 99);
    cs_match_capture_joined(
        joined, began + 100, (cs_u64[]){began + 60, (cs_u64)ref_of(stream) << 32});
    launch_at(joined, 9, began + 100);
    launch_at(joined, 10, ended - 10);
    launch_at(stream, 11, ended - 1);
    launch_at(stream, 7, ended);
    CHECK(called_at(stream, CS_CALL_cuLaunchKernel, began - 20, ended + 6, (cs_u64[]){7, 0}));
    cs_match_capture_ended(stream, began, ended);
    cs_match_graph_captured(stream, began, ended, 1, 4);
    cs_match_graph_instantiated(1, 101, 4);
    now = 5000;
    CHECK(of_node(101, 0, 8) == stream && of_node(101, 1, 9) == joined &&
          of_node(101, 2, 10) == joined && of_node(101, 3, 11) == stream);
    CHECK(!of_node(101, 4, 7));
}

/* Two threads launched at the same time: which node is whose is not known. */
TEST(a_list_with_calls_at_once_does_not_stand)
{
    REQUIRE(begin());
    struct cs_stream *stream = stream_new();
    for (cs_u32 i = 0; i < 2; i++) { /* the second begins when the first ends, or before */
        const cs_u64 began = now += 1000, ended = began + 500;
        cs_match_capture_began(stream, began);
        CHECK(called_at(stream, CS_CALL_cuLaunchKernel, began + 10, began + 20, NULL));
        CHECK(called_at(stream, CS_CALL_cuLaunchKernel, began + 20 - i, began + 30, NULL));
        cs_match_capture_ended(stream, began, ended);
        cs_match_graph_captured(stream, began, ended, i + 1, 2);
        CHECK_IS(stands(i + 1), !i);
    }
}

TEST(a_list_of_another_length_than_its_graph_does_not_stand)
{
    static const cs_u32 lengths[] = {2, 1, 0, CS_NODE_CALLS + 1, 1};
    REQUIRE(begin());
    struct cs_stream *stream = stream_new();
    const cs_u64 began = now += 10;
    cs_match_capture_began(stream, began);
    launch(stream, 7);
    cs_match_capture_ended(stream, began, began + 100);
    cs_match_graph_captured(stream, began, began + 100, 0, 1); /* nobody knows of which graph */
    CHECK_IS(cs_match.graphs.lists, 0);
    for (cs_u32 i = 0; i < CS_COUNT(lengths); i++) {
        cs_match_graph_captured(stream, began, began + 100, i + 1, lengths[i]);
        CHECK_IS(stands(i + 1), lengths[i] == 1);
    }
    CHECK(cs_match.graphs.lists == CS_COUNT(lengths) &&
          cs_match.graphs.nodes == 2); /* the others have no nodes */
    launch(stream, 7);                 /* behind the end: it changes nothing */
    CHECK(!stands(1) && stands(2));
}

TEST(a_graph_without_nodes_has_a_list)
{
    REQUIRE(begin());
    struct cs_stream *stream = stream_new();
    const cs_u32 exec = captured(stream, 7, 0);
    CHECK(stands(1) && !cs_match.graphs.nodes && !of_node(exec, 0, 7));
}

TEST(the_last_4096_lists_are_looked_at)
{
    REQUIRE(begin());
    struct cs_stream *stream = stream_new();
    const cs_u64 began = now += 10;
    cs_match_capture_began(stream, began);
    launch(stream, 7);
    cs_match_capture_ended(stream, began, began + 100);
    cs_match_graph_captured(stream, began, began + 100, 1000000, 2);
    for (cs_u32 i = 2; i <= CS_GRAPHS + 2; i++)
        cs_match_graph_captured(stream, began, began + 100, i, 1);
    CHECK(!list_get(2) && list_get(3) && !list_get(0));
    CHECK(!list_of_graph(2) && list_of_graph(3) == list_get(3) &&
          list_of_graph(CS_GRAPHS + 2) == list_get(CS_GRAPHS + 2) && !list_of_graph(1000000));
    CHECK(stands(3) && stands(CS_GRAPHS + 2));
}

/* --- executable graphs --- */

TEST(an_executable_graph_has_the_nodes_of_its_graph_as_long_as_it_is_not_changed)
{
    REQUIRE(begin());
    struct cs_stream *stream = stream_new();
    const cs_u32 first = captured(stream, 7, 2), graph = graphs;
    cs_match_graph_instantiated(graph, 201, 2); /* a second one */
    cs_match_graph_instantiated(graph, 202, 3); /* something was added to the graph by hand */
    cs_match_graph_instantiated(999, 203, 2);   /* of a graph that was not captured */
    cs_match_graph_instantiated(graph, 0, 2);
    CHECK(of_node(first, 1, 7) == stream && of_node(201, 1, 7) == stream && !of_node(202, 1, 7) &&
          !of_node(203, 1, 7) && !of_node(0, 1, 7));
    cs_match_graph_updated(201 + CS_GRAPHS); /* another, with the same place */
    CHECK(of_node(201, 1, 7) == stream);
    cs_match_graph_updated(201);
    CHECK(!of_node(201, 1, 7) && of_node(first, 1, 7) == stream);
    cs_match_graph_instantiated(999, first, 2); /* the number is used again */
    CHECK(!of_node(first, 1, 7));
}

TEST(a_node_is_one_of_its_kind_on_its_gpu)
{
    REQUIRE(begin());
    struct cs_stream *stream = stream_new();
    const cs_u64 began = now += 10;
    cs_match_capture_began(stream, began);
    launch(stream, 7);
    CHECK(called_at(stream, CS_CALL_cuMemcpyHtoDAsync_v2, began + 20, began + 25, NULL) &&
          called_at(stream, CS_CALL_cuMemsetD8Async, began + 30, began + 35, NULL));
    CHECK(called_at(stream, CS_CALL_cuLaunchHostFunc, began + 50, began + 55, NULL));
    launch_at(stream, NAME_OTHERS, began + 40); /* one of many names that there was no room for */
    now = began + 100;
    cs_match_capture_ended(stream, began, now);
    cs_match_graph_captured(stream, began, now, 1, 5);
    cs_match_graph_instantiated(1, 101, 5);
    static const enum cs_gpu_kind kinds[] = {CS_GPU_KERNEL, CS_GPU_COPY, CS_GPU_SET, CS_GPU_GRAPH};
    for (cs_u32 i = 0; i < 5; i++) {
        for (cs_u32 k = 0; k < 4; k++) {
            struct cs_gpu_work work = {.kind = kinds[k],
                .start = now + 1,
                .end = now + 2,
                .graph = 101,
                .node = (cs_u64)101 << 32 | i};
            if (!k) work.kernel.name = i == 3 ? NAME_OTHERS : 7;
            CHECK(cs_graph_stream(&work) == (i == k && i < 3 ? stream : NULL));
            work.device = 1;
            CHECK(!cs_graph_stream(&work));
            work.device = 0, work.graph = 102; /* the node of another graph */
            CHECK(!cs_graph_stream(&work));
        }
    }
}

/* --- what is forgotten --- */

TEST(the_nodes_of_a_list_are_kept_until_others_take_their_place)
{
    REQUIRE(begin());
    struct cs_stream *stream = stream_new();
    const cs_u32 exec = captured(stream, 7, 2);
    while (cs_match.graphs.nodes < CS_NODES)
        captured(stream, 7,
            cs_match.graphs.nodes + 4096 < CS_NODES ? 4096
                                                    : (cs_u32)(CS_NODES - cs_match.graphs.nodes));
    CHECK(of_node(exec, 0, 7) == stream && !forgotten());
    captured(stream, 7, 1);
    CHECK(!of_node(exec, 0, 7) && !of_node(exec, 1, 7));
    CHECK_IS(forgotten(), 2);
}

/* 4,096 others later, of which each has its own; and 4,096 captures later, though none of them was
 * made executable. */
TEST(a_graph_that_made_room_for_another_is_forgotten)
{
    REQUIRE(begin());
    struct cs_stream *stream = stream_new();
    const cs_u32 first = captured(stream, 7, 1), second = captured(stream, 7, 1);
    for (cs_u32 i = 2; i < CS_GRAPHS; i++) captured(stream, 7, 1);
    CHECK(of_node(first, 0, 7) == stream && of_node(second, 0, 7) == stream);
    const cs_u32 next = captured(stream, 7, 1);
    CHECK(next == first + CS_GRAPHS && of_node(next, 0, 7) == stream &&
          of_node(second, 0, 7) == stream && !forgotten());
    CHECK(!of_node(first, 0, 7));
    CHECK_IS(forgotten(), 1);
    CHECK(!of_node(next + CS_GRAPHS, 0, 7)); /* one that was never heard of */
    cs_match_graph_captured(stream, now, now, 1000000, 0);
    CHECK(!of_node(second, 0, 7));
    CHECK_IS(forgotten(), 2);
    cs_add(&cs_graph_epoch, 1); /* numbers of other graphs */
    CHECK(!of_node(first, 0, 7) && !of_node(second, 0, 7) && forgotten() == 2);
}

TEST(a_capture_of_more_calls_than_are_kept)
{
    REQUIRE(begin());
    struct cs_stream *stream = stream_new();
    CHECK(of_node(captured(stream, 7, CS_NODE_CALLS), 0, 7) == stream && !forgotten());
    CHECK(!of_node(captured(stream, 7, CS_NODE_CALLS + 1), 0, 7));
    CHECK_IS(forgotten(), 1);
}

/* The first that joined has no place any more, and so its call is missing. At the end, no work of
 * any stream at that time is counted as missing. */
TEST(a_capture_of_more_streams_than_are_kept)
{
    REQUIRE(begin());
    struct cs_stream *origin = stream_new(), *joined = stream_new();
    const cs_u64 began = now += 10;
    cs_match_capture_began(origin, began);
    cs_match_capture_joined(joined, began + 1, (cs_u64[]){began + 1, (cs_u64)ref_of(origin) << 32});
    launch_at(joined, 7, began + 10);
    for (int i = 0; i < CS_MEMBERS; i++) {
        struct cs_stream *more = stream_new();
        cs_match_capture_joined(
            more, began + 20, (cs_u64[]){began + 15, (cs_u64)ref_of(joined) << 32});
        if (i == CS_MEMBERS - 3) CHECK(cs_captures(joined, began + 20));
    }
    CHECK(!cs_captures(joined, began + 20));
    now = began + 100;
    CHECK(cs_match.captures.muted >= began);
    cs_match_capture_ended(origin, began, now);
    cs_match_graph_captured(origin, began, now, 1, 1);
    cs_match_graph_instantiated(1, 101, 1);
    CHECK(!of_node(101, 0, 7));
    CHECK_IS(forgotten(), 1);
}
