/*
 * Streams and events that end with their context: cuCtxDestroy, a reset of the primary context, and
 * its last release. After each end comes a cuMemAllocHost, whose place in time shows that the
 * streams ended before it. Their handles are then given to others.
 */
#include "tests/apps/app.h"

static void fill(int count)
{
    CUstream stream;
    CUevent event;
    for (int i = 0; i < count; i++) {
        OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
        OK(cuEventCreate, &event, 0);
        OK(cuEventRecord, event, stream);
    }
    OK(cuMemsetD8Async, 0, 0, 0, NULL);
    OK(cuMemsetD8Async, 0, 0, 0, CU_STREAM_PER_THREAD);
}

int main(void)
{
    CUcontext created, again;
    app_start(0);
    OK(cuCtxCreate_v2, &created, 0, 0);
    fill(2);
    OK(cuCtxDestroy_v2, created);
    OK(cuStreamQuery, NULL);

    fill(3);
    OK(cuDevicePrimaryCtxReset_v2, 0);
    SAY(cuStreamQuery, NULL);            /* no context any more */
    OK(cuDevicePrimaryCtxRelease_v2, 0); /* the reset left our reference */

    OK(cuDevicePrimaryCtxRetain, &again, 0);
    OK(cuDevicePrimaryCtxRetain, &again, 0);
    OK(cuCtxSetCurrent, again);
    fill(4);
    OK(cuDevicePrimaryCtxRelease_v2, 0);
    OK(cuStreamQuery, NULL); /* one reference is left: all of it lives */
    OK(cuDevicePrimaryCtxRelease_v2, 0);
    SAY(cuStreamQuery, NULL);

    OK(cuDevicePrimaryCtxRetain, &again, 0);
    OK(cuCtxSetCurrent, again);
    fill(1); /* left to the end of the process */
    app_report();
    return 0;
}
