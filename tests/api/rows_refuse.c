/* What a hook's refusal leaves alone, and what hooks move: the call is not made, nothing is done for it, and what was under way stays so. */
#include "tests/api/rows.h"

#include <sys/wait.h>

/* ---- Calls that have no stream ---- */

static int heard[CUSTREAM_HOOK_KINDS];
static void hear(custream_hook_info_t *info, void *arg) {
    if (info->after) return;
    heard[info->kind]++;
    CHECK(info->event == *(CUevent *)arg);
}

ROW(85_context, "an event that is recorded in a context, and waited for") {
    custream_hook_t record, wait;
    CUevent e;

    start();
    if (!preloaded()) return;
#if CUDA_VERSION >= 12050
    OK(cuEventCreate(&e, 0));
    WORKS(custream_register_hook(CUSTREAM_HOOK_RECORD, hear, &e, &record));
    WORKS(custream_register_hook(CUSTREAM_HOOK_WAIT, hear, &e, &wait));
    OK(cuCtxRecordEvent(context, e));
    OK(cuCtxWaitEvent(context, e));
    WORKS(custream_unregister_hook(record));
    WORKS(custream_unregister_hook(wait));
    OK(cuEventDestroy(e));
    CHECK_IS(heard[CUSTREAM_HOOK_RECORD], 1);
    CHECK_IS(heard[CUSTREAM_HOOK_WAIT], 1);
#else
    (void)record, (void)wait, (void)e;
#endif
}

/* ---- A hook that forks ---- */

static CUstream shared;
static int depth, deepest, turns;
static void fork_in_it(custream_hook_info_t *info, void *arg) {
    int status = -1;

    (void)arg;
    turns++;
    if (++depth > deepest) deepest = depth;
    if (!info->after && depth == 1) {
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 3; i++) cuStreamSynchronize(shared); /* CUDA does not live on here, and says so */
            CHECK_IS(turns, 1);
            CHECK_IS(deepest, 1);
            _exit(failures != 0);
        }
        waitpid(child, &status, 0);
        CHECK_IS(status, 0);
    }
    depth--;
}

ROW(85_fork, "a hook that forks is not called for what it does in the child") {
    custream_hook_t hook;

    start();
    if (!preloaded()) return;
    OK(cuStreamCreate(&shared, CU_STREAM_NON_BLOCKING));
    WORKS(custream_register_hook(CUSTREAM_HOOK_SYNCHRONIZE, fork_in_it, NULL, &hook));
    OK(cuStreamSynchronize(shared));
    CHECK_IS(turns, 2);
    WORKS(custream_unregister_hook(hook));
    OK(cuStreamDestroy(shared));
}
