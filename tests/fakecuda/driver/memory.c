/*
 * Memory: device memory is host memory that is remembered. An address not found here is ordinary
 * ("pageable") host memory.
 *
 * Allocations are kept in an array sorted by address.
 */
#include "tests/fakecuda/driver/fake.h"

#include <sys/mman.h>

static struct fake_memory **memories;
static size_t count, room, device_bytes;
static struct fake_memory *spare;

enum { ALIGNMENT = 512 };

/* The index of the first allocation that begins behind `address`. */
static size_t behind(uint64_t address)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (memories[middle]->base <= address) low = middle + 1;
        else high = middle;
    }
    return low;
}

struct fake_memory *fake_memory_find(uint64_t address)
{
    size_t at = behind(address);
    return at && address - memories[at - 1]->base < memories[at - 1]->bytes ? memories[at - 1]
                                                                            : NULL;
}

static struct fake_memory *insert(CUdeviceptr base, size_t bytes)
{
    size_t at = behind(base);
    struct fake_memory *memory = spare;
    static unsigned long long last_id;

    if (memory) spare = NULL;
    else memory = malloc(sizeof *memory);
    if (!memory) abort();
    if (count == room) {
        room = room ? room * 2 : 64;
        memories = realloc(memories, room * sizeof *memories);
        if (!memories) abort();
    }
    memmove(memories + at + 1, memories + at, (count++ - at) * sizeof *memories);
    memories[at] = memory;
    *memory = (struct fake_memory){.base = base, .bytes = bytes, .id = ++last_id};
    return memory;
}

static void removed(struct fake_memory *memory)
{
    size_t at = behind(memory->base) - 1;

    memmove(memories + at, memories + at + 1, (--count - at) * sizeof *memories);
    free(spare);
    spare = memory;
}

static size_t total_bytes(void)
{
    return (size_t)fake_setting("CUSTREAM_FAKE_MEMORY_MIB", 8192) << 20;
}

CUresult fake_memory_new(size_t bytes, CUmemorytype type, unsigned flags, CUdeviceptr *address)
{
    struct fake_context *context;
    struct fake_memory *memory;
    void *base;

    if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
    FAKE_TRY(fake_current(&context));
    if (type != CU_MEMORYTYPE_HOST && bytes > total_bytes() - device_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    base = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!base) return CUDA_ERROR_OUT_OF_MEMORY;
    memory = insert((CUdeviceptr)(uintptr_t)base, bytes);
    memory->type = type;
    memory->flags = flags;
    memory->context = context;
    memory->device = context->device;
    if (type != CU_MEMORYTYPE_HOST) device_bytes += bytes;
    *address = memory->base;
    return CUDA_SUCCESS;
}

CUresult fake_memory_free(CUdeviceptr address)
{
    struct fake_memory *memory = fake_memory_find(address);

    if (!memory || memory->base != address || memory->registered) return CUDA_ERROR_INVALID_VALUE;
    if (memory->type != CU_MEMORYTYPE_HOST) device_bytes -= memory->bytes;
    removed(memory);
    free((void *)(uintptr_t)address);
    return CUDA_SUCCESS;
}

/* Frees at once, after the work that may still use it. */
static CUresult free_now(CUdeviceptr address, bool host)
{
    struct fake_memory *memory;
    struct fake_context *context;

    if (!address) return CUDA_SUCCESS;
    FAKE_LOCKED;
    FAKE_TRY(fake_current(&context));
    FAKE_TRY(fake_unsafe());
    memory = fake_memory_find(address);
    if (!memory || memory->base != address || (memory->type == CU_MEMORYTYPE_HOST) != host)
        return CUDA_ERROR_INVALID_VALUE;
    FAKE_TAKES_TIME;
    if (memory->context->alive) fake_context_wait(memory->context);
    return fake_memory_free(address);
}

static CUresult allocate(size_t bytes, CUmemorytype type, unsigned flags, CUdeviceptr *address)
{
    FAKE_LOCKED;
    FAKE_TRY(fake_unsafe());
    return fake_memory_new(bytes, type, flags, address);
}

