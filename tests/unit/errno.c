/* What the driver does to errno in questions of our own is no matter of the program's: each function that asks keeps it, whoever calls. */
#include <errno.h>

#include "shim/object/graph.h"
#include "shim/policy/policies.h"
#include "tests/unit/driver.h"

static CUresult device_of(CUdevice *device) { return errno = EIO, *device = 0, CUDA_SUCCESS; }
static CUresult captures_not(CUstream stream, CUstreamCaptureStatus *status) { return (void)stream, errno = EIO, *status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS; }
static CUresult one_node(CUgraph graph, CUgraphNode *nodes, size_t *count) { return (void)graph, (void)nodes, errno = EIO, *count = 1, CUDA_SUCCESS; }
static CUresult refused(CUgraph graph, CUgraphNode *nodes, size_t *count) { return (void)graph, (void)nodes, *count = 1, CUDA_ERROR_INVALID_VALUE; }
static int asked;
static bool profiler_ids(CUgraph graph, CUgraphExec exec, struct cs_graph_ids *ids)
{
    (void)graph, (void)exec;
    asked++;
    ids->graph = 3, ids->exec = 4;
    return true;
}

TEST(of_a_new_context)
{
    stub_driver();
    cs_real.cuCtxGetDevice = device_of;
    errno = EDOM;
    CHECK(cs_context_of(stub_context(0, 1), -1));
    CHECK_IS(errno, EDOM);
}

TEST(of_a_capture)
{
    cs_real.cuStreamIsCapturing = captures_not;
    errno = EDOM;
    CHECK(!cs_sharing_captured(stub_stream(1)));
    CHECK_IS(errno, EDOM);
}

TEST(of_the_numbers_of_a_graph)
{
    CUgraph graph = (CUgraph)(uintptr_t)0x1000;
    cs_store(&cs_graph_profiler_ids, profiler_ids);
    cs_real.cuGraphGetNodes = one_node;
    errno = EDOM;
    const struct cs_graph_ids ids = cs_graph_ids_of(&graph, NULL);
    CHECK_IS(errno, EDOM);
    CHECK(ids.graph == 3 && ids.nodes == 1 && asked == 1);
    cs_real.cuGraphGetNodes = refused;
    CHECK_IS(cs_graph_ids_of(&graph, NULL).graph, 0);
    CHECK_IS(asked, 1);
}

static struct cs_thread *thread;
static void tell(const struct cs_delayed *delayed) { (void)delayed, errno = EIO; }

TEST(of_a_delay)
{
    struct cs_policy policy = {.jitter = {.on = true, .host = true, .us = 1, .percent = 100, .seed = 1, .kinds = 63}};
    struct cs_steer steer = {.policy = &policy};
    stub_driver();
    REQUIRE((thread = cs_thread_start()));
    cs_store(&cs_steer_delayed, tell);
    for (int i = 0; i < 20; i++) {
        errno = EDOM;
        cs_jitter_before(&steer, thread, &(struct cs_steered){.call = CS_CALL_cuLaunchKernel, .kind = CS_KIND_LAUNCH});
        CHECK_IS(errno, EDOM);
    }
}
