/*
 * What the test programs share: driver calls that count themselves, and a report that a case
 * compares with the trace.
 *
 * CU(name, arguments...) makes one driver call, OK(...) one that must succeed. A program reaches
 * the driver by dlopen and dlsym, or, built with -DAPP_LINKED, through the symbols it is linked to.
 * Standard output must not depend on the shim: what differs from run to run (addresses, thread ids)
 * goes to standard error, as lines "note KEY VALUE".
 */
#ifndef APPS_APP_H
#define APPS_APP_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct app_call {
    const char *name;
    void *address;
    long count;
    struct app_call *next;
};
static struct app_call *app_calls; /* every place in the program that made a call */
static void *app_driver;
static CUcontext app_context;
static CUmodule app_module;

/* The driver's entry point, looked up once a place. The program ends with status 3 where there is
 * no driver, as without the shim. */
__attribute__((unused)) static void *app_find(struct app_call *call)
{
    if (!app_driver && !(app_driver = dlopen("libcuda.so.1", RTLD_NOW))) {
        printf("no driver\n");
        exit(3);
    }
    if (!call->address && !(call->address = dlsym(app_driver, call->name))) {
        printf("no %s\n", call->name);
        exit(4);
    }
    return call->address;
}

static void app_count(struct app_call *call)
{
    if (__atomic_fetch_add(&call->count, 1, __ATOMIC_RELAXED)) return;
    call->next = __atomic_load_n(&app_calls, __ATOMIC_ACQUIRE);
    while (!__atomic_compare_exchange_n(
        &app_calls, &call->next, call, 0, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {}
}

/* With CUSTREAM_FAKE_ERRNO (tests/fakecuda/left.h): what each call has left there, as "note errno
 * NAME NUMBER". */
static const char *app_left;
enum { APP_BEFORE = 77 }; /* errno before each call */
__attribute__((constructor)) static void app_left_asked(void)
{
    app_left = getenv("CUSTREAM_FAKE_ERRNO");
}

__attribute__((unused)) static void app_judge(const char *name)
{
    const int left = errno;
    fprintf(stderr, "note errno %s %d\n", name, left);
    errno = left;
}

#ifdef APP_LINKED
#define APP_ADDRESS(call, name) (&name)
#else
#define APP_ADDRESS(call, name) ((__typeof__(&name))app_find(call))
#endif

#define CU(symbol, ...) \
    ({ \
        static struct app_call call_ = {.name = #symbol}; \
        app_count(&call_); \
        if (app_left) errno = APP_BEFORE; \
        __typeof__(symbol(__VA_ARGS__)) answer_ = APP_ADDRESS(&call_, symbol)(__VA_ARGS__); \
        if (app_left) app_judge(call_.name); \
        answer_; \
    })
#define OK(symbol, ...) \
    do { \
        CUresult result_ = CU(symbol, ##__VA_ARGS__); \
        if (result_ != CUDA_SUCCESS) fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, \
        #symbol, (int)result_), exit(9); \
    } while (0)
/* Says what the driver answered. */
#define SAY(symbol, ...) printf("%s %d\n", #symbol, (int)CU(symbol, ##__VA_ARGS__))

#define NOTE(key, format, ...) fprintf(stderr, "note %s " format "\n", key, __VA_ARGS__)

static int app_by_name(const void *a, const void *b)
{
    return strcmp((*(struct app_call *const *)a)->name, (*(struct app_call *const *)b)->name);
}

/* "calls NAME COUNT" for every call made so far, by name; one line for all places of a name. */
__attribute__((unused)) static void app_report(void)
{
    static struct app_call *all[1024];
    size_t n = 0;
    for (struct app_call *c = app_calls; c && n < 1024; c = c->next) all[n++] = c;
    qsort(all, n, sizeof *all, app_by_name);
    for (size_t i = 0; i < n;) {
        long count = 0;
        size_t first = i;
        while (i < n && !strcmp(all[i]->name, all[first]->name)) count += all[i++]->count;
        printf("calls %s %ld\n", all[first]->name, count);
    }
    fflush(stdout);
}

/* The device's primary context, current on this thread, and an empty module; a kernel is what its
 * name says (docs/fakecuda.md). */
__attribute__((unused)) static void app_start(int device)
{
    CUresult there = CU(cuInit, 0);
    if (there != CUDA_SUCCESS) {
        printf("cuInit %d\n", (int)there);
        exit(3);
    }
    OK(cuDevicePrimaryCtxRetain, &app_context, device);
    OK(cuCtxSetCurrent, app_context);
    OK(cuModuleLoadData, &app_module, ".version 7.0\n.target sm_52\n.address_size 64\n");
}

__attribute__((unused)) static CUfunction app_kernel(const char *name)
{
    CUfunction kernel;
    OK(cuModuleGetFunction, &kernel, app_module, name);
    return kernel;
}

#define LAUNCH(kernel, stream) OK(cuLaunchKernel, kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, \
    NULL)

__attribute__((unused)) static void app_sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}
/* A flush: all that has been recorded is in the file, if the library is there. */
__attribute__((unused)) static void app_flush(void)
{
    void (*flush)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "custream_trace_flush");
    if (flush) flush();
}
__attribute__((unused)) static long app_tid(void) { return syscall(SYS_gettid); }

/* proc(5): "R" runs, "S" sleeps. 0: it is gone, or its name does not begin so. */
static char app_state(long tid, const char *name)
{
    char path[64], has[64] = "", state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", tid);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%*d (%63[^)]) %c", has, &state) != 2 ||
        strncmp(has, name, strlen(name)))
        state = 0;
    if (file) fclose(file);
    return state;
}

/* The thread sleeps. Between the begin of a call that waits and the driver nothing of ours does: so
 * it is in the driver. */
__attribute__((unused)) static int app_sleeps(long tid) { return app_state(tid, "") == 'S'; }

/* No thread of the library runs, and none has for a while: they have begun, and wait for something
 * to do. One of the simulated GPU may look at a gate meanwhile. */
__attribute__((unused)) static void app_rest(void)
{
    DIR *threads = opendir("/proc/self/task");
    for (int still = 0; threads && still < 40; still++, app_sleep_ms(5)) {
        rewinddir(threads);
        for (struct dirent *one; (one = readdir(threads));)
            if (atol(one->d_name) > 0 &&
                strchr("RD", app_state(atol(one->d_name), "custream") ?: 'S'))
                still = -1;
    }
    if (threads) closedir(threads);
}

/* A gate on a stream: what is enqueued behind it runs only once it is opened, however slow the
 * machine is. */
__attribute__((unused)) static volatile unsigned *app_gate(CUstream stream)
{
    void *gate;
    OK(cuMemAllocHost_v2, &gate, 4);
    *(volatile unsigned *)gate = 0;
    OK(cuStreamWaitValue32_v2, stream, (CUdeviceptr)(size_t)gate, 1, CU_STREAM_WAIT_VALUE_GEQ);
    return gate;
}

#define THREAD(id, function, argument) \
    do { \
        int failed_ = pthread_create(id, NULL, function, argument); \
        if (failed_) fprintf(stderr, "pthread_create: %s\n", strerror(failed_)), exit(8); \
    } while (0)

#endif
