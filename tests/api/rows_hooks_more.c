/* Hooks may change a creation, send a call elsewhere, call CUDA, unregister themselves;
 * and what they cannot break. */
#include "tests/api/rows.h"

#include <errno.h>

static void raise_it(custream_hook_info_t *info, void *arg)
{
    (void)arg;
    if (info->after) return;
    CHECK_IS(info->priority, -1);
    CHECK_IS(info->flags, CU_STREAM_DEFAULT);
    info->priority = -3;
    info->flags = CU_STREAM_NON_BLOCKING;
}

ROW(85_change, "a hook changes what a stream is to be")
{
    custream_hook_t hook;
    CUstream s;
    unsigned flags;
    int priority;

    start();
    if (!preloaded()) return;
    WORKS(custream_register_hook(CUSTREAM_HOOK_CREATE, raise_it, NULL, &hook));
    OK(cuStreamCreateWithPriority(&s, CU_STREAM_DEFAULT, -1));
    OK(cuStreamGetPriority(s, &priority));
    OK(cuStreamGetFlags(s, &flags));
    CHECK_IS(priority, -3);
    CHECK_IS(flags, CU_STREAM_NON_BLOCKING);
    WORKS(custream_unregister_hook(hook));
    OK(cuStreamDestroy(s));
}

static CUstream from, to;
static void send_elsewhere(custream_hook_info_t *info, void *arg)
{
    (void)arg;
    if (!info->after && info->stream == from) info->stream = to;
}

ROW(85_elsewhere, "a hook sends work to another stream")
{
    custream_hook_t hook;
    CUevent e;

    start();
    if (!preloaded()) return;
    OK(cuStreamCreate(&from, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&to, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, 0));
    hold(to);
    WORKS(custream_register_hook(CUSTREAM_HOOK_ENQUEUE, send_elsewhere, NULL, &hook));
    OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, from, NULL, NULL));
    WORKS(custream_unregister_hook(hook));
    OK(cuStreamSynchronize(from)); /* nothing is on it */
    CHECK_IS(cuStreamQuery(to), CUDA_ERROR_NOT_READY);
    WORKS(custream_register_hook(CUSTREAM_HOOK_RECORD, send_elsewhere, NULL, &hook));
    OK(cuEventRecord(e, from));
    CHECK_IS(cuEventQuery(e), CUDA_ERROR_NOT_READY); /* it was recorded behind the gate */
    WORKS(custream_unregister_hook(hook));
    open_gate();
    OK(cuEventSynchronize(e));
    OK(cuStreamDestroy(from));
    OK(cuStreamDestroy(to));
}

static custream_hook_t itself;
static custream_t object;
static int calls;
static void go_away(custream_hook_info_t *info, void *arg)
{
    int *errors = arg;

    if (info->after) return;
    __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    /* Calls of CUDA go straight to the driver, and meet no hook; what waits is not for hooks. */
    *errors += cuStreamQuery(info->stream) == CUDA_ERROR_INVALID_HANDLE;
    *errors += cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, info->stream, NULL, NULL) != CUDA_SUCCESS;
    GIVES(custream_synchronize(object), NOT_SUPPORTED);
    GIVES(custream_device_synchronize(-1), NOT_SUPPORTED);
    WORKS(custream_unregister_hook(itself));
    GIVES(custream_unregister_hook(itself), INVALID_HANDLE);
    errno = 99;
}

ROW(85_itself, "a hook that calls CUDA, and unregisters itself")
{
    int errors = 0;

    start();
    if (!preloaded()) return;
    object = new_stream();
    WORKS(custream_register_hook(CUSTREAM_HOOK_ENQUEUE, go_away, &errors, &itself));
    errno = 7;
    OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, handle_of(object), NULL, NULL));
    CHECK_IS(errno, 7);
    OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, handle_of(object), NULL, NULL));
    CHECK_IS(calls, 1);
    CHECK_IS(errors, 0);
    WORKS(custream_synchronize(object));
}

