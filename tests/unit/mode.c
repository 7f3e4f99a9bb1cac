/* The mode word: when wrappers ask hooks and policies. */
#include "shim/process/inside.h"
#include "shim/policy/hooks.h"
#include "shim/policy/policy.h"
#include "tests/unit/check.h"

static void hook(custream_hook_info_t *info, void *arg) { (void)info, (void)arg; }

static cs_u32 add(custream_hook_kind_t kind)
{
    const cs_u32 number = cs_hook_add(kind, hook, NULL);
    REQUIRE(number);
    CHECK(cs_mode_steer(CS_MODE_HOOKS));
    return number;
}

static void take(cs_u32 number)
{
    bool running;
    CHECK(cs_hook_remove(number, &running));
    cs_mode_hook_gone();
}

TEST(the_last_hook_that_goes_gives_calls_their_short_way_back)
{
    cs_store(&cs_mode, CS_MODE_RECORDING);
    for (int round = 0; round < 3; round++) {
        const cs_u32 destroy = add(CUSTREAM_HOOK_DESTROY), enqueue = add(CUSTREAM_HOOK_ENQUEUE),
                     other = add(CUSTREAM_HOOK_ENQUEUE);
        CHECK(cs_hooks_listen(CUSTREAM_HOOK_DESTROY) && cs_hooks_listen(CUSTREAM_HOOK_ENQUEUE) &&
              !cs_hooks_listen(CUSTREAM_HOOK_CREATE));
        take(enqueue);
        CHECK(cs_hooks_listen(CUSTREAM_HOOK_ENQUEUE));
        take(other);
        CHECK(!cs_hooks_listen(CUSTREAM_HOOK_ENQUEUE)); /* what is enqueued meets none, others do */
        CHECK_IS(cs_load(&cs_mode), CS_MODE_RECORDING | CS_MODE_HOOKS);
        take(destroy);
        CHECK(!cs_hooks_any());
        CHECK_IS(cs_load(&cs_mode), CS_MODE_RECORDING);
    }
}

TEST(a_policy_is_asked_for_good)
{
    cs_store(&cs_mode, CS_MODE_WATCH);
    const cs_u32 number = add(CUSTREAM_HOOK_CREATE);
    CHECK(cs_mode_steer(cs_mode_of_policy(CS_REACH_OBJECTS | CS_REACH_DEFAULTS)));
    take(number);
    CHECK_IS(cs_load(&cs_mode), CS_MODE_WATCH | CS_MODE_OBJECTS | CS_MODE_DEFAULTS);
}

TEST(a_process_that_ends_stays_at_its_end)
{
    cs_store(&cs_mode, CS_MODE_WATCH);
    const cs_u32 number = add(CUSTREAM_HOOK_CREATE);
    cs_store(&cs_mode, CS_MODE_PASS);
    take(number);
    CHECK(!cs_mode_steer(CS_MODE_HOOKS));
    CHECK_IS(cs_load(&cs_mode), CS_MODE_PASS);
    CHECK(cs_mode_ever_steered());
}
