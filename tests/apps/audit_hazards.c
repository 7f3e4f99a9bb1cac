/*
 * Three places where only the legacy default stream keeps two operations in order, apart from each
 * other by cuCtxSynchronize; and the same program mended. Each operation is called from a function
 * of its own, by whose name a case knows it.
 *
 * audit_hazards planted [N]        N times over
 * audit_hazards events [N [one]]   with an event between the two; one: by one thread
 * audit_hazards waits              with the host waiting in between
 * audit_hazards queries            with the host asking until the first has ended
 * audit_hazards nonblocking        on a stream that the default stream has nothing to do with, and
 * by one thread
 */
#include "tests/apps/app.h"

enum mend { NOT, BY_EVENT, BY_WAIT, BY_QUERY };

static CUfunction first_kernel, second_kernel;
static CUdeviceptr memory;
static CUstream stream;
static CUevent event;
static enum mend mend;

#define PLACE __attribute__((noinline)) static void

PLACE before_default(void) { LAUNCH(first_kernel, stream); }
PLACE on_default(void) { LAUNCH(second_kernel, NULL); }
PLACE set_on_default(void) { OK(cuMemsetD8_v2, memory, 1, 64); }
PLACE after_default(void) { LAUNCH(second_kernel, stream); }
PLACE by_one_thread(void) { LAUNCH(first_kernel, NULL); }
PLACE by_another_thread(void) { LAUNCH(second_kernel, NULL); }

/* The second operation's stream comes to wait for the first's. */
static void first_done(CUstream on)
{
    if (mend == BY_EVENT) OK(cuEventRecord, event, on);
    if (mend == BY_WAIT) OK(cuStreamSynchronize, on);
    while (mend == BY_QUERY && CU(cuStreamQuery, on) == CUDA_ERROR_NOT_READY) {}
}
static void second_comes(CUstream on)
{
    if (mend == BY_EVENT) OK(cuStreamWaitEvent, on, event, 0);
}

static void *other(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    second_comes(NULL);
    by_another_thread();
    return unused;
}

static void pass(int threads)
{
    pthread_t thread;
    before_default();
    first_done(stream);
    second_comes(NULL);
    on_default();
    OK(cuCtxSynchronize);

    set_on_default();
    first_done(NULL);
    second_comes(stream);
    after_default();
    OK(cuCtxSynchronize);

    by_one_thread();
    first_done(NULL);
    if (threads) {
        THREAD(&thread, other, NULL);
        pthread_join(thread, NULL);
    }
    OK(cuCtxSynchronize);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "planted";
    int passes = argc > 2 ? atoi(argv[2]) : 1, plain = strcmp(how, "nonblocking") != 0;
    mend = !strcmp(how, "events")    ? BY_EVENT
           : !strcmp(how, "waits")   ? BY_WAIT
           : !strcmp(how, "queries") ? BY_QUERY
                                     : NOT;
    app_start(0);
    first_kernel = app_kernel("first_kernel");
    second_kernel = app_kernel("second_kernel");
    OK(cuMemAlloc_v2, &memory, 4096);
    OK(cuStreamCreate, &stream, plain ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    for (int i = 0; i < passes; i++) pass(plain && !(argc > 3 && !strcmp(argv[3], "one")));
    NOTE("stream", "%p", (void *)stream);
    NOTE("main", "%ld", app_tid());
    app_report();
    return 0;
}
