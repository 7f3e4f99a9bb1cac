/*
 * libboth_ways.so: a few driver calls for a script in any language, each as every program makes it
 * (through the shim, where one is preloaded) and through libcuda's own entry point. A context must
 * be current.
 *
 *     int both_ways_open(void)                                      0, or a CUDA error; -1:
 * libcuda's own entry points are not found int both_ways_own_priority(stream, int *priority) what
 * the driver itself says of a stream int both_ways_own_range(int *least, int *greatest) and of the
 * device int both_ways_mark(stream, grid)                              an empty kernel, known by
 * its grid, through the shim double both_ways_ns(own, what, stream, count) nanoseconds of a call:
 * what 0 cuStreamQuery, 1 cuLaunchKernel; negative: refused
 */
#define _GNU_SOURCE
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "own_entry.h"

#include <dlfcn.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

static struct way {
    __typeof__(&cuStreamQuery) query;
    __typeof__(&cuLaunchKernel) launch;
    __typeof__(&cuStreamGetPriority) priority;
    __typeof__(&cuCtxGetStreamPriorityRange) range;
} through, own;
static CUfunction mark;

EXPORT int both_ways_open(void)
{
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry "
                              "both_ways_mark() { ret; }\n";
    __typeof__(&cuModuleLoadData) load;
    __typeof__(&cuModuleGetFunction) function;
    CUmodule module;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (mark) return 0;
    if (!driver) return -1;
#define FIND(member, name) through.member = (__typeof__(through.member))dlsym(driver, #name), \
    own.member = (__typeof__(own.member))own_entry(#name)
    FIND(query, cuStreamQuery);
    FIND(launch, cuLaunchKernel);
    FIND(priority, cuStreamGetPriority);
    FIND(range, cuCtxGetStreamPriorityRange);
#undef FIND
    load = (__typeof__(load))dlsym(driver, "cuModuleLoadData");
    function = (__typeof__(function))dlsym(driver, "cuModuleGetFunction");
    if (!own.query || !own.launch || !own.priority || !own.range || !load || !function) return -1;
    CUresult rc = load(&module, ptx);
    return rc ? (int)rc : (int)function(&mark, module, "both_ways_mark");
}

EXPORT int both_ways_own_priority(CUstream stream, int *priority)
{
    return (int)own.priority(stream, priority);
}
EXPORT int both_ways_own_range(int *least, int *greatest)
{
    return (int)own.range(least, greatest);
}
EXPORT int both_ways_mark(CUstream stream, unsigned grid)
{
    return (int)through.launch(mark, grid, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Launches come in batches that the launch queue holds, and each batch finds the stream idle; the
 * waits for that are not counted. */
EXPORT double both_ways_ns(int by_own, int what, CUstream stream, int count)
{
    enum { BATCH = 500 };
    const struct way *way = by_own ? &own : &through;
    CUresult rc = CUDA_SUCCESS;
    double spent = 0;
    for (int done = 0; done < count; done += BATCH) {
        int n = count - done < BATCH ? count - done : BATCH;
        while (own.query(stream) == CUDA_ERROR_NOT_READY) continue;
        double begin = now();
        for (int i = 0; i < n && rc == CUDA_SUCCESS; i++)
            rc = what ? way->launch(mark, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL)
                      : way->query(stream);
        spent += now() - begin;
    }
    return rc == CUDA_SUCCESS && count > 0 ? spent / count : -1;
}
