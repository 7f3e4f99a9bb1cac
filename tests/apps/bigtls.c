/*
 * Thread-local storage that every thread's stack has to hold; how much is up to the build. Says
 * which priority a new stream got.
 *
 *   bigtls          one stream, and a launch on it
 *   bigtls churn    before it, more streams, events and threads than the shim has places for
 */
#include "tests/apps/app.h"

#ifndef BIGTLS
#define BIGTLS (1 << 20)
#endif
static __thread volatile char big[BIGTLS];

static void *launches(void *kernel)
{
    OK(cuCtxSetCurrent, app_context);
    LAUNCH((CUfunction)kernel, NULL);
    return NULL;
}

static void churn(void *kernel)
{
    enum { STREAMS = 70000, EVENTS = 140000, THREADS = 200 };
    for (int i = 0; i < STREAMS; i++) {
        CUstream stream;
        OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
        OK(cuStreamDestroy_v2, stream);
    }
    for (int i = 0; i < EVENTS; i++) {
        CUevent event;
        OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
        OK(cuEventDestroy_v2, event);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (!pthread_create(&thread, NULL, launches, kernel)) pthread_join(thread, NULL);
    }
}

int main(int argc, char **argv)
{
    CUstream stream;
    int priority = 99;
    big[BIGTLS - 1] = 1;
    app_start(0);
    CUfunction kernel = app_kernel("empty");
    if (argc > 1 && !strcmp(argv[1], "churn")) churn(kernel);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuStreamGetPriority, stream, &priority);
    LAUNCH(kernel, stream);
    OK(cuStreamSynchronize, stream);
    printf("priority %d\n", priority);
    return 0;
}
