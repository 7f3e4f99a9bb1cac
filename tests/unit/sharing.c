/* STREAMS (policy/shares.c, serial.c): what makes streams of one kind, over a stub of the driver.
 * The rest: tests/cases/test_sharing.py. */
#include <errno.h>

#include "shim/policy/policies.h"
#include "tests/unit/driver.h"

static CUresult range(int *least, int *greatest)
{
    return *least = 0, *greatest = -5, CUDA_SUCCESS;
}

static struct cs_policy policies[2] = {
    {.sharing = {.kind = CS_SHARING_POOL, .pool = 2}, .number = 1},
    {.sharing = {.kind = CS_SHARING_POOL, .pool = 2}, .number = 2}};

static struct cs_thread *start(void)
{
    stub_driver();
    cs_real.cuCtxGetStreamPriorityRange = range;
    stub_current = stub_context(0, 1);
    struct cs_thread *thread = cs_thread_start();
    REQUIRE(thread);
    return thread;
}

static struct cs_stream_set *set_of(struct cs_creation c)
{
    cs_shares_create(&c);
    CHECK(!c.shared);
    return c.set;
}

/* Each in a context, with a rule of a policy or none, blocking or not, and a priority: two differ
 * in one of them, and have different sets. */
TEST(each_kind_is_apart)
{
    struct cs_thread *thread = start();
    static const struct cs_policy *const policy_of[] = {
        &policies[0], &policies[0], &policies[0], &policies[1], &policies[0]};
    static const cs_u16 rule_of[] = {0, 1, 2, 1, CS_RULES};
    struct cs_stream_set *sets[2 * 5 * 2 * 6];
    for (int round = 0; round < 2; round++) {
        int n = 0;
        for (int context = 1; context <= 2; context++) {
            stub_current = stub_context(0, context);
            cs_context_forget(thread);
            for (int by = 0; by < 5; by++)
                for (unsigned flags = 0; flags < 2; flags++)
                    for (int priority = 0; priority > -6; priority--, n++) {
                        struct cs_stream_set *set =
                            set_of((struct cs_creation){.policy = policy_of[by],
                                .rule = rule_of[by],
                                .thread = thread,
                                .flags = flags,
                                .priority = priority});
                        CHECK(set);
                        if (!round) sets[n] = set;
                        CHECK(set == sets[n]);
                        for (int before = 0; before < n; before++) CHECK(set != sets[before]);
                    }
        }
    }
}

/* Without a rule the policy's number says nothing, and what the driver brings into its range is one
 * priority. */
TEST(what_comes_to_the_same_shares)
{
    struct cs_thread *thread = start();
    struct cs_stream_set *least =
                             set_of((struct cs_creation){.policy = &policies[0], .thread = thread}),
                         *greatest = set_of((struct cs_creation){
                             .policy = &policies[0], .thread = thread, .priority = -5});
    CHECK(least && greatest && least != greatest);
    CHECK(set_of((struct cs_creation){.policy = &policies[1], .thread = thread}) == least);
    CHECK(set_of((struct cs_creation){.policy = &policies[0], .thread = thread, .priority = 1}) ==
          least);
    CHECK(set_of((struct cs_creation){.policy = &policies[0], .thread = thread, .priority = 100}) ==
          least);
    CHECK(set_of((struct cs_creation){.policy = &policies[0], .thread = thread, .priority = -6}) ==
          greatest);
    CHECK(set_of((struct cs_creation){
              .policy = &policies[0], .thread = thread, .priority = -100}) == greatest);
}

TEST(what_is_not_shared)
{
    struct cs_thread *thread = start();
    CHECK(!set_of((struct cs_creation){
        .policy = &policies[0], .thread = thread, .green = (CUgreenCtx)&policies}));
    CHECK(!set_of((struct cs_creation){.policy = &policies[0], .thread = thread, .flags = 2}));
    CHECK(!set_of((struct cs_creation){.policy = &policies[0], .thread = thread, .flags = 3}));
    stub_current = NULL;
    cs_context_forget(thread);
    CHECK(!set_of((struct cs_creation){.policy = &policies[0], .thread = thread}));
}

