/* Memory pools and stream-ordered memory: an address is there at once, and goes when the free's
 * turn comes. Pools are names only; nothing is kept. */
#include "tests/fakecuda/driver/fake.h"

struct pool {
    CUmemoryPool handle;
    int device;
    cuuint64_t threshold;
    cuuint64_t used, high; /* bytes */
    CUmemAllocationType type;
    CUmemLocation location;
};
static struct fake_handles pools;
static struct pool *defaults[FAKE_MAX_DEVICES], *currents[FAKE_MAX_DEVICES];

static struct pool *pool_new(int device)
{
    struct pool *pool = calloc(1, sizeof *pool);

    if (!pool) abort();
    pool->device = device;
    pool->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    pool->location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    pool->handle = fake_handle_new(&pools, pool);
    return pool;
}

static struct pool *default_pool(int device)
{
    if (!defaults[device]) defaults[device] = pool_new(device);
    return defaults[device];
}

/* ---- Pools ---- */

static CUresult device_pool(CUmemoryPool *out, CUdevice device, bool current)
{
    if (device < 0 || device >= fake_device_count) return CUDA_ERROR_INVALID_DEVICE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    *out = (current && currents[device] ? currents[device] : default_pool(device))->handle;
    return CUDA_SUCCESS;
}
API(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device), (pool, device))
{
    return device_pool(pool, device, false);
}
API(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device), (pool, device))
{
    return device_pool(pool, device, true);
}
API(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool handle), (device, handle))
{
    struct pool *pool;

    if (device < 0 || device >= fake_device_count) return CUDA_ERROR_INVALID_DEVICE;
    FAKE_LOCKED;
    pool = fake_handle_get(&pools, handle);
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    currents[device] = pool;
    return CUDA_SUCCESS;
}
API(cuMemPoolCreate, (CUmemoryPool * out, const CUmemPoolProps *props), (out, props))
{
    int device;

    if (!out || !props) return CUDA_ERROR_INVALID_VALUE;
    device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? props->location.id : 0;
    if (device < 0 || device >= fake_device_count) return CUDA_ERROR_INVALID_DEVICE;
    FAKE_LOCKED;
    struct pool *pool = pool_new(device);
    pool->type = props->allocType;
    pool->location = props->location;
    *out = pool->handle;
    return CUDA_SUCCESS;
}
API(cuMemPoolDestroy, (CUmemoryPool handle), (handle))
{
    FAKE_LOCKED;
    struct pool *pool = fake_handle_get(&pools, handle);
    if (!pool || pool == defaults[pool->device]) return CUDA_ERROR_INVALID_VALUE;
    if (currents[pool->device] == pool) currents[pool->device] = NULL;
    fake_handle_free(&pools, handle); /* its structure stays: memory from it may be alive */
    return CUDA_SUCCESS;
}
IMPL(cuMemPoolTrimTo)(CUmemoryPool handle, size_t keep)
{
    (void)keep;
    FAKE_LOCKED;
    return fake_handle_get(&pools, handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API(cuMemPoolGetAttribute, (CUmemoryPool handle, CUmemPool_attribute attribute, void *value),
    (handle, attribute, value))
{
    struct pool *pool;

    if (!value) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    pool = fake_handle_get(&pools, handle);
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    switch ((int)attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: *(int *)value = 1; break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)value = pool->threshold; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)value = pool->used; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = pool->high; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
API(cuMemPoolSetAttribute, (CUmemoryPool handle, CUmemPool_attribute attribute, void *value),
    (handle, attribute, value))
{
    struct pool *pool;

    if (!value) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    pool = fake_handle_get(&pools, handle);
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) pool->threshold = *(cuuint64_t *)value;
    if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) pool->high = pool->used;
    return CUDA_SUCCESS;
}
API(cuMemPoolSetAccess, (CUmemoryPool handle, const CUmemAccessDesc *map, size_t count),
    (handle, map, count))
{
    (void)map, (void)count;
    FAKE_LOCKED;
    return fake_handle_get(&pools, handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API(cuMemPoolGetAccess, (CUmemAccess_flags * flags, CUmemoryPool handle, CUmemLocation *location),
    (flags, handle, location))
{
    struct pool *pool;

    if (!flags || !location) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    pool = fake_handle_get(&pools, handle);
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    *flags = location->id == pool->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                          : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}
API(cuMemGetDefaultMemPool, (CUmemoryPool * out, CUmemLocation *location, CUmemAllocationType type),
    (out, location, type))
{
    (void)type;
    if (!location) return CUDA_ERROR_INVALID_VALUE;
    return device_pool(
        out, location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : 0, false);
}
API(cuMemGetMemPool, (CUmemoryPool * out, CUmemLocation *location, CUmemAllocationType type),
    (out, location, type))
{
    (void)type;
    if (!location) return CUDA_ERROR_INVALID_VALUE;
    return device_pool(out, location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : 0, true);
}

/* ---- Memory ---- */

static CUresult allocate(
    CUdeviceptr *address, size_t bytes, struct pool *pool, struct fake_stream *stream)
{
    struct fake_work work = {.type = WORK_ALLOC};
    CUmemorytype type = CU_MEMORYTYPE_DEVICE;

    if (pool->location.type != CU_MEM_LOCATION_TYPE_DEVICE) type = CU_MEMORYTYPE_HOST;
    if (pool->type == CU_MEM_ALLOCATION_TYPE_MANAGED) type = CU_MEMORYTYPE_UNIFIED;
    FAKE_TRY(fake_memory_new(bytes, type, 0, address));
    fake_memory_find(*address)->pool = pool->handle;
    fake_memory_find(*address)->device = pool->device;
    pool->used += bytes;
    if (pool->used > pool->high) pool->high = pool->used;
    work.memory = *address;
    return fake_submit(stream, &work, false);
}

IMPL(cuMemAllocAsync)(bool per_thread, CUdeviceptr *address, size_t bytes, CUstream handle)
{
    struct fake_stream *stream;
    int device;

    if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(handle, per_thread, &stream));
    device = stream->context->device;
    return allocate(
        address, bytes, currents[device] ? currents[device] : default_pool(device), stream);
}
IMPL(cuMemAllocFromPoolAsync)(
    bool per_thread, CUdeviceptr *address, size_t bytes, CUmemoryPool handle, CUstream hstream)
{
    struct fake_stream *stream;
    struct pool *pool;

    if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(hstream, per_thread, &stream));
    pool = fake_handle_get(&pools, handle);
    return pool ? allocate(address, bytes, pool, stream) : CUDA_ERROR_INVALID_VALUE;
}
IMPL(cuMemFreeAsync)(bool per_thread, CUdeviceptr address, CUstream handle)
{
    struct fake_work work = {.type = WORK_FREE, .memory = address};
    struct fake_memory *memory;
    struct fake_stream *stream;
    struct pool *pool;

    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(handle, per_thread, &stream));
    if (!address) return CUDA_SUCCESS;
    memory = fake_memory_find(address);
    if (!memory || memory->base != address || memory->registered) return CUDA_ERROR_INVALID_VALUE;
    pool = memory->pool ? fake_handle_get(&pools, memory->pool) : NULL;
    if (pool && !stream->capture) pool->used -= memory->bytes;
    return fake_submit(stream, &work, false);
}
