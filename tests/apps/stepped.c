/*
 * A signal handler that calls CUDA, at every instruction of the shim that fills a record: the
 * processor traps after each one (its trap flag), and the handler makes a call at each place where
 * it has made none. That takes many rounds: no two calls of a round are so close that they fall
 * into one record.
 *
 * Host functions and stream callbacks are stepped on the driver's thread, NVTX on the program's. A
 * delay is the shim's own host function, and begins in the driver: the first few rounds step the
 * driver's code too, which takes its time. Each thread's ring has gone round before, so that a slot
 * which is published and not filled shows: it holds a call of the first lap once more.
 */
#include "tests/apps/app.h"
#include "tests/apps/step.h"

#include <nvtx3/nvToolsExt.h>

enum {
    APART = 64, /* instructions; filling a record takes less */
    LAP = 1500, /* calls; a ring of 64K holds 1024 */
    WHOLE = 4,  /* rounds with the driver's code */
    ROUNDS_MOST = 500,
};

static CUstream stream;
static CUevent event;
static struct step_code shim = {.library = "libcustream_shim"}, driver = {.library = "libcuda.so"};
static unsigned char met[16 << 20];
static long calls, since, callbacks, rounds;

static void trapped(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    const int saved = errno;
    const uintptr_t at = step_place(context);
    if (rounds >= WHOLE && step_is_in(at, &driver)) step_no_more(context);
    if (step_is_in(at, &shim) && since++ >= (rounds < WHOLE ? APART / 4 : APART) &&
        !met[at - shim.from]) {
        met[at - shim.from] = rounds >= WHOLE;
        since = 0;
        calls++;
        CU(cuEventQuery, event);
    }
    errno = saved;
}

static void CUDA_CB lap(void *unused)
{
    (void)unused;
    for (int i = 0; i < LAP; i++) CU(cuStreamQuery, stream);
    callbacks++;
}

static void CUDA_CB first(void *unused)
{
    (void)unused;
    sigset_t trap;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    pthread_sigmask(SIG_UNBLOCK, &trap, NULL); /* the driver's threads block signals */
    callbacks++;
    steps(1);
}

static void CUDA_CB last(void *unused)
{
    steps(0);
    (void)unused;
    callbacks++;
}

static void CUDA_CB between(CUstream given, CUresult status, void *unused)
{
    (void)given, (void)status, (void)unused;
    callbacks++;
    steps(1);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    CUdeviceptr memory;
    sigaction(SIGTRAP, &action, NULL);
    app_start(0);
    step_find(&shim);
    step_find(&driver);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    OK(cuEventQuery, event);
    OK(cuMemAlloc_v2, &memory, 4);
    OK(cuLaunchHostFunc, stream, lap, NULL);
    OK(cuStreamSynchronize, stream);
    lap(NULL);
    for (long before = -1; (rounds <= WHOLE || before < calls) && rounds < ROUNDS_MOST; rounds++) {
        before = calls;
        since = rounds % APART; /* so that places near the beginning have their turn */
        OK(cuLaunchHostFunc, stream, first, NULL);
        OK(cuStreamAddCallback, stream, between, NULL, 0);
        OK(cuMemsetD8Async, memory, 0, 4,
            stream); /* delayed on the stream, where a policy says so */
        OK(cuLaunchHostFunc, stream, last, NULL);
        OK(cuStreamSynchronize, stream);
        steps(1);
        nvtxRangePushA("range");
        nvtxMarkA("mark");
        nvtxRangePop();
        steps(0);
    }
    OK(cuMemFree_v2, memory);
    OK(cuEventDestroy_v2, event);
    OK(cuStreamDestroy_v2, stream);
    OK(cuDevicePrimaryCtxRelease_v2, 0);
    NOTE("rounds", "%ld", rounds);
    NOTE("callbacks", "%ld", callbacks);
    NOTE("handled", "%ld", calls);
    app_report();
    return 0;
}
