/* What hooks are shown (policy/hooks.h). Threads that come and go: race_hooks.c. */
#include "shim/policy/hooks.h"

#include <errno.h>

#include "tests/unit/check.h"

static custream_hook_info_t shown;
static void sees(custream_hook_info_t *info, void *arg)
{
    (void)arg;
    shown = *info;
    info->priority = -1;
    errno = EIO;
}

TEST(a_creation_is_shown_as_it_was_asked_for)
{
    struct cs_hooked hook = {0};
    struct cs_creation creation = {.hook = &hook, .flags = CU_STREAM_NON_BLOCKING, .priority = -3};
    REQUIRE(cs_hook_add(CUSTREAM_HOOK_CREATE, sees, NULL));
    cs_hooks_meet(&hook, CS_CALL_cuStreamCreateWithPriority, CUSTREAM_HOOK_CREATE, false);
    errno = EDOM;
    CHECK_IS(cs_hooks_create(&creation), CUDA_SUCCESS);
    CHECK_IS(errno, EDOM);
    CHECK(shown.kind == CUSTREAM_HOOK_CREATE && shown.flags == CU_STREAM_NON_BLOCKING &&
          shown.priority == -3 && !shown.after);
    CHECK_TEXT(shown.call, "cuStreamCreateWithPriority");
    CHECK(creation.flags == CU_STREAM_NON_BLOCKING && creation.priority == -1);
}

/* One that unregisters itself while it runs keeps its place to its end. */
static cs_u32 own, others[64];
static int other_count;
static bool ran_on;
static void leaves(custream_hook_info_t *info, void *arg)
{
    bool running = true;
    (void)info, (void)arg;
    CHECK(cs_hook_inside());
    CHECK(cs_hook_remove(own, &running) && !running); /* nobody else is in it */
    CHECK(!cs_hook_remove(own, &running));
    while (
        other_count < 64 && (others[other_count] = cs_hook_add(CUSTREAM_HOOK_CREATE, sees, NULL)))
        CHECK(others[other_count++] % 64 != own % 64);
    CHECK_IS(other_count, 63);
    ran_on = true;
}

TEST(a_hook_that_unregisters_itself)
{
    struct cs_hooked hook = {0};
    struct cs_creation creation = {.hook = &hook};
    REQUIRE((own = cs_hook_add(CUSTREAM_HOOK_CREATE, leaves, NULL)));
    cs_hooks_meet(&hook, CS_CALL_cuStreamCreate, CUSTREAM_HOOK_CREATE, false);
    CHECK_IS(cs_hooks_create(&creation), CUDA_SUCCESS);
    CHECK(ran_on && !cs_hook_inside() && cs_hooks_any());
    cs_u32 last = cs_hook_add(CUSTREAM_HOOK_CREATE, sees, NULL);
    CHECK(last && last % 64 == own % 64 && last != own);
    CHECK_IS(cs_hook_add(CUSTREAM_HOOK_CREATE, sees, NULL), 0);
    for (int i = 0; i < other_count; i++)
        CHECK(cs_hook_remove(others[i], &(bool){0}) && !cs_hook_remove(others[i], &(bool){0}));
    CHECK(cs_hooks_any());
    CHECK(cs_hook_remove(last, &(bool){0}) && !cs_hooks_any());
    CHECK(!cs_hook_remove(0, &(bool){0}) && !cs_hook_remove(own, &(bool){0}));
}

/* While streams are to stay, what hooks write there is not taken, one after the other. */
static void moves(custream_hook_info_t *info, void *arg) { info->stream = arg; }

TEST(streams_that_are_to_stay)
{
    struct cs_hooked hook = {0};
    const CUstream asked = (CUstream)(uintptr_t)0x100, other = (CUstream)(uintptr_t)0x200;
    REQUIRE(cs_hook_add(CUSTREAM_HOOK_ENQUEUE, sees, NULL) &&
            cs_hook_add(CUSTREAM_HOOK_ENQUEUE, moves, other));
    for (int i = 0; i < 6; i++) {
        const bool stays = i % 3;
        cs_hooks_stay(stays);
        cs_hooks_meet(&hook, CS_CALL_cuLaunchKernel, CUSTREAM_HOOK_ENQUEUE, false);
        CHECK(cs_hooks_ask(&hook, asked) == (stays ? asked : other));
        CHECK(hook.given == asked && !cs_hook_inside());
    }
    cs_hooks_stay(false);
}
