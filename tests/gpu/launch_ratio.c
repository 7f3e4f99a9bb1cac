/*
 * What recording adds to a kernel launch on a real GPU: gpu_driver_launch_ratio.
 *
 * One process under the shim launches an empty kernel both ways, in turns: through the symbol as
 * every program reaches it (the shim's wrapper) and through libcuda's own entry point, read from
 * libcuda's symbol table in memory, where no preload can put itself in front. Short turns of both
 * kinds alternate and each round starts with the other kind, so that clocks, caches and the GPU's
 * state change for both alike; each round gives one ratio, and the median of the rounds is printed.
 *
 *     LD_PRELOAD=build/libcustream_shim.so CUSTREAM_GPU=off build/gpu/launch_ratio [ROUNDS
 * [LAUNCHES]]
 *
 * Without the shim both ways are the same address; it says so and measures all the same, which
 * shows the noise. `linked` as first argument times the linked symbol alone, for comparisons across
 * processes (CUPTI slows both ways, so launch_full.py compares processes).
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "own_entry.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TURN = 500, /* stays below the 1024 launches that the driver queues before it blocks */
    FIRST_LAP = 66000 / TURN, /* turns that fill a thread's ring of the default 4 MiB once, touching
                                 each of its pages for the first time */
    MAX_ROUNDS = 101
};

typedef __typeof__(&cuLaunchKernel) launch_fn;

static void must(const char *what, CUresult rc)
{
    if (rc == CUDA_SUCCESS) return;
    fprintf(stderr, "launch_ratio: %s: %d\n", what, (int)rc);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static CUfunction empty;
static CUstream stream;

/* Nanoseconds of one turn; the synchronisation stays outside. */
static double turn(launch_fn launch)
{
    double start = now();
    for (int i = 0; i < TURN; i++)
        must("launch", launch(empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    double end = now();
    must("synchronise", cuStreamSynchronize(stream));
    return end - start;
}

static int ascending(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, ascending);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void set_up(void)
{
    static const char ptx[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n";
    CUdevice dev;
    CUcontext ctx;
    CUmodule mod;
    must("cuInit", cuInit(0));
    must("cuDeviceGet", cuDeviceGet(&dev, 0));
    must("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&ctx, dev));
    must("cuCtxSetCurrent", cuCtxSetCurrent(ctx));
    must("cuModuleLoadData", cuModuleLoadData(&mod, ptx));
    must("cuModuleGetFunction", cuModuleGetFunction(&empty, mod, "empty"));
    must("cuStreamCreate", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

int main(int argc, char **argv)
{
    int linked_only = argc > 1 && !strcmp(argv[1], "linked"), shift = linked_only;
    int rounds = argc > 1 + shift ? atoi(argv[1 + shift]) : 15,
        turns = (argc > 2 + shift ? atoi(argv[2 + shift]) : 20000) / TURN;
    double ratio[MAX_ROUNDS], ns[2][MAX_ROUNDS];
    if (rounds < 1 || rounds > MAX_ROUNDS || turns < 1)
        return fprintf(stderr, "usage: launch_ratio [linked] [ROUNDS [LAUNCHES]]\n"), 2;
    set_up();
    void *own = own_entry("cuLaunchKernel");
    if (!own) return fprintf(stderr, "launch_ratio: libcuda's symbol table not found\n"), 1;
    /* By dlsym, as cudart and the frameworks find it: right for both products, also the one that
     * exports no cu* symbols. */
    launch_fn way[2] = {
        (launch_fn)own, (launch_fn)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel")};
    if (!way[1]) return fprintf(stderr, "launch_ratio: no cuLaunchKernel\n"), 1;
    if (linked_only) way[0] = way[1];
    else if (way[0] == way[1])
        fprintf(stderr, "launch_ratio: both ways are the same address: the shim is not loaded\n");

    for (int i = 0; i < 20; i++) turn(way[i & 1]); /* warm up */
    double lap[2] = {0, 0};
    for (int i = 0; i < 2 * FIRST_LAP; i++) lap[(i + i / 2) & 1] += turn(way[(i + i / 2) & 1]);
    for (int r = 0; r < rounds; r++) {
        double sum[2] = {0, 0};
        for (int t = 0; t < turns; t++)
            for (int k = 0; k < 2; k++) {
                int which = (k + r) & 1;
                sum[which] += turn(way[which]);
            }
        for (int k = 0; k < 2; k++) ns[k][r] = sum[k] / ((double)turns * TURN);
        ratio[r] = sum[1] / sum[0];
    }
    if (linked_only) {
        printf("gpu_driver_launch_ns_linked %.1f ns\n", median(ns[1], rounds));
        return 0;
    }
    fprintf(stderr, "rounds:");
    for (int r = 0; r < rounds; r++) fprintf(stderr, " %.4f", ratio[r]);
    fprintf(stderr, "\n");
    double mid = median(ratio, rounds); /* sorts: the ends are the spread */
    printf("gpu_driver_launch_ratio %.4f ratio\n", mid);
    printf("gpu_driver_launch_ratio_low %.4f ratio\n", ratio[0]);
    printf("gpu_driver_launch_ratio_high %.4f ratio\n", ratio[rounds - 1]);
    printf("gpu_driver_launch_ratio_first_lap %.4f ratio\n", lap[1] / lap[0]);
    printf("gpu_driver_launch_ns_direct %.1f ns\n", median(ns[0], rounds));
    printf("gpu_driver_launch_ns_recorded %.1f ns\n", median(ns[1], rounds));
    return 0;
}
