/*
 * floats HOW: calculates with numbers as programs may, and looks at what is left of it after each
 * call of CUDA.
 *
 *     look      nothing is special; a call leaves no mark of a result that was not exact
 *     trap      such a result ends the thread that calculates, by SIGFPE; threads inherit that
 *     up        results are rounded up; a call leaves it so
 */
#include "tests/apps/app.h"

#include <fenv.h>

enum { CALLS = 50 };

static int rounding;

static void look(const char *where)
{
    const int marks = fetestexcept(FE_ALL_EXCEPT);
    if (marks || fegetround() != rounding)
        printf("%s left marks %x, rounding %x\n", where, marks, fegetround());
    feclearexcept(FE_ALL_EXCEPT);
}

static void *run(void *unused)
{
    CUstream stream;
    CUevent event;
    OK(cuCtxSetCurrent, app_context);
    look("cuCtxSetCurrent");
    CUfunction kernel = app_kernel("sleep_us_10");
    OK(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, -1);
    OK(cuEventCreate, &event, 0);
    look("cuEventCreate");
    for (int i = 0; i < CALLS; i++) {
        LAUNCH(kernel, stream);
        LAUNCH(kernel, NULL);
        OK(cuEventRecord, event, stream);
        look("a launch");
        OK(cuStreamSynchronize, stream);
        look("cuStreamSynchronize");
    }
    OK(cuStreamDestroy_v2, stream);
    look("cuStreamDestroy_v2");
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 2) return 2;
    if (!strcmp(argv[1], "trap")) feenableexcept(FE_ALL_EXCEPT);
    if (!strcmp(argv[1], "up")) fesetround(FE_UPWARD);
    rounding = fegetround();
    feclearexcept(FE_ALL_EXCEPT);
    OK(cuInit, 0);
    look("cuInit");
    app_start(0);
    look("the first calls");
    run(NULL);
    THREAD(&thread, run, NULL);
    pthread_join(thread, NULL);
    app_report();
    look("the program");
    return 0;
}