static int carriers;
static CUresult create(CUstream *stream, unsigned flags)
{
    CHECK_IS(flags, CU_STREAM_DEFAULT);
    *stream = stub_stream(100 + carriers++);
    return CUDA_SUCCESS;
}

TEST(each_way_of_sharing_does_its_own)
{
    static const enum cs_sharing_kind kinds[] = {
        CS_SHARING_KEEP, CS_SHARING_SYNC, CS_SHARING_POOL, CS_SHARING_SERIAL};
    struct cs_thread *thread = start();
    cs_real.cuStreamCreate = create;
    cs_real.cuStreamGetGreenCtx = (__typeof__(cs_real.cuStreamGetGreenCtx))(void *)cs_real_missing;
    for (size_t i = 0; i < CS_COUNT(kinds); i++) {
        const struct cs_policy policy = {.sharing = {.kind = kinds[i], .pool = 1}};
        struct cs_creation c = {
            .policy = &policy, .thread = thread, .call = CS_CALL_cuStreamCreate};
        struct cs_stream *stream = stream_at(make_stream(thread, stub_stream((int)i)));
        REQUIRE(stream);
        CHECK_IS(cs_shares_create(&c), CUDA_SUCCESS);
        CHECK_IS(c.set != NULL, kinds[i] == CS_SHARING_POOL);
        cs_serial_created(&c, stream);
        CHECK_IS(stream->serial, kinds[i] == CS_SHARING_SERIAL);
        CHECK_IS(cs_load(&stream->ordered), kinds[i] == CS_SHARING_SERIAL);
        CHECK_IS(carriers, kinds[i] == CS_SHARING_SERIAL);
        c.policy = NULL;
        cs_serial_created(&c, stream);
    }
}

static CUstream destroyed;
static CUresult destroy(CUstream stream) { return errno = EIO, destroyed = stream, CUDA_SUCCESS; }

/* Two threads have found room for one stream: the second one's is destroyed again, and shares the
 * first. */
TEST(who_comes_last_shares)
{
    const struct cs_policy policy = {.sharing = {.kind = CS_SHARING_POOL, .pool = 1}, .number = 1};
    struct cs_thread *thread = start();
    struct cs_creation first = {.policy = &policy,
                           .thread = thread,
                           .call = CS_CALL_cuStreamCreate},
                       second = first;
    CUstream one = stub_stream(1), other = stub_stream(2);
    cs_real.cuStreamDestroy_v2 = destroy;
    cs_real.cuStreamGetGreenCtx = (__typeof__(cs_real.cuStreamGetGreenCtx))(void *)cs_real_missing;
    cs_shares_create(&first);
    cs_shares_create(&second);
    REQUIRE(first.set && first.set == second.set && !first.shared && !second.shared);
    cs_shares_made(&first, &one);
    CHECK(one == stub_stream(1) && !destroyed && first.made && !first.shared);
    errno = EDOM;
    cs_shares_made(&second, &other);
    CHECK_IS(errno, EDOM);
    CHECK(other == stub_stream(1) && destroyed == stub_stream(2));
    CHECK_IS(second.shared, first.made);
    CHECK(cs_load(&stream_at(second.made)->object.ended) &&
          !cs_load(&stream_at(first.made)->object.ended));
    CHECK(cs_load(&stream_at(first.made)->shares) == 2 &&
          cs_load(&stream_at(first.made)->shares_most) == 2);
    CHECK(stream_at(first.made)->share_place == 1 && !stream_at(second.made)->share_place);
}

static CUresult answer;
static CUstreamCaptureStatus status;
static CUresult captures(CUstream stream, CUstreamCaptureStatus *out)
{
    return (void)stream, *out = status, answer;
}