IMPL(cuMemAlloc_v2)(CUdeviceptr *address, size_t bytes)
{
    return allocate(bytes, CU_MEMORYTYPE_DEVICE, 0, address);
}
IMPL(cuMemAllocManaged)(CUdeviceptr *address, size_t bytes, unsigned flags)
{
    return allocate(bytes, CU_MEMORYTYPE_UNIFIED, flags, address);
}
IMPL(cuMemAllocPitch_v2)(
    CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
    (void)element;
    if (!pitch) return CUDA_ERROR_INVALID_VALUE;
    *pitch = (width + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return allocate(*pitch * height, CU_MEMORYTYPE_DEVICE, 0, address);
}
IMPL(cuMemAllocHost_v2)(void **address, size_t bytes)
{
    return allocate(bytes, CU_MEMORYTYPE_HOST, 0, (CUdeviceptr *)address);
}
IMPL(cuMemHostAlloc)(void **address, size_t bytes, unsigned flags)
{
    return allocate(bytes, CU_MEMORYTYPE_HOST, flags, (CUdeviceptr *)address);
}
IMPL(cuMemFree_v2)(CUdeviceptr address) { return free_now(address, false); }
IMPL(cuMemFree)(CUdeviceptr_v1 address) { return free_now(address, false); }
IMPL(cuMemFreeHost)(void *address) { return free_now((CUdeviceptr)(uintptr_t)address, true); }

static CUresult host_register(void *address, size_t bytes, unsigned flags)
{
    struct fake_context *context;
    struct fake_memory *memory;

    if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_current(&context));
    if (fake_memory_find((uintptr_t)address)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    memory = insert((CUdeviceptr)(uintptr_t)address, bytes);
    memory->type = CU_MEMORYTYPE_HOST;
    memory->context = context;
    memory->device = context->device;
    memory->registered = true;
    memory->flags = flags;
    return CUDA_SUCCESS;
}
IMPL(cuMemHostRegister_v2)(void *address, size_t bytes, unsigned flags)
{
    return host_register(address, bytes, flags);
}
IMPL(cuMemHostRegister)(void *address, size_t bytes, unsigned flags)
{
    return host_register(address, bytes, flags);
}
IMPL(cuMemHostUnregister)(void *address)
{
    struct fake_memory *memory;

    FAKE_LOCKED;
    memory = fake_memory_find((uintptr_t)address);
    if (!memory || !memory->registered || memory->base != (uintptr_t)address)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    removed(memory);
    return CUDA_SUCCESS;
}

API(cuMemHostGetDevicePointer_v2, (CUdeviceptr * out, void *address, unsigned flags),
    (out, address, flags))
{
    (void)flags;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    if (!fake_memory_find((uintptr_t)address)) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)(uintptr_t)address;
    return CUDA_SUCCESS;
}
API(cuMemHostGetFlags, (unsigned *flags, void *address), (flags, address))
{
    struct fake_memory *memory;

    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    memory = fake_memory_find((uintptr_t)address);
    if (!memory || memory->type != CU_MEMORYTYPE_HOST) return CUDA_ERROR_INVALID_VALUE;
    *flags = memory->flags;
    return CUDA_SUCCESS;
}

API(cuMemGetInfo_v2, (size_t *free_bytes, size_t *total), (free_bytes, total))
{
    struct fake_context *context;

    if (!free_bytes || !total) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_current(&context));
    *total = total_bytes();
    *free_bytes = *total - device_bytes;
    return CUDA_SUCCESS;
}

API(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t *bytes, CUdeviceptr address),
    (base, bytes, address))
{
    struct fake_memory *memory;

    FAKE_LOCKED;
    memory = fake_memory_find(address);
    if (!memory) return CUDA_ERROR_NOT_FOUND;
    if (base) *base = memory->base;
    if (bytes) *bytes = memory->bytes;
    return CUDA_SUCCESS;
}

static CUresult attribute_of(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    const struct fake_memory *memory = fake_memory_find(address);

    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = memory->pool ? NULL : memory->context->handle;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(CUmemorytype *)data =
            memory->type == CU_MEMORYTYPE_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)data = address; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (memory->type == CU_MEMORYTYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
        *(void **)data = (void *)(uintptr_t)address;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(unsigned long long *)data = memory->id; break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = memory->type == CU_MEMORYTYPE_UNIFIED;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = memory->device; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)data = memory->base; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)data = memory->bytes; break;
    case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned *)data = 1; break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(CUmemoryPool *)data = memory->pool; break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: *(unsigned long long *)data = 0; break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: *(unsigned *)data = 0; break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: *(unsigned *)data = 0; break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *(unsigned *)data = 0; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

API(cuPointerGetAttribute, (void *data, CUpointer_attribute attribute, CUdeviceptr address),
    (data, attribute, address))
{
    if (!data) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    return attribute_of(data, attribute, address);
}

/* Unlike the single one, this answers zeroes for an address that CUDA does not know. */
API(cuPointerGetAttributes,
    (unsigned n, CUpointer_attribute *attributes, void **data, CUdeviceptr address),
    (n, attributes, data, address))
{
    if (!attributes || !data) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    for (unsigned i = 0; i < n; i++) {
        if (attribute_of(data[i], attributes[i], address) == CUDA_SUCCESS) continue;
        switch (attributes[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: *(unsigned *)data[i] = 0; break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data[i] = -2; break;
        default: *(uint64_t *)data[i] = 0;
        }
    }
    return CUDA_SUCCESS;
}

API(cuPointerSetAttribute, (const void *value, CUpointer_attribute attribute, CUdeviceptr address),
    (value, attribute, address))
{
    (void)value;
    if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    return fake_memory_find(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
