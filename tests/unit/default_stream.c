/* Which default stream a thread's calls mean (policy/default_stream.c). What a program sees of it:
 * tests/cases/test_policy_default_stream.py. */
#include "shim/policy/policies.h"
#include "tests/unit/driver.h"

struct turn {
    const struct cs_policy *policy;
    struct cs_thread *thread;
    enum cs_default_mode mode;
};

/* A thread whose context somebody else has made current: none of its calls tells. */
static void *asks(void *data)
{
    struct turn *turn = data;
    struct cs_steer steer = {.policy = turn->policy};
    stub_current = stub_context(0, 1);
    turn->thread = cs_thread_start();
    REQUIRE(turn->thread);
    turn->mode = cs_default_of(&steer, turn->thread, NULL);
    CHECK_IS(cs_default_of(&steer, turn->thread, NULL), turn->mode);
    return NULL;
}

TEST(a_thread_in_the_place_of_one_that_has_ended_decides_for_itself)
{
    static const struct cs_policy before = {.default_stream = CS_DEFAULT_LEGACY},
                                  now = {.default_stream = CS_DEFAULT_PER_THREAD};
    struct turn first = {.policy = &before}, second = {.policy = &now};
    pthread_t thread;
    stub_driver();
    REQUIRE(!pthread_create(&thread, NULL, asks, &first) && !pthread_join(thread, NULL));
    cs_thread_recycle(first.thread);
    REQUIRE(!pthread_create(&thread, NULL, asks, &second) && !pthread_join(thread, NULL));
    CHECK(second.thread == first.thread);
    CHECK_IS(first.mode, CS_DEFAULT_LEGACY);
    CHECK_IS(second.mode, CS_DEFAULT_PER_THREAD);
}
