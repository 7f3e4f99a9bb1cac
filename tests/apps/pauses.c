/*
 * A thread that computes, sleeps and waits for its GPU between its calls, 4 ms at least each time.
 * Notes say how much processor time the thread had used by then, in microseconds.
 */
#include "tests/apps/app.h"

enum { MS = 4 };

static long cpu_us(void)
{
    struct timespec cpu;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return cpu.tv_sec * 1000000 + cpu.tv_nsec / 1000;
}

static void compute(void)
{
    for (const long from = cpu_us(); cpu_us() < from + MS * 1000;) {}
}

static void CUDA_CB slow_function(void *unused)
{
    (void)unused;
    app_sleep_ms(MS);
}

static void told(const char *name, int round)
{
    fprintf(stderr, "note %s%d %ld\n", name, round, cpu_us());
}

static void *work(void *argument)
{
    const int round = *(int *)argument;
    CUstream stream;
    CUevent event;
    OK(cuCtxSetCurrent, app_context);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    compute();
    told("computed", round);
    OK(cuEventRecord, event, stream);
    app_sleep_ms(MS);
    told("slept", round);
    errno = APP_BEFORE;
    OK(cuEventQuery, event);
    printf("errno %s\n", errno == APP_BEFORE ? "kept" : "lost");
    OK(cuLaunchHostFunc, stream, slow_function, NULL);
    OK(cuStreamSynchronize, stream);
    told("waited", round);
    OK(cuEventDestroy_v2, event);
    OK(cuStreamDestroy_v2, stream);
    return argument;
}

int main(void)
{
    pthread_t thread;
    app_start(0);
    for (int i = 0; i < 2; i++) { /* the second thread takes over what we keep of the first */
        if (pthread_create(&thread, NULL, work, &i)) return 1;
        pthread_join(thread, NULL);
    }
    OK(cuDevicePrimaryCtxRelease_v2, 0);
    app_report();
    return 0;
}
