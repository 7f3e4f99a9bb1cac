/* Memory: bytes that move and are set in stream order, stream-ordered allocation, staging of host
 * memory, attributes, values. */
#include "device.h"

static void test_order(void)
{
    CUstream s;
    CUdeviceptr a, b;
    unsigned char host[64], back[64] = {0}, *pinned;
    unsigned *gate;

    memset(host, 3, sizeof host);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&a, 64));
    OK(cuMemAllocAsync(&b, 64, s));
    OK(cuMemHostAlloc((void **)&pinned, 64, 0));
    OK(cuMemHostAlloc((void **)&gate, sizeof *gate, 0));
    memset(pinned, 0, 64);
    *gate = 0;
    OK(cuStreamWaitValue32(s, (CUdeviceptr)(uintptr_t)gate, 1, CU_STREAM_WAIT_VALUE_GEQ));
    OK(cuMemcpyHtoDAsync(a, host, 64, s));
    memset(host, 4, sizeof host); /* it was staged: 3 arrives */
    OK(cuMemsetD8Async(b, 0x55, 64, s));
    OK(cuMemcpyDtoDAsync(b, a, 32, s));
    OK(cuMemcpyDtoHAsync(pinned, b, 64, s));
    OK(cuMemFreeAsync(b, s));
    CHECK_IS(pinned[0], 0); /* not yet */
    __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
    OK(cuStreamSynchronize(s));
    CHECK_IS(pinned[0], 3);
    CHECK_IS(pinned[63], 0x55);
    CHECK_IS(cuMemcpyDtoH(back, b, 64), CUDA_ERROR_INVALID_VALUE); /* freed */
    OK(cuMemsetD32(a, 0x01020304, 16));
    OK(cuMemcpyDtoH(back, a, 64));
    CHECK_IS(back[60], 4);
    CHECK_IS(cuMemsetD32(a + 2, 0, 4), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(cuMemsetD8(a, 0, 65), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(a));
    CHECK_IS(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeHost(pinned));
    OK(cuMemFreeHost(gate));
    OK(cuStreamDestroy(s));
}

static void test_boxes(void)
{
    CUdeviceptr a;
    size_t pitch;
    unsigned char back[4 * 8] = {0};
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstMemoryType = CU_MEMORYTYPE_HOST,
        .dstHost = back,
        .dstPitch = 8,
        .WidthInBytes = 8,
        .Height = 4};

    OK(cuMemAllocPitch(&a, &pitch, 8, 4, 4));
    CHECK(pitch >= 8);
    OK(cuMemsetD2D16(a, pitch, 0x0102, 4, 4));
    copy.srcDevice = a;
    copy.srcPitch = pitch;
    OK(cuMemcpy2D(&copy));
    CHECK_IS(back[31], 1);
    CHECK_IS(back[30], 2);
    OK(cuMemFree(a));
}

static void test_attributes(void)
{
    CUdeviceptr a;
    CUmemorytype type = 0;
    CUcontext owner;
    int local, ordinal = -1;

    OK(cuMemAlloc(&a, 1000));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 10));
    CHECK_IS(type, CU_MEMORYTYPE_DEVICE);
    OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, a));
    CHECK(owner == context);
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a));
    CHECK_IS(ordinal, 0);
    CHECK_IS(cuPointerGetAttribute(
                 &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&local),
        CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(a));
    CHECK_IS(cuMemAlloc(&a, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_IS(cuMemAlloc(&a, 0), CUDA_ERROR_INVALID_VALUE);
}

static void test_values(void)
{
    CUstream s, t;
    CUdeviceptr a;
    uint32_t *flag;

    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&a, 16));
    OK(cuMemsetD8(a, 0, 16));
    OK(cuStreamWaitValue32(s, a, 5, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue64(s, a + 8, 77, 0));
    CHECK_IS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    OK(sleep_on(t, 5000));
    OK(cuStreamWriteValue32(t, a, 5, 0));
    OK(cuStreamSynchronize(s));
    flag = (uint32_t *)(uintptr_t)a; /* simulated memory is the host's */
    CHECK_IS(flag[0], 5);
    CHECK_IS(flag[2], 77);
    OK(cuMemFree(a));
    OK(cuStreamDestroy(s));
    OK(cuStreamDestroy(t));
}

int main(void)
{
    set_up();
    test_order();
    test_boxes();
    test_attributes();
    test_values();
    FINISH();
}
