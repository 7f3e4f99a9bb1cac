/*
 * asks [4]: the process's first call of the driver is cuGetProcAddress, in the newer form or in
 * that of four parameters, by a program that is linked to the driver. Then a stream is made by the
 * function that was given.
 */
#include "tests/apps/app.h"

int main(int argc, char **argv)
{
    CUresult (*create)(CUstream *, unsigned) = NULL;
    CUdriverProcAddressQueryResult status;
    CUcontext context;
    CUstream stream;
    const int four = argc > 1 && !strcmp(argv[1], "4");
    printf("asked: %d\n",
        four ? cuGetProcAddress("cuStreamCreate", (void **)&create, 12000, 0)
             : cuGetProcAddress_v2("cuStreamCreate", (void **)&create, 12000, 0, &status));
    OK(cuInit, 0);
    OK(cuDevicePrimaryCtxRetain, &context, 0);
    OK(cuCtxSetCurrent, context);
    if (create) printf("made: %d\n", create(&stream, CU_STREAM_DEFAULT));
    app_report();
    return 0;
}
