/* A thread that is to be cancelled, and whose next point where that may happen comes after all of
 * its CUDA calls. Says how far it came. */
#include "app.h"

static CUfunction kernel;
static pthread_barrier_t told;
static const char *reached = "nothing";

static void ends(void *unused)
{
    (void)unused;
    printf("cancelled after %s\n", reached);
}

static void calls(void)
{
    CUstream stream;
    OK(cuCtxSetCurrent, app_context);
    OK(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, -100);
    reached = "the stream";
    for (int i = 0; i < 20000; i++) LAUNCH(kernel, stream);
    reached = "the launches";
    OK(cuMemsetD8Async, 0, 0, 0, NULL);
    OK(cuStreamSynchronize, stream);
    OK(cuStreamDestroy_v2, stream);
    reached = "all calls";
}

static void *run(void *unused)
{
    (void)unused;
    pthread_cleanup_push(ends, NULL);
    pthread_barrier_wait(&told);
    pthread_barrier_wait(&told);
    calls();
    pthread_testcancel();
    reached = "the end";
    pthread_cleanup_pop(1);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    void *result;
    app_start(0);
    kernel = app_kernel("k");
    pthread_barrier_init(&told, NULL, 2);
    THREAD(&thread, run, NULL);
    pthread_barrier_wait(&told);
    pthread_cancel(thread);
    pthread_barrier_wait(&told);
    pthread_join(thread, &result);
    printf("cancelled %d\n", result == PTHREAD_CANCELED);
    app_report();
    return 0;
}
