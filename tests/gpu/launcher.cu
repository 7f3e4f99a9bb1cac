// A loop of launches as programs write them, `empty<<<1, 1>>>()`, in a library with a CUDA runtime of its own. Built twice under two names; see
// launch_runtime.c.
#include <time.h>

__global__ void empty() {}

static double now() {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

// Nanoseconds a launch takes on the host. Waits for the GPU outside of what it measures, often enough for the launch queue never to fill. Negative on failure.
extern "C" double launches(int count) {
    enum { BATCH = 500 };
    double spent = 0;
    for (int done = 0; done < count; done += BATCH) {
        double start = now();
        for (int i = 0; i < BATCH; i++) empty<<<1, 1>>>();
        spent += now() - start;
        if (cudaDeviceSynchronize() != cudaSuccess) return -1;
    }
    return spent / count * 1e9;
}
