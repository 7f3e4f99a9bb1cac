/* race N: N threads make the first driver call of the process at the same moment. */
#include "tests/apps/app.h"

static pthread_barrier_t start;

static void *first(void *unused)
{
    int count = 0;
    CUstream stream;
    CUcontext context;
    pthread_barrier_wait(&start);
    OK(cuInit, 0);
    OK(cuDeviceGetCount, &count);
    OK(cuDevicePrimaryCtxRetain, &context, 0);
    OK(cuCtxSetCurrent, context);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuMemsetD8Async, 0, 0, 0, CU_STREAM_PER_THREAD);
    OK(cuMemsetD8Async, 0, 0, 0, NULL);
    OK(cuStreamSynchronize, stream);
    OK(cuStreamDestroy_v2, stream);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t id[64];
    int n = argc > 1 ? atoi(argv[1]) : 2;
    if (n < 1 || n > 64) return 2;
    pthread_barrier_init(&start, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) THREAD(&id[i], first, NULL);
    for (int i = 0; i < n; i++) pthread_join(id[i], NULL);
    app_report();
    return 0;
}
