/* Work on every device: two streams each, and the default one. The last device's streams get most.
 */
#include "tests/apps/app.h"

int main(void)
{
    CUcontext context[16];
    CUstream stream[16][2];
    int count;
    OK(cuInit, 0);
    OK(cuDeviceGetCount, &count);
    printf("devices %d\n", count);
    for (int d = 0; d < count; d++) {
        OK(cuDevicePrimaryCtxRetain, &context[d], d);
        OK(cuCtxSetCurrent, context[d]);
        for (int s = 0; s < 2; s++) OK(cuStreamCreate, &stream[d][s], CU_STREAM_NON_BLOCKING);
    }
    for (int d = 0; d < count; d++) {
        OK(cuCtxSetCurrent, context[d]);
        for (int i = 0; i < 3 + d; i++) OK(cuMemsetD8Async, 0, 0, 0, stream[d][0]);
        for (int i = 0; i < 5 + d; i++) OK(cuMemsetD8Async, 0, 0, 0, stream[d][1]);
        for (int i = 0; i < 7 + d; i++) OK(cuMemsetD8Async, 0, 0, 0, NULL);
    }
    /* A stream says by itself which device it is of, whatever is current. */
    OK(cuCtxSetCurrent, context[0]);
    OK(cuStreamSynchronize, stream[count - 1][1]);
    for (int d = 0; d < count; d++) {
        OK(cuCtxSetCurrent, context[d]);
        for (int s = 0; s < 2; s++) OK(cuStreamDestroy_v2, stream[d][s]);
        OK(cuDevicePrimaryCtxRelease_v2, d);
    }
    app_report();
    return 0;
}
