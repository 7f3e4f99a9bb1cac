/*
 * gpu_launch_ratio_host: what a launch through the CUDA runtime costs with its record, over the
 * same launch without.
 *
 *     LD_PRELOAD=build/libcustream_shim.so CUSTREAM_TRACE=/tmp/launch.json build/gpu/launch_runtime
 * [ROUNDS [LAUNCHES]]
 *
 * Both loops are the same object code in two libraries, each with its own static runtime, in one
 * process and interleaved. One library is named libnvidia-...: the shim gives NVIDIA's tools the
 * driver's own entry points, so its runtime launches past the wrappers.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef double launches_fn(int count);

static launches_fn *open_launcher(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "%s\n", dlerror()), exit(2);
    return (launches_fn *)dlsym(library, "launches");
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, ascending);
    return values[n / 2];
}

int main(int argc, char **argv)
{
    enum { MOST = 101 };
    int rounds = argc > 1 ? atoi(argv[1]) : 31, count = argc > 2 ? atoi(argv[2]) : 10000;
    char self[4096] = "";
    double ratio[MOST], direct[MOST], recorded[MOST];
    if (rounds < 7 || rounds > MOST || count < 500 ||
        readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 2;
    const char *folder = dirname(self);
    launches_fn *bare = open_launcher(folder, "libnvidia-launcher.so"),
                *wrapped = open_launcher(folder, "liblauncher.so");
    if (bare(80000) < 0 || wrapped(80000) < 0)
        return fprintf(stderr, "launch_runtime: no GPU\n"), 1; /* warm, and once round the ring */
    for (int i = 0; i < rounds; i++) {
        if (i & 1) recorded[i] = wrapped(count), direct[i] = bare(count);
        else direct[i] = bare(count), recorded[i] = wrapped(count);
        ratio[i] = recorded[i] / direct[i];
    }
    printf("gpu_launch_ratio_host %.4f ratio\n", median(ratio, rounds));
    printf("gpu_runtime_launch_ns_direct %.1f ns\ngpu_runtime_launch_ns_recorded %.1f ns\n",
        median(direct, rounds), median(recorded, rounds));
    return 0;
}
