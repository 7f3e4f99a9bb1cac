/* STREAMS (policy/sharing.c, pool.c): what makes streams of one kind, over a stub of the driver. The rest: tests/cases/test_sharing.py. */
#include <errno.h>

#include "shim/policy/policies.h"
#include "tests/unit/driver.h"

static CUresult range(int *least, int *greatest) { return *least = 0, *greatest = -5, CUDA_SUCCESS; }

static struct cs_policy policies[2] = {{.sharing = {.kind = CS_SHARING_POOL, .pool = 2}, .number = 1}, {.sharing = {.kind = CS_SHARING_POOL, .pool = 2}, .number = 2}};

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
    cs_pool_create(&c);
    CHECK(!c.shared);
    return c.set;
}

/* Each in a context, with a rule of a policy or none, blocking or not, and a priority: two differ in one of them, and have different sets. */
TEST(each_kind_is_apart)
{
    struct cs_thread *thread = start();
    static const struct cs_policy *const policy_of[] = {&policies[0], &policies[0], &policies[0], &policies[1], &policies[0]};
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
                            set_of((struct cs_creation){.policy = policy_of[by], .rule = rule_of[by], .thread = thread, .flags = flags, .priority = priority});
                        CHECK(set);
                        if (!round) sets[n] = set;
                        CHECK(set == sets[n]);
                        for (int before = 0; before < n; before++) CHECK(set != sets[before]);
                    }
        }
    }
}

/* Without a rule the policy's number says nothing, and what the driver brings into its range is one priority. */
TEST(what_comes_to_the_same_shares)
{
    struct cs_thread *thread = start();
    struct cs_stream_set *least = set_of((struct cs_creation){.policy = &policies[0], .thread = thread}),
                         *greatest = set_of((struct cs_creation){.policy = &policies[0], .thread = thread, .priority = -5});
    CHECK(least && greatest && least != greatest);
    CHECK(set_of((struct cs_creation){.policy = &policies[1], .thread = thread}) == least);
    CHECK(set_of((struct cs_creation){.policy = &policies[0], .thread = thread, .priority = 1}) == least);
    CHECK(set_of((struct cs_creation){.policy = &policies[0], .thread = thread, .priority = 100}) == least);
    CHECK(set_of((struct cs_creation){.policy = &policies[0], .thread = thread, .priority = -6}) == greatest);
    CHECK(set_of((struct cs_creation){.policy = &policies[0], .thread = thread, .priority = -100}) == greatest);
}

TEST(what_is_not_shared)
{
    struct cs_thread *thread = start();
    CHECK(!set_of((struct cs_creation){.policy = &policies[0], .thread = thread, .green = (CUgreenCtx)&policies}));
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
    static const enum cs_sharing_kind kinds[] = {CS_SHARING_KEEP, CS_SHARING_SYNC, CS_SHARING_POOL, CS_SHARING_SERIAL};
    struct cs_thread *thread = start();
    cs_real.cuStreamCreate = create;
    cs_real.cuStreamGetGreenCtx = (__typeof__(cs_real.cuStreamGetGreenCtx))(void *)cs_real_missing;
    for (size_t i = 0; i < CS_COUNT(kinds); i++) {
        const struct cs_policy policy = {.sharing = {.kind = kinds[i], .pool = 1}};
        struct cs_creation c = {.policy = &policy, .thread = thread, .call = CS_CALL_cuStreamCreate};
        struct cs_stream *stream = stream_at(make_stream(thread, stub_stream((int)i)));
        REQUIRE(stream);
        CHECK_IS(cs_sharing_create(&c), CUDA_SUCCESS);
        CHECK_IS(c.set != NULL, kinds[i] == CS_SHARING_POOL);
        cs_sharing_created(&c, stream);
        CHECK_IS(stream->serial, kinds[i] == CS_SHARING_SERIAL);
        CHECK_IS(cs_load(&stream->ordered), kinds[i] == CS_SHARING_SERIAL);
        CHECK_IS(carriers, kinds[i] == CS_SHARING_SERIAL);
        c.policy = NULL;
        cs_sharing_created(&c, stream);
    }
}

static CUstream destroyed;
static CUresult destroy(CUstream stream) { return errno = EIO, destroyed = stream, CUDA_SUCCESS; }

/* Two threads have found room for one stream: the second one's is destroyed again, and shares the first. */
TEST(who_comes_last_shares)
{
    const struct cs_policy policy = {.sharing = {.kind = CS_SHARING_POOL, .pool = 1}, .number = 1};
    struct cs_thread *thread = start();
    struct cs_creation first = {.policy = &policy, .thread = thread, .call = CS_CALL_cuStreamCreate}, second = first;
    CUstream one = stub_stream(1), other = stub_stream(2);
    cs_real.cuStreamDestroy_v2 = destroy;
    cs_real.cuStreamGetGreenCtx = (__typeof__(cs_real.cuStreamGetGreenCtx))(void *)cs_real_missing;
    cs_pool_create(&first);
    cs_pool_create(&second);
    REQUIRE(first.set && first.set == second.set && !first.shared && !second.shared);
    cs_pool_made(&first, &one);
    CHECK(one == stub_stream(1) && !destroyed && first.made && !first.shared);
    errno = EDOM;
    cs_pool_made(&second, &other);
    CHECK_IS(errno, EDOM);
    CHECK(other == stub_stream(1) && destroyed == stub_stream(2));
    CHECK_IS(second.shared, first.made);
    CHECK(cs_load(&stream_at(second.made)->object.ended) && !cs_load(&stream_at(first.made)->object.ended));
    CHECK(cs_load(&stream_at(first.made)->shares) == 2 && cs_load(&stream_at(first.made)->shares_most) == 2);
    CHECK(stream_at(first.made)->pool_place == 1 && !stream_at(second.made)->pool_place);
}
