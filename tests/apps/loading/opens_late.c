/* A library with functions of the driver's names, which open the driver when they are first called.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>

CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
    CUdriverProcAddressQueryResult *status)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    __typeof__(&cuGetProcAddress_v2) real =
        driver ? (__typeof__(real))dlsym(driver, "cuGetProcAddress_v2") : NULL;
    return real ? real(symbol, pfn, version, flags, status) : CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
}

static void *find(const char *name, int version)
{
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    return cuGetProcAddress_v2(name, &found, version, 0, &status) == CUDA_SUCCESS ? found : NULL;
}

int use(void)
{
    CUcontext context;
    CUstream stream;
    __typeof__(&cuInit) init = (__typeof__(init))find("cuInit", 2000);
    __typeof__(&cuDevicePrimaryCtxRetain) retain =
        (__typeof__(retain))find("cuDevicePrimaryCtxRetain", 7000);
    __typeof__(&cuCtxSetCurrent) set = (__typeof__(set))find("cuCtxSetCurrent", 4000);
    __typeof__(&cuStreamCreate) create = (__typeof__(create))find("cuStreamCreate", 2000);
    if (!init || !retain || !set || !create) return -1;
    return (int)init(0) + (int)retain(&context, 0) + (int)set(context) +
           (int)create(&stream, CU_STREAM_NON_BLOCKING);
}
