/*
 * first_calls: four threads meet the driver at the same moment. Each makes a stream and launches five kernels on it, as programs do that have a thread a device.
 */
#include "tests/apps/app.h"

enum { THREADS = 4, LAUNCHES = 5 };
static pthread_barrier_t all;

static void *meet(void *unused)
{
    CUcontext context;
    CUmodule module;
    CUfunction empty;
    CUstream stream;
    pthread_barrier_wait(&all);
    OK(cuInit, 0);
    OK(cuDevicePrimaryCtxRetain, &context, 0);
    OK(cuCtxSetCurrent, context);
    OK(cuModuleLoadData, &module, ".version 7.0\n.target sm_52\n.address_size 64\n");
    OK(cuModuleGetFunction, &empty, module, "empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < LAUNCHES; i++) LAUNCH(empty, stream);
    OK(cuStreamSynchronize, stream);
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    app_driver = dlopen("libcuda.so.1", RTLD_NOW);
    pthread_barrier_init(&all, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) THREAD(&threads[i], meet, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    app_report();
    return 0;
}
