/* Looking symbols up: versions, flags, status, identity with dlsym, a driver of CUDA 12.0, what is
 * exported. Argument: the driver's version. */
#include <dlfcn.h>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "check.h"

static void *library;
static CUresult (*get)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static void *found(const char *name, int version, cuuint64_t flags, int status)
{
    CUdriverProcAddressQueryResult result = 99;
    void *pointer = (void *)1;

    OK(get(name, &pointer, version, flags, &result));
    CHECK_IS(result, status);
    return pointer;
}

static void is(const char *name, int version, cuuint64_t flags, const char *symbol)
{
    void *pointer = found(name, version, flags, 0), *expected = dlsym(library, symbol);

    if (pointer && pointer == expected) return;
    fprintf(stderr, "%s %d %d: %p is not %s %p\n", name, version, (int)flags, pointer, symbol,
        expected);
    failures++;
}

int main(int argc, char **argv)
{
    int driver = argc > 1 ? atoi(argv[1]) : CUDA_VERSION, version = 0;
    CUresult (*get_version)(int *);
    CUresult (*get4)(const char *, void **, int, cuuint64_t);
    void *pointer;

    begin();
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return 1;
    CHECK(dlsym(library, "custream_fakecuda_version") != NULL);
    *(void **)&get = dlsym(library, "cuGetProcAddress_v2");
    *(void **)&get4 = dlsym(library, "cuGetProcAddress");
    *(void **)&get_version = dlsym(library, "cuDriverGetVersion");
    OK(get_version(&version));
    CHECK_IS(version, driver);

    is("cuStreamDestroy", 2000, 0, "cuStreamDestroy");
    is("cuStreamDestroy", 3020, 0, "cuStreamDestroy");
    is("cuStreamDestroy", 4000, 1, "cuStreamDestroy_v2");
    is("cuStreamDestroy", 12000, 2, "cuStreamDestroy_v2"); /* has no per-thread sibling */
    is("cuMemcpyHtoD", 2000, 0, "cuMemcpyHtoD");
    is("cuMemcpyHtoD", 12000, 0, "cuMemcpyHtoD_v2");
    is("cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds");
    is("cuLaunchKernel", 7000, 2, "cuLaunchKernel_ptsz");
    is("cuStreamBeginCapture", 10000, 0, "cuStreamBeginCapture");
    is("cuStreamBeginCapture", 10010, 2, "cuStreamBeginCapture_v2_ptsz");
    is("cuStreamGetCaptureInfo", 11030, 0, "cuStreamGetCaptureInfo_v2");
    is("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
    is("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");

    CHECK(found("cuLaunchKernel", 4000, 2, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) == NULL);
    CHECK(found("cuMemAllocAsync", 11010, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) == NULL);
    CHECK(found("cuNoSuchCall", 12000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == NULL);
    CHECK(found("", 0, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == NULL);
    CHECK_IS(get4("cuNoSuchCall", &pointer, 12000, 0), CUDA_ERROR_NOT_FOUND);
    OK(get4("cuInit", &pointer, 12000, 0));
    CHECK(pointer == dlsym(library, "cuInit"));
    CHECK_IS(get("cuInit", NULL, 12000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(get("cuInit", &pointer, 12000, 8, NULL), CUDA_ERROR_INVALID_VALUE);

    if (driver >= 13000) {
        is("cuCtxSynchronize", 12080, 0, "cuCtxSynchronize");
        is("cuCtxSynchronize", 13000, 0, "cuCtxSynchronize_v2");
        is("cuStreamGetDevice", 13000, 2, "cuStreamGetDevice_ptsz");
    } else {
        is("cuCtxSynchronize", 13000, 0, "cuCtxSynchronize");
        CHECK(found("cuStreamGetDevice", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == NULL);
        is("cuStreamGetCaptureInfo", 12030, 0, "cuStreamGetCaptureInfo_v2");
    }
    if (argc > 2)
        CHECK((dlsym(library, "cuCtxSynchronize_v2") == NULL) == (strcmp(argv[2], "hidden") == 0));
    FINISH();
}
