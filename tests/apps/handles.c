/*
 * The handles 0, 1 and 2 in two contexts and two threads, with legacy and per-thread entry points,
 * and the stack of contexts. Each line of output is one memset and what the program says it meant:
 * "set NUMBER KIND CONTEXT THREAD"; its value is its number.
 */
#include "tests/apps/app.h"

static CUcontext context[2];
static CUdeviceptr memory;
static int number;

static void set(
    const char *kind, int in_context, const char *thread, CUstream stream, int per_thread)
{
    number++;
    if (per_thread) OK(cuMemsetD8Async_ptsz, memory, (unsigned char)number, 1, stream);
    else OK(cuMemsetD8Async, memory, (unsigned char)number, 1, stream);
    printf("set %d %s %c %s\n", number, kind, "AB"[in_context], thread);
}

static void implicit(const char *kind, int in_context, const char *thread, int per_thread)
{
    number++;
    if (per_thread) OK(cuMemsetD8_v2_ptds, memory, (unsigned char)number, 1);
    else OK(cuMemsetD8_v2, memory, (unsigned char)number, 1);
    printf("set %d %s %c %s\n", number, kind, "AB"[in_context], thread);
}

static void all(int in_context, const char *thread)
{
    set("legacy", in_context, thread, NULL, 0);
    set("legacy", in_context, thread, CU_STREAM_LEGACY, 0);
    set("own", in_context, thread, CU_STREAM_PER_THREAD, 0);
    set("own", in_context, thread, NULL, 1);
    set("legacy", in_context, thread, CU_STREAM_LEGACY, 1);
    set("own", in_context, thread, CU_STREAM_PER_THREAD, 1);
    implicit("legacy", in_context, thread, 0);
    implicit("own", in_context, thread, 1);
}

static void *second(void *unused)
{
    pthread_setname_np(pthread_self(), "second");
    for (int i = 0; i < 2; i++) {
        OK(cuCtxSetCurrent, context[i]);
        all(i, "second");
    }
    app_flush(); /* the writer has met this thread, while its name is there to read */
    return unused;
}

int main(void)
{
    pthread_t thread;
    app_start(0);
    OK(cuMemAlloc_v2, &memory, 64);
    for (int i = 0; i < 2; i++) {
        OK(cuCtxCreate_v2, &context[i], 0, 0);
        all(i, "main");
    }
    THREAD(&thread, second, NULL);
    pthread_join(thread, NULL);

    /* The stack is primary, A, B. Work goes where the top is, by whatever way it came there. */
    set("legacy", 1, "main", NULL, 0);
    OK(cuCtxPopCurrent_v2, NULL);
    set("legacy", 0, "main", NULL, 0);
    OK(cuCtxPushCurrent_v2, context[1]);
    set("own", 1, "main", NULL, 1);
    OK(cuCtxSetCurrent, context[0]);
    set("legacy", 0, "main", NULL, 0);
    OK(cuCtxPushCurrent_v2, context[1]);
    OK(cuCtxSetCurrent, NULL); /* takes the top away: A again */
    set("legacy", 0, "main", NULL, 0);
    set("own", 0, "main", NULL, 1);
    OK(cuCtxPushCurrent_v2, context[1]);
    OK(cuCtxDestroy_v2, context[1]); /* so does this */
    set("legacy", 0, "main", NULL, 0);
    OK(cuCtxDestroy_v2, context[0]);
    OK(cuDevicePrimaryCtxReset_v2, 0);
    app_report();
    return 0;
}
