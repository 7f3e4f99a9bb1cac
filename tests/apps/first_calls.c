/*
 * first_calls [in-turn | flushing]: four threads meet the driver at the same moment, or one after
 * the other, or with a fifth that flushes the trace meanwhile. Each makes a stream and launches
 * five kernels on it, as programs do that have a thread a device, or one a task.
 */
#include "tests/apps/app.h"

enum { THREADS = 4, LAUNCHES = 5 };
static pthread_barrier_t all;
static int in_turn;

static void *meet(void *unused)
{
    CUcontext context;
    CUmodule module;
    CUfunction empty;
    CUstream stream;
    if (!in_turn) pthread_barrier_wait(&all);
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

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    app_driver = dlopen("libcuda.so.1", RTLD_NOW);
    pthread_barrier_init(&all, NULL, THREADS);
    in_turn = argc > 1 && !strcmp(argv[1], "in-turn");
    for (int i = 0; i < THREADS; i++) {
        THREAD(&threads[i], meet, NULL);
        if (in_turn) pthread_join(threads[i], NULL);
    }
    if (argc > 1 && !strcmp(argv[1], "flushing")) {
        nanosleep(&(struct timespec){0, 200000000}, NULL);
        app_flush();
    }
    for (int i = 0; i < THREADS && !in_turn; i++) pthread_join(threads[i], NULL);
    app_report();
    return 0;
}
