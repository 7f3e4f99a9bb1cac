/* Which graphs have numbers (object/graph.h): the driver is asked how many nodes there are, and the
 * profiler for its numbers. */
#include "shim/object/graph.h"

#include "shim/calls/real.h"
#include "tests/unit/check.h"

static const CUgraph graph = (CUgraph)(uintptr_t)0x1000, no_graph;
static const CUgraphExec exec = (CUgraphExec)(uintptr_t)0x2000, no_exec;
static size_t nodes;
static CUresult answer;
static bool knows = true;
static CUgraphExec asked_for;
static int asked;

static CUresult count(CUgraph of, CUgraphNode *list, size_t *out)
{
    CHECK(of == graph && !list);
    *out = nodes;
    return answer;
}

static bool ids_of(CUgraph of, CUgraphExec executable, struct cs_graph_ids *ids)
{
    CHECK(of == graph);
    asked++;
    asked_for = executable;
    ids->graph = 3, ids->exec = executable ? 4 : 0;
    return knows;
}

static bool has(const struct cs_graph_ids ids, cs_u32 number, cs_u32 of_exec, cs_u32 count_of_nodes)
{
    return ids.graph == number && ids.exec == of_exec && ids.nodes == count_of_nodes;
}

TEST(without_a_profiler_or_a_driver_that_tells_there_are_none)
{
    nodes = 1;
    cs_real.cuGraphGetNodes = count;
    CHECK(has(cs_graph_ids_of(&graph, NULL), 0, 0, 0));
    cs_store(&cs_graph_profiler_ids, ids_of);
    cs_real.cuGraphGetNodes = NULL;
    CHECK(has(cs_graph_ids_of(&graph, NULL), 0, 0, 0));
    CHECK_IS(asked, 0);
}

TEST(of_each_number_of_nodes)
{
    static const size_t numbers[] = {0, 1, 2, 1000, UINT32_MAX - 1, UINT32_MAX,
        (size_t)UINT32_MAX + 1, (size_t)UINT32_MAX + 2, SIZE_MAX};
    cs_real.cuGraphGetNodes = count;
    cs_store(&cs_graph_profiler_ids, ids_of);
    for (size_t i = 0; i < CS_COUNT(numbers); i++) {
        const bool good = numbers[i] && numbers[i] <= UINT32_MAX;
        nodes = numbers[i], asked = 0, answer = CUDA_SUCCESS;
        CHECK(has(cs_graph_ids_of(&graph, NULL), good ? 3 : 0, 0, good ? (cs_u32)nodes : 0));
        CHECK(!good || !asked_for);
        CHECK(has(
            cs_graph_ids_of(&graph, &exec), good ? 3 : 0, good ? 4 : 0, good ? (cs_u32)nodes : 0));
        CHECK(!good || asked_for == exec);
        CHECK_IS(asked, good ? 2 : 0);
        answer = CUDA_ERROR_INVALID_VALUE;
        CHECK(has(cs_graph_ids_of(&graph, &exec), 0, 0, 0));
        CHECK_IS(asked, good ? 2 : 0);
    }
}

TEST(of_no_graph)
{
    nodes = 1;
    cs_real.cuGraphGetNodes = count;
    cs_store(&cs_graph_profiler_ids, ids_of);
    CHECK(has(cs_graph_ids_of(NULL, NULL), 0, 0, 0) &&
          has(cs_graph_ids_of(&no_graph, NULL), 0, 0, 0) &&
          has(cs_graph_ids_of(&graph, &no_exec), 0, 0, 0));
    CHECK_IS(asked, 0);
    knows = false;
    CHECK(has(cs_graph_ids_of(&graph, &exec), 0, 0, 0));
    CHECK_IS(asked, 1);
}
