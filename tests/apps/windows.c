/* windows: opens and closes its window N times, so fast that the trace has little else; the last
 * time it stays closed. */
#include "tests/apps/app.h"

CUresult CUDAAPI cuProfilerStart(
    void); /* of cudaProfiler.h, which not every package of headers has */
CUresult CUDAAPI cuProfilerStop(void);

int main(int argc, char **argv)
{
    app_start(0);
    for (int i = 0, n = argc > 1 ? atoi(argv[1]) : 1; i < n; i++) {
        OK(cuProfilerStart);
        OK(cuProfilerStop);
    }
    app_report();
    return 0;
}
