/* What a hook's refusal leaves alone, and what hooks move: the call is not made, nothing is done for it, and what was under way stays so. */
#include "tests/api/rows.h"

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
