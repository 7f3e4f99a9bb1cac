/* burst THREADS CALLS [PAUSE_MS]: every thread launches that many empty kernels on a stream of its
 * own as fast as it can, pausing in the middle. */
#include "tests/apps/app.h"

static CUfunction empty;
static long calls, pause_ms;
static pthread_barrier_t start;

static void *burst(void *number)
{
    CUstream stream;
    OK(cuCtxSetCurrent, app_context);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    pthread_barrier_wait(&start);
    for (long i = 0; i < calls; i++) {
        LAUNCH(empty, stream);
        if (i == calls / 2 && pause_ms) app_sleep_ms(pause_ms);
    }
    OK(cuStreamSynchronize, stream);
    OK(cuStreamDestroy_v2, stream);
    return number;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t id[64];
    if (argc < 3 || threads < 1 || threads > 64) return 2;
    calls = atol(argv[2]);
    pause_ms = argc > 3 ? atol(argv[3]) : 0;
    app_start(0);
    empty = app_kernel("empty_kernel");
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) THREAD(&id[i], burst, NULL);
    for (int i = 0; i < threads; i++) pthread_join(id[i], NULL);
    OK(cuDevicePrimaryCtxRelease_v2, 0);
    app_report();
    return 0;
}
