/*
 * Hooks for the thread sanitizer: threads call them while others register and unregister. What is
 * shown: a hook whose unregistering said that nobody is in it is never called again, nor read,
 * whoever gets its place.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "shim/policy/hooks.h"
#include "shim/policy/steer.h"
#include "tests/unit/check.h"

enum { CALLERS = 2, MAKERS = 2, ROUNDS = 4000 };

struct guarded {
    int calls; /* freed memory tells: it is read and written without atomics by one thread at a time
                  alone */
    pthread_mutex_t lock;
    custream_hook_kind_t kind;
};

static _Atomic bool done;
static _Atomic cs_u64 called;

static void hook(custream_hook_info_t *info, void *arg)
{
    struct guarded *g = arg;
    pthread_mutex_lock(&g->lock);
    CHECK(g->kind == info->kind);
    g->calls++;
    pthread_mutex_unlock(&g->lock);
    cs_add(&called, 1);
}

/* Its argument: a call, and the kind of hook that it meets. */
struct met {
    cs_u16 call;
    int kind;
};

static void *caller(void *met)
{
    const struct met *m = met;
    while (!cs_load(&done)) {
        struct cs_hooked hooked;
        cs_hooks_meet(&hooked, m->call, m->kind, false);
        cs_hooks_ask(&hooked, NULL);
        CHECK(!hooked.refused);
        cs_hooks_tell(&hooked, CUDA_SUCCESS);
    }
    return NULL;
}

static void *maker(void *kind)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct guarded *g = calloc(1, sizeof *g);
        bool running = true;
        pthread_mutex_init(&g->lock, NULL);
        g->kind = *(custream_hook_kind_t *)kind;
        cs_u32 number = cs_hook_add(g->kind, hook, g);
        REQUIRE(number);
        CHECK(cs_hook_remove(number, &running));
        if (!running)
            pthread_mutex_destroy(&g->lock), free(g); /* else it is left: somebody is in it */
    }
    return NULL;
}

TEST(who_has_gone_is_not_called)
{
    static custream_hook_kind_t kinds[MAKERS] = {CUSTREAM_HOOK_ENQUEUE, CUSTREAM_HOOK_SYNCHRONIZE};
    static struct met calls[CALLERS] = {{CS_CALL_cuLaunchKernel, CS_HOOK_OF_KIND(LAUNCH, 0)},
        {CS_CALL_cuStreamSynchronize, CS_HOOK_OF_KIND(SYNC, 0)}};
    pthread_t callers[CALLERS], makers[MAKERS];
    for (int i = 0; i < CALLERS; i++) pthread_create(&callers[i], NULL, caller, &calls[i]);
    for (int i = 0; i < MAKERS; i++) pthread_create(&makers[i], NULL, maker, &kinds[i]);
    for (int i = 0; i < MAKERS; i++) pthread_join(makers[i], NULL);
    static struct guarded last = {.lock = PTHREAD_MUTEX_INITIALIZER, .kind = CUSTREAM_HOOK_ENQUEUE};
    bool running;
    cs_u64 before = cs_load(&called);
    cs_u32 number = cs_hook_add(last.kind, hook, &last);
    while (cs_load(&called) == before) sched_yield(); /* who stays is called */
    CHECK(cs_hook_remove(number, &running));
    cs_store(&done, true);
    for (int i = 0; i < CALLERS; i++) pthread_join(callers[i], NULL);
}

static void not_told(custream_hook_info_t *info, void *arg)
{
    (void)info, cs_add((_Atomic int *)arg, 1);
}

TEST(who_comes_in_the_middle_of_a_call_is_not_told_of_it)
{
    _Atomic int told = 0;
    struct cs_hooked hooked;
    struct cs_creation creation = {.hook = &hooked, .flags = 1, .priority = -2};
    memset(&hooked, 0x5a, sizeof hooked);
    cs_hooks_leave(&hooked);
    REQUIRE(cs_hook_add(CUSTREAM_HOOK_CREATE, not_told, &told));
    CHECK(!cs_hooks_create(&creation) && creation.flags == 1 && creation.priority == -2);
    cs_hooks_tell(&hooked, CUDA_SUCCESS);
    CHECK_IS(cs_load(&told), 0);
}
