/* A driver of another name. Its answers are its own: a caller gets them, or somebody else's. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#define ANSWER 100000
CUresult CUDAAPI cuInit(unsigned flags) { return flags ? 1 : 0; }
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    return *context = (CUcontext)0x10, device ? 1 : 0;
}
CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) { return context == (CUcontext)0x10 ? 0 : 1; }
CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned flags)
{
    return *stream = (CUstream)0x20, flags ? ANSWER : 1;
}
CUresult CUDAAPI cuStreamSynchronize(CUstream stream)
{
    return stream == (CUstream)0x20 ? ANSWER : 1;
}
CUresult CUDAAPI cuStreamDestroy_v2(CUstream stream)
{
    return stream == (CUstream)0x20 ? ANSWER : 1;
}
