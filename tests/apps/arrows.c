/*
 * Events recorded and waited for: on the same thread and across threads, recorded again, never
 * recorded, and a wait that fails. Each wait that should have an arrow is one line "arrow KIND
 * EVENT": the case counts them and looks at both ends.
 */
#include "tests/apps/app.h"

static CUstream a, b;
static CUevent event[4];
static pthread_barrier_t turn;

static void *recorder(void *unused)
{
    pthread_setname_np(pthread_self(), "recorder");
    OK(cuCtxSetCurrent, app_context);
    NOTE("recorder", "%ld", app_tid());
    for (int i = 0; i < 20; i++) {
        OK(cuEventRecord, event[2], b);
        pthread_barrier_wait(&turn); /* recorded */
        pthread_barrier_wait(&turn); /* waited for */
    }
    return unused;
}

static void wait_stream(CUstream stream, int which)
{
    OK(cuStreamWaitEvent, stream, event[which], 0);
    printf("arrow cuStreamWaitEvent %d\n", which + 1);
}

int main(void)
{
    pthread_t thread;
    app_start(0);
    OK(cuStreamCreate, &a, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreate, &b, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 4; i++) OK(cuEventCreate, &event[i], CU_EVENT_DISABLE_TIMING);
    NOTE("main", "%ld", app_tid());
    NOTE("a", "%p", (void *)a);
    NOTE("b", "%p", (void *)b);

    OK(cuStreamWaitEvent, a, event[3], 0); /* never recorded: nothing to wait for, no arrow */
    OK(cuEventRecord, event[0], a);
    wait_stream(b, 0);
    wait_stream(b, 0); /* twice the same cause */
    OK(cuEventRecord, event[0], b);
    wait_stream(a, 0); /* now it is the second record */
    OK(cuEventSynchronize, event[0]);
    printf("arrow cuEventSynchronize 1\n");
    OK(cuEventRecordWithFlags, event[1], a, 0);
    OK(cuCtxWaitEvent, app_context, event[1]);
    printf("arrow cuCtxWaitEvent 2\n");
    OK(cuCtxRecordEvent, app_context, event[1]);
    OK(cuEventSynchronize, event[1]);
    printf("arrow cuEventSynchronize 2\n");
    SAY(cuStreamWaitEvent, a, event[0], 0xff00); /* refused: no arrow */

    pthread_barrier_init(&turn, NULL, 2);
    THREAD(&thread, recorder, NULL);
    for (int i = 0; i < 20; i++) {
        pthread_barrier_wait(&turn);
        wait_stream(a, 2);
        pthread_barrier_wait(&turn);
    }
    pthread_join(thread, NULL);
    OK(cuCtxSynchronize);
    for (int i = 0; i < 4; i++) OK(cuEventDestroy_v2, event[i]);
    OK(cuStreamDestroy_v2, a);
    OK(cuStreamDestroy_v2, b);
    OK(cuDevicePrimaryCtxRelease_v2, 0);
    app_report();
    return 0;
}
