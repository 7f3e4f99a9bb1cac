/*
 * What a launch costs between two windows of CUSTREAM_WINDOW=every=S,for=S. launch_between.py runs
 * it by turns with CUSTREAM_TRACE=off.
 *
 *     between SECONDS EVERY FOR
 *
 * Launches an empty kernel in short turns for so many seconds, and tells turns in a window from
 * those between two by the time since the first call, which is where the library counts from too.
 * Turns near an edge count for neither: CUPTI is let go a moment after a window closes.
 */
#define _POSIX_C_SOURCE 200809L
#include <cuda.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TURN = 200, TURNS_MAX = 1 << 20 };
static const double EDGE = 0.3; /* seconds after a step, and half of it before the next */

static double took[2][TURNS_MAX]; /* ns a launch: between, within */
static int count[2];

static void must(const char *what, CUresult rc)
{
    if (rc == CUDA_SUCCESS) return;
    fprintf(stderr, "between: %s: %d\n", what, (int)rc);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int ascending(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static void print_median(const char *name, int which)
{
    if (!count[which]) return;
    qsort(took[which], (size_t)count[which], sizeof *took[which], ascending);
    printf("%s %.1f ns\n", name, took[which][count[which] / 2]);
}

/* 0: between two windows, 1: in one, -1: near an edge. */
static int place(double at, double every, double length)
{
    double phase = fmod(at, every);
    if (phase < length) return phase > EDGE && phase < length - EDGE / 2 ? 1 : -1;
    return phase > length + EDGE && phase < every - EDGE / 2 ? 0 : -1;
}

int main(int argc, char **argv)
{
    static const char ptx[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n";
    if (argc != 4) return fprintf(stderr, "usage: between SECONDS EVERY FOR\n"), 2;
    double seconds = atof(argv[1]), every = atof(argv[2]), length = atof(argv[3]), began = now();
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction empty;
    CUstream stream;
    must("cuInit", cuInit(0));
    must("cuDeviceGet", cuDeviceGet(&device, 0));
    must("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, device));
    must("cuCtxSetCurrent", cuCtxSetCurrent(context));
    must("cuModuleLoadData", cuModuleLoadData(&module, ptx));
    must("cuModuleGetFunction", cuModuleGetFunction(&empty, module, "empty"));
    must("cuStreamCreate", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    while (now() - began < seconds) {
        double start = now();
        for (int i = 0; i < TURN; i++)
            must("cuLaunchKernel", cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
        double end = now();
        must("cuStreamSynchronize", cuStreamSynchronize(stream));
        int which = place(start - began, every, length);
        if (which >= 0 && which == place(end - began, every, length) && count[which] < TURNS_MAX)
            took[which][count[which]++] = (end - start) / TURN * 1e9;
    }
    print_median("gpu_launch_ns_between", 0);
    print_median("gpu_launch_ns_within", 1);
    return 0;
}
