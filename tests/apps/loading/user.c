/* A library that is linked to a driver: one stream, made and destroyed. */
#include <cuda.h>

int use(void)
{
    CUcontext context;
    CUstream stream = NULL;
    int results = (int)cuInit(0);
    results += (int)cuDevicePrimaryCtxRetain(&context, 0);
    results += (int)cuCtxSetCurrent(context);
    results += (int)cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    results += (int)cuStreamSynchronize(stream);
    return results + (int)cuStreamDestroy(stream);
}