static int blocked, let_go;
static void block(custream_hook_info_t *info, void *arg)
{
    (void)arg;
    if (info->after) return;
    __atomic_store_n(&blocked, 1, __ATOMIC_SEQ_CST);
    AWAIT(__atomic_load_n(&let_go, __ATOMIC_SEQ_CST));
}
static void *launch_there(void *s)
{
    OK(cuCtxSetCurrent(context));
    OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    return NULL;
}

ROW(85_blocks, "a hook that does not return holds up its own call alone")
{
    custream_hook_t hook, again;
    pthread_t thread;
    CUstream s;

    start();
    if (!preloaded()) return;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    WORKS(custream_register_hook(CUSTREAM_HOOK_ENQUEUE, block, NULL, &hook));
    OK(pthread_create(&thread, NULL, launch_there, s));
    AWAIT(__atomic_load_n(&blocked, __ATOMIC_SEQ_CST));
    GIVES(custream_unregister_hook(hook), NOT_READY); /* it is in it, and is not called any more */
    OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    WORKS(custream_register_hook(CUSTREAM_HOOK_ENQUEUE, send_elsewhere, NULL, &again));
    WORKS(custream_unregister_hook(again));
    __atomic_store_n(&let_go, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    OK(cuStreamSynchronize(s));
    OK(cuStreamDestroy(s));
}

ROW(85_full, "a table that is full, and places that are used again")
{
    custream_hook_t hooks[64], more;

    start();
    if (!preloaded()) return;
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 64; i++)
            WORKS(custream_register_hook(CUSTREAM_HOOK_DESTROY, send_elsewhere, NULL, &hooks[i]));
        FAILS(custream_register_hook(CUSTREAM_HOOK_DESTROY, send_elsewhere, NULL, &more), NO_MEMORY,
            more);
        for (int i = 0; i < 64; i++) WORKS(custream_unregister_hook(hooks[i]));
        GIVES(custream_unregister_hook(hooks[0]), INVALID_HANDLE);
    }
}

static int heard_by, stop;
static void count(custream_hook_info_t *info, void *arg)
{
    (void)info, (void)arg;
    __atomic_add_fetch(&heard_by, 1, __ATOMIC_RELAXED);
}
static void *launch_all_the_time(void *s)
{
    OK(cuCtxSetCurrent(context));
    for (int i = 0; i < 2000 && !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++)
        OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    return NULL;
}

ROW(85_threads, "hooks come and go while threads launch")
{
    pthread_t threads[4];
    custream_hook_t hook;
    CUstream s;

    start();
    if (!preloaded()) return;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 4; i++) OK(pthread_create(&threads[i], NULL, launch_all_the_time, s));
    for (int i = 0; i < 500; i++) {
        WORKS(custream_register_hook(CUSTREAM_HOOK_ENQUEUE, count, NULL, &hook));
        custream_status_t gone = custream_unregister_hook(hook);
        CHECK(gone == CUSTREAM_SUCCESS || gone == CUSTREAM_NOT_READY);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    OK(cuStreamSynchronize(s));
    int before = heard_by;
    OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    CHECK_IS(heard_by, before);
    OK(cuStreamDestroy(s));
}

static void deny(custream_hook_info_t *info, void *arg)
{
    (void)arg;
    if (!info->after) info->result = CUDA_ERROR_NOT_PERMITTED;
}

ROW_WITH(85_pool, "a refused creation takes no share of a pool", "CUSTREAM_STREAMS=pool:1")
{
    custream_hook_t hook;
    CUstream first, second;

    start();
    if (!preloaded()) return;
    OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    WORKS(custream_register_hook(CUSTREAM_HOOK_CREATE, deny, NULL, &hook));
    CHECK_IS(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING), CUDA_ERROR_NOT_PERMITTED);
    WORKS(custream_unregister_hook(hook));
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    CHECK(second == first);
    OK(cuStreamDestroy(second));
    OK(cuStreamQuery(first));
    OK(cuStreamDestroy(first));
    GONE(cuStreamDestroy(first)); /* no share is left */
}
