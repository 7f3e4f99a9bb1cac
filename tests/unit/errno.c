/* What the driver, or the C library, does to errno in questions of our own is no matter of the
 * program's: each function that asks keeps it, whoever calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

#include "shim/base/worker.h"
#include "shim/object/graph.h"
#include "shim/object/kernel.h"
#include "shim/policy/policies.h"
#include "tests/unit/driver.h"

static CUresult device_of(CUdevice *device) { return errno = EIO, *device = 0, CUDA_SUCCESS; }
static CUresult captures_not(CUstream stream, CUstreamCaptureStatus *status)
{
    return (void)stream, errno = EIO, *status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
}
static CUresult one_node(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return (void)graph, (void)nodes, errno = EIO, *count = 1, CUDA_SUCCESS;
}
static CUresult refused(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return (void)graph, (void)nodes, *count = 1, CUDA_ERROR_INVALID_VALUE;
}
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
    CHECK(!cs_stream_is_capturing(stub_stream(1), false));
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
    struct cs_policy policy = {
        .jitter = {.on = true, .host = true, .us = 1, .percent = 100, .seed = 1, .kinds = 63}};
    struct cs_steer steer = {.policy = &policy};
    stub_driver();
    REQUIRE((thread = cs_thread_start()));
    cs_store(&cs_steer_delayed, tell);
    for (int i = 0; i < 20; i++) {
        errno = EDOM;
        cs_jitter_before(&steer, thread,
            &(struct cs_steered){.call = CS_CALL_cuLaunchKernel, .kind = CS_KIND_LAUNCH});
        CHECK_IS(errno, EDOM);
    }
}

/* Of the C library's, what the objects call: as it is, but for errno. */
static int system_calls;
int prctl(int what, ...)
{
    va_list rest;
    va_start(rest, what);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    const int result = (int)syscall(SYS_prctl, what, argument, 0, 0, 0);
    system_calls++;
    return errno = EIO, result;
}

static int traces;
int backtrace(void **frames, int room)
{
    return (void)frames, (void)room, traces++, errno = EIO, 0;
}

static pthread_key_t late;
static int at_the_end;
static void ends(void *unused) { (void)unused, at_the_end = errno; }
static void *starts(void *unused)
{
    errno = EDOM;
    CHECK(cs_thread_start());
    CHECK_IS(errno, EDOM);
    CHECK(!pthread_setspecific(late, &late));
    errno = ERANGE;
    return unused;
}

/* Its end is told by a destructor, and another one that runs behind it finds errno as the thread
 * has left it. */
TEST(of_a_threads_start_and_end)
{
    pthread_t other;
    cs_threads_init();
    stub_driver();
    REQUIRE(cs_thread_start());
    REQUIRE(!pthread_key_create(&late, ends));
    system_calls = 0;
    REQUIRE(!pthread_create(&other, NULL, starts, NULL) && !pthread_join(other, NULL));
    CHECK_IS(at_the_end, ERANGE);
    CHECK_IS(system_calls, 2);
}

TEST(of_the_first_look_at_the_stack)
{
    errno = EDOM;
    cs_creator_in_loader();
    cs_creator_in_loader();
    CHECK_IS(errno, EDOM);
    CHECK_IS(traces, 1);
}

/* The driver's answers, and nothing but errno is new. */
static CUresult range(int *least, int *greatest)
{
    return errno = EIO, *least = 0, *greatest = -5, CUDA_SUCCESS;
}
static CUresult current(CUcontext *context)
{
    return errno = EIO, *context = stub_context(0, 1), CUDA_SUCCESS;
}
static CUresult state_of(CUdevice device, unsigned *flags, int *active)
{
    return (void)device, errno = EIO, *flags = 0, *active = 1, CUDA_SUCCESS;
}
static CUresult name_of(const char **name, CUfunction function)
{
    return (void)function, errno = EIO, *name = "kernel", CUDA_SUCCESS;
}
static CUresult context_of(CUstream stream, CUcontext *context)
{
    return (void)stream, current(context);
}
static CUresult priority_of(CUstream stream, int *priority)
{
    return (void)stream, errno = EIO, *priority = -1, CUDA_SUCCESS;
}
static CUresult flags_of(CUstream stream, unsigned *flags)
{
    return (void)stream, errno = EIO, *flags = 0, CUDA_SUCCESS;
}

