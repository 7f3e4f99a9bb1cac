/* Handles that the driver gives out again, streams used after their end, and streams made by one
 * thread and destroyed by another. */
#include "tests/apps/app.h"

static CUstream handed;
static CUfunction empty;

static void *destroyer(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    OK(cuLaunchKernel, empty, 9, 1, 1, 1, 1, 1, 0, handed, NULL, NULL);
    OK(cuStreamDestroy_v2, handed);
    return unused;
}

int main(void)
{
    CUstream old = NULL, stream;
    CUevent event, old_event = NULL;
    pthread_t thread;
    int same = 0, same_event = 0;
    app_start(0);
    empty = app_kernel("empty_kernel");
    for (int i = 0; i < 10; i++) { /* stream i gets i + 1 launches */
        OK(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, i % 2 ? -1 : 0);
        same += stream == old;
        old = stream;
        for (int k = 0; k <= i; k++) LAUNCH(empty, stream);
        OK(cuStreamDestroy_v2, stream);
    }
    printf("handle given out again %d times\n", same);
    for (int i = 0; i < 10; i++) {
        OK(cuEventCreate, &event, 0);
        same_event += event == old_event;
        old_event = event;
        OK(cuEventRecord, event, NULL);
        OK(cuEventDestroy_v2, event);
    }
    printf("event given out again %d times\n", same_event);

    SAY(cuStreamSynchronize, stream);
    SAY(cuStreamQuery, stream);
    SAY(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    SAY(cuStreamWaitEvent, stream, event, 0);
    SAY(cuEventRecord, event, NULL);
    SAY(cuEventSynchronize, event);
    SAY(cuStreamDestroy_v2, stream);
    SAY(cuEventDestroy_v2, event);
    SAY(cuStreamDestroy_v2, NULL);
    SAY(cuStreamDestroy_v2, CU_STREAM_LEGACY);
    SAY(cuStreamDestroy_v2, CU_STREAM_PER_THREAD);
    LAUNCH(empty, NULL); /* the default stream lives on */

    OK(cuStreamCreate, &handed, CU_STREAM_DEFAULT);
    NOTE("handed", "%p", (void *)handed);
    NOTE("main", "%ld", app_tid());
    THREAD(&thread, destroyer, NULL);
    pthread_join(thread, NULL);
    SAY(cuStreamSynchronize, handed);
    OK(cuDevicePrimaryCtxRelease_v2, 0);
    app_report();
    return 0;
}
