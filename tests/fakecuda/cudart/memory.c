/* Memory: allocation, copies, sets. Copies go where the real runtime sends them: cudaMemcpy to
 * cuMemcpyHtoD_v2 and its like, by kind. */
#include "tests/fakecuda/cudart/rt.h"

#define ADDRESS(p) ((CUdeviceptr)(uintptr_t)(p))

PLAIN(cudaMalloc, (void **memory, size_t bytes), (memory, bytes))
{
    *memory = NULL;
    return bytes ? E(driver.p_cuMemAlloc((CUdeviceptr *)memory, bytes)) : cudaSuccess;
}
PLAIN(cudaFree, (void *memory), (memory))
{
    return memory ? E(driver.p_cuMemFree(ADDRESS(memory))) : cudaSuccess;
}
PLAIN(cudaMallocHost, (void **memory, size_t bytes), (memory, bytes))
{
    return E(driver.p_cuMemHostAlloc(memory, bytes, 0));
}
PLAIN(cudaHostAlloc, (void **memory, size_t bytes, unsigned flags), (memory, bytes, flags))
{
    return E(driver.p_cuMemHostAlloc(memory, bytes, flags));
}
PLAIN(cudaFreeHost, (void *memory), (memory))
{
    return memory ? E(driver.p_cuMemFreeHost(memory)) : cudaSuccess;
}
PLAIN(cudaMallocManaged, (void **memory, size_t bytes, unsigned flags), (memory, bytes, flags))
{
    return E(driver.p_cuMemAllocManaged((CUdeviceptr *)memory, bytes, flags));
}
PLAIN(cudaMemGetInfo, (size_t *free_bytes, size_t *total), (free_bytes, total))
{
    return E(driver.p_cuMemGetInfo(free_bytes, total));
}

CALL(cudaMallocAsync, _ptsz, (void **memory, size_t bytes, cudaStream_t stream),
    (memory, bytes, stream))
{
    return E(d->p_cuMemAllocAsync((CUdeviceptr *)memory, bytes, stream));
}
CALL(cudaFreeAsync, _ptsz, (void *memory, cudaStream_t stream), (memory, stream))
{
    return E(d->p_cuMemFreeAsync(ADDRESS(memory), stream));
}

CALL(cudaMemcpy, _ptds, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind),
    (to, from, bytes, kind))
{
    switch (kind) {
    case cudaMemcpyHostToHost: memmove(to, from, bytes); return cudaSuccess;
    case cudaMemcpyHostToDevice: return E(d->p_cuMemcpyHtoD(ADDRESS(to), from, bytes));
    case cudaMemcpyDeviceToHost: return E(d->p_cuMemcpyDtoH(to, ADDRESS(from), bytes));
    case cudaMemcpyDeviceToDevice: return E(d->p_cuMemcpyDtoD(ADDRESS(to), ADDRESS(from), bytes));
    case cudaMemcpyDefault: return E(d->p_cuMemcpy(ADDRESS(to), ADDRESS(from), bytes));
    default: return cudaErrorInvalidMemcpyDirection;
    }
}
CALL(cudaMemcpyAsync, _ptsz,
    (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream),
    (to, from, bytes, kind, stream))
{
    switch (kind) {
    case cudaMemcpyHostToDevice: return E(d->p_cuMemcpyHtoDAsync(ADDRESS(to), from, bytes, stream));
    case cudaMemcpyDeviceToHost: return E(d->p_cuMemcpyDtoHAsync(to, ADDRESS(from), bytes, stream));
    case cudaMemcpyDeviceToDevice:
        return E(d->p_cuMemcpyDtoDAsync(ADDRESS(to), ADDRESS(from), bytes, stream));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault: return E(d->p_cuMemcpyAsync(ADDRESS(to), ADDRESS(from), bytes, stream));
    default: return cudaErrorInvalidMemcpyDirection;
    }
}
CALL(cudaMemset, _ptds, (void *to, int value, size_t bytes), (to, value, bytes))
{
    return E(d->p_cuMemsetD8(ADDRESS(to), (unsigned char)value, bytes));
}
CALL(cudaMemsetAsync, _ptsz, (void *to, int value, size_t bytes, cudaStream_t stream),
    (to, value, bytes, stream))
{
    return E(d->p_cuMemsetD8Async(ADDRESS(to), (unsigned char)value, bytes, stream));
}