static CUresult set_of(CUstream stream, CUstreamAttrID id, const CUstreamAttrValue *value)
{
    return (void)stream, (void)id, (void)value, errno = EIO, CUDA_SUCCESS;
}

static void asks_range(void) { CHECK(cs_priority_of_device(&(int){0}, &(int){0})); }
static void asks_current(void) { CHECK(cs_context_current(thread)); }
static void asks_state(void) { CHECK(cs_context_primary_active(0)); }
static void asks_name(void) { CHECK(cs_kernel_find((CUfunction)(uintptr_t)0x40, true)); }
static void adopts(void) { CHECK(find_stream(thread, stub_stream(1))); }
static void makes(void) { CHECK(make_stream(thread, stub_stream(2))); }
static void makes_steered(void)
{
    struct cs_policy policy = {0};
    struct cs_creation made = {.policy = &policy,
        .thread = thread,
        .call = CS_CALL_cuStreamCreate,
        .flags_asked = CU_STREAM_NON_BLOCKING};
    CHECK(cs_creation_object(&made, stub_stream(3), cs_ticks()));
}

/* A rule looks at the thread's name, and sets a stream's priority once that has a name. */
static void names(void)
{
    struct cs_rule rules[] = {{.match = {.thread = "none",
                                   .device = CS_ANY,
                                   .nonblocking = CS_ANY,
                                   .priority = CS_ANY,
                                   .nth = CS_ANY,
                                   .context = CS_ANY}},
        {.match = {.name = "s",
             .device = CS_ANY,
             .nonblocking = CS_ANY,
             .priority = CS_ANY,
             .nth = CS_ANY,
             .context = CS_ANY},
            .set = {.priority = -2, .record = CS_ANY}}};
    const struct cs_policy policy = {.rules = rules, .rule_count = 2};
    CHECK_IS(cs_rule_of_default(&policy, thread, NULL), 0);
    CHECK_IS(errno, EDOM);
    cs_store_rel(&cs_policy_now, &policy);
    cs_steer_named(thread, stub_stream(2), cs_name_add("s"));
    cs_store_rel(&cs_policy_now, NULL);
    CHECK(rules[1].used && !rules[0].used);
}

TEST(of_each_question)
{
    static void (*const asking[])(void) = {
        asks_range, asks_current, asks_state, asks_name, adopts, makes, makes_steered, names};
    stub_driver();
    REQUIRE(cs_kernels_init() && (thread = cs_thread_start()));
    cs_real.cuCtxGetStreamPriorityRange = range;
    cs_real.cuCtxGetCurrent = current;
    cs_real.cuCtxGetDevice = device_of;
    cs_real.cuDevicePrimaryCtxGetState = state_of;
    cs_real.cuFuncGetName = name_of;
    cs_real.cuStreamGetCtx = context_of;
    cs_real.cuStreamGetPriority = priority_of;
    cs_real.cuStreamGetFlags = flags_of;
    cs_real.cuStreamIsCapturing = captures_not;
    cs_real.cuStreamSetAttribute = set_of;
    cs_real.cuStreamGetGreenCtx = (__typeof__(cs_real.cuStreamGetGreenCtx))(void *)cs_real_missing;
    for (size_t i = 0; i < CS_COUNT(asking); i++) {
        errno = EDOM;
        asking[i]();
        if (errno != EDOM)
            fprintf(stderr, "question %zu: errno is %d\n", i, errno), check_failures++;
    }
}

/* Longer than one wait for it lasts. */
static void *takes_its_time(void *given)
{
    struct cs_worker *worker = given;
    cs_worker_set(worker, CS_WORKER_RUNNING);
    while (cs_load_acq(&worker->state) == CS_WORKER_RUNNING) cs_worker_pause(worker, 1000000);
    nanosleep(&(struct timespec){0, 150000000}, NULL);
    cs_worker_set(worker, CS_WORKER_FINISHED);
    return NULL;
}

TEST(of_a_wait_for_a_thread_of_ours)
{
    static struct cs_worker worker;
    REQUIRE(cs_worker_start(&worker, takes_its_time));
    errno = EDOM;
    cs_worker_ask(&worker, CS_WORKER_FLUSHING, 10000);
    CHECK_IS(errno, EDOM);
    CHECK_IS(cs_load(&worker.state), CS_WORKER_FINISHED);
}
