/*
 * parts HOW COUNT: work enough for a trace of several parts, with all that lasts longer than one:
 * streams, one of them used once, ranges, an event recorded once and waited for again and again.
 * Waits that should have an arrow are counted in the line "arrows COUNT". HOW is what happens on
 * the way: "all" nothing; "kill" the process kills itself at the end, "fork" a child records too,
 * "chdir" the folder is another from the middle on, "replace" somebody moves the trace away in the
 * middle and puts a file of his own there, "replace-both" and another at the name beside it,
 * "files" no file can be opened from the middle on, "full" no file can be written to.
 */
#include "tests/apps/app.h"

#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

static CUstream a, b, idle;
static CUevent once, again;
static CUfunction kernel;
static long arrows;

static void CUDA_CB called(void *unused) { (void)unused; }

static void short_stream(void)
{
    CUstream stream;
    OK(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, -2);
    LAUNCH(kernel, stream);
    OK(cuStreamDestroy_v2, stream);
}

static void rounds(long from, long to)
{
    for (long i = from; i < to; i++) {
        OK(cuEventRecord, again, a);
        OK(cuStreamWaitEvent, b, again, 0);
        arrows++;
        LAUNCH(kernel, b);
        if (i % 100 == 50) {
            OK(cuStreamWaitEvent, b, once, 0);
            arrows++;
        }
        if (i % 50 == 7) short_stream();
        if (i % 500 == 11) OK(cuLaunchHostFunc, a, called, NULL);
        if (i % 1000 == 999) OK(cuStreamSynchronize, b);
    }
}

static void *other_thread(void *count)
{
    OK(cuCtxSetCurrent, app_context);
    nvtxRangePushA("all of the thread");
    for (long i = 0; i < *(long *)count; i++) LAUNCH(kernel, CU_STREAM_PER_THREAD);
    nvtxRangePop();
    return NULL;
}

static void limit(int what, rlim_t value)
{
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(what, &(struct rlimit){value, value})) exit(7);
}

static void put_mine(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs("mine\n", file) < 0 || fclose(file)) exit(6);
}

static void replace(bool both)
{
    char taken[4096], beside[4096];
    const char *path = getenv("CUSTREAM_TRACE"), *dot = strrchr(path, '.');
    snprintf(taken, sizeof taken, "%s.taken", path);
    snprintf(beside, sizeof beside, "%.*s-%d%s", (int)(dot - path), path, (int)getpid(), dot);
    if (both) put_mine(beside);
    if (rename(path, taken)) exit(6);
    put_mine(path);
}

static void child(long count)
{
    NOTE("child", "%d", (int)getpid());
    for (long i = 0; i < count; i++) CU(cuStreamQuery, a);
    _exit(0);
}

static void in_the_middle(const char *how, long count)
{
    if (strcmp(how, "all")) app_flush(); /* some parts are there */
    if (!strcmp(how, "chdir") && chdir("/")) exit(5);
    if (!strcmp(how, "files")) limit(RLIMIT_NOFILE, 0);
    if (!strcmp(how, "full")) limit(RLIMIT_FSIZE, 512);
    if (!strncmp(how, "replace", 7)) replace(how[7]);
    if (!strcmp(how, "fork")) {
        pid_t pid = fork();
        if (!pid) child(2 * count);
        waitpid(pid, NULL, 0);
    }
}

static long resident_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %ld", &kb);
    if (status) fclose(status);
    return kb;
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    const char *how = argv[1];
    long count = atol(argv[2]);
    pthread_t thread;
    app_start(0);
    kernel = app_kernel("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
                        "11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_");
    OK(cuStreamCreate, &a, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreate, &b, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreate, &idle, CU_STREAM_DEFAULT);
    OK(cuEventCreate, &once, CU_EVENT_DISABLE_TIMING);
    OK(cuEventCreate, &again, CU_EVENT_DISABLE_TIMING);
    OK(cuEventRecord, once, a);
    LAUNCH(kernel, idle);
    NOTE("main", "%ld", app_tid());
    NOTE("a", "%p", (void *)a);
    NOTE("b", "%p", (void *)b);
    NOTE("idle", "%p", (void *)idle);
    nvtxRangeId_t range = nvtxRangeStartA("all of the process");
    nvtxRangePushA("outer");
    nvtxRangePushA("inner");
    THREAD(&thread, other_thread, &count);
    rounds(0, count / 2);
    pthread_join(thread, NULL);
    in_the_middle(how, count);
    rounds(count / 2, count);
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangeEnd(range);
    if (!strcmp(how, "kill")) {
        app_flush();
        raise(SIGKILL);
    }
    OK(cuCtxSynchronize);
    OK(cuEventDestroy_v2, once);
    OK(cuEventDestroy_v2, again);
    OK(cuStreamDestroy_v2, a);
    OK(cuStreamDestroy_v2, b);
    OK(cuStreamDestroy_v2, idle);
    OK(cuDevicePrimaryCtxRelease_v2, 0);
    NOTE("resident", "%ld", resident_kb());
    printf("arrows %ld\n", arrows);
    app_report();
    return 0;
}