/* Where the driver does not say that none is captured, one may be. */
TEST(what_counts_as_captured)
{
    static const CUresult answers[] = {
        CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT};
    cs_real.cuStreamIsCapturing = captures;
    for (size_t i = 0; i < CS_COUNT(answers); i++)
        for (int s = CU_STREAM_CAPTURE_STATUS_NONE; s <= CU_STREAM_CAPTURE_STATUS_INVALIDATED;
            s++) {
            answer = answers[i], status = (CUstreamCaptureStatus)s;
            CHECK_IS(cs_stream_is_capturing(stub_stream(1), false), i || s);
        }
}

static CUresult waited;
static int waits, of_sibling, exchanges;
static CUresult await(CUstream stream)
{
    CHECK(stream == stub_stream(1));
    waits++;
    return waited;
}
static CUresult await_sibling(CUstream stream) { return of_sibling++, await(stream); }
static CUstreamCaptureMode mode_now = CU_STREAM_CAPTURE_MODE_GLOBAL;
static CUresult exchange(CUstreamCaptureMode *mode)
{
    const CUstreamCaptureMode before = mode_now;
    mode_now = *mode;
    exchanges++;
    return *mode = before, CUDA_SUCCESS;
}

/* STREAMS=sync: behind what puts work on a stream, where it was accepted and nobody captures. */
TEST(what_is_waited_for)
{
    static const bool puts_work[CS_KIND_COUNT] = {[CS_KIND_LAUNCH] = true,
        [CS_KIND_COPY] = true,
        [CS_KIND_SET] = true,
        [CS_KIND_GRAPH] = true,
        [CS_KIND_HOSTFN] = true,
        [CS_KIND_MEMORY] = true};
    const struct cs_policy policy = {.sharing = {.kind = CS_SHARING_SYNC}};
    struct cs_thread *thread = start();
    cs_real.cuStreamSynchronize = await;
    cs_real.cuStreamSynchronize_ptsz = await_sibling;
    cs_real.cuThreadExchangeStreamCaptureMode = exchange;
    cs_store_rel(&cs_policy_now, &policy);
    for (int kind = 0; kind < CS_KIND_COUNT; kind++)
        for (int how = 0; how < 8; how++) {
            const bool accepted = how & 1, sibling = how & 2, somebody = how & 4,
                       shall = puts_work[kind] && accepted && !somebody;
            const CUresult result = accepted ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
            struct cs_steer steer;
            waits = of_sibling = exchanges = 0;
            waited = CUDA_ERROR_LAUNCH_FAILED;
            cs_store(&cs_streams_capturing, somebody);
            cs_steer_stream(&steer, thread, stub_stream(1),
                &(struct cs_steered){.call = CS_CALL_cuLaunchKernel,
                    .kind = (enum cs_kind)kind,
                    .of_sibling = sibling});
            CHECK_IS(cs_steer_done(&steer, result), shall ? CUDA_ERROR_LAUNCH_FAILED : result);
            CHECK_IS(waits, shall);
            CHECK_IS(of_sibling, shall && sibling);
            CHECK_IS(exchanges, shall ? 2 : 0);
            CHECK_IS(mode_now, CU_STREAM_CAPTURE_MODE_GLOBAL);
        }
    cs_store(&cs_streams_capturing, 0);
    for (int error = 890; error < 920;
        error++) { /* a capture that began meanwhile is not the call's fault */
        struct cs_steer steer;
        const bool of_capture =
            error >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && error <= CUDA_ERROR_CAPTURED_EVENT;
        waited = (CUresult)error;
        cs_steer_stream(&steer, thread, stub_stream(1),
            &(struct cs_steered){.call = CS_CALL_cuLaunchKernel, .kind = CS_KIND_LAUNCH});
        CHECK_IS(cs_steer_done(&steer, CUDA_SUCCESS), of_capture ? CUDA_SUCCESS : error);
    }
    cs_store_rel(&cs_policy_now, NULL);
}
