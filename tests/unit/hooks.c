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
    CHECK(shown.kind == CUSTREAM_HOOK_CREATE && shown.flags == CU_STREAM_NON_BLOCKING && shown.priority == -3 && !shown.after);
    CHECK_TEXT(shown.call, "cuStreamCreateWithPriority");
    CHECK(creation.flags == CU_STREAM_NON_BLOCKING && creation.priority == -1);
}
