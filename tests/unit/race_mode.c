/* Hooks that come and go on several threads: who has registered one is asked, from then on until it
 * goes; when all have gone nobody is. */
#include <pthread.h>

#include "shim/process/inside.h"
#include "shim/policy/hooks.h"
#include "tests/unit/check.h"

enum { THREADS = 3, ROUNDS = 4000 };

static void hook(custream_hook_info_t *info, void *arg) { (void)info, (void)arg; }

static void *comes_and_goes(void *unused)
{
    bool running;
    for (int i = 0; i < ROUNDS; i++) {
        const custream_hook_kind_t kind = (custream_hook_kind_t)(i % CUSTREAM_HOOK_KINDS);
        const cs_u32 number = cs_hook_add(kind, hook, NULL);
        REQUIRE(number && cs_mode_steer(CS_MODE_HOOKS));
        for (int looks = 0; looks < 3; looks++)
            REQUIRE(cs_load(&cs_mode) & CS_MODE_HOOKS && cs_hooks_listen((int)kind));
        REQUIRE(cs_hook_remove(number, &running));
        cs_mode_hook_gone();
    }
    return unused;
}

TEST(who_has_a_hook_is_asked_and_when_none_is_left_nobody_is)
{
    pthread_t threads[THREADS];
    cs_store(&cs_mode, CS_MODE_RECORDING);
    for (int i = 0; i < THREADS; i++)
        REQUIRE(!pthread_create(&threads[i], NULL, comes_and_goes, NULL));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK_IS(cs_load(&cs_mode), CS_MODE_RECORDING);
    CHECK(!cs_hooks_any());
}
