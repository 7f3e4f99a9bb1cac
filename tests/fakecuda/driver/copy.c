/*
 * Copies. Bytes move when the copy's turn comes; a synchronous copy with host memory waits for
 * that, one inside the device does not, as in CUDA.
 *
 * Ordinary host memory in an asynchronous copy is treated as the driver does: what is read is
 * staged when the call is made, what is written makes the call wait.
 */
#include "tests/fakecuda/driver/fake.h"

enum side { ANY, DEVICE, HOST, ARRAY }; /* an array's address is its bytes' */

static bool pageable(const char *address) { return !fake_memory_find((uintptr_t)address); }

/* An address that has to be the device's, with so many bytes behind it. */
static bool device_range(uint64_t address, size_t bytes)
{
    const struct fake_memory *memory = fake_memory_find(address);
    return memory && bytes <= memory->bytes - (address - memory->base);
}

static void stage(struct fake_work *work)
{
    char *bytes = malloc(work->copy.width);

    if (!bytes) abort();
    memcpy(bytes, work->copy.from.base, work->copy.width);
    work->owned = bytes;
    work->owned_bytes = work->copy.width;
    work->copy.from.base = bytes;
}

static CUresult put(CUstream hstream, bool per_thread, struct fake_work *work, bool asynchronous)
{
    struct fake_stream *stream;
    bool wait, flat = work->copy.height == 1 && work->copy.depth == 1, from_pageable, to_pageable;

    FAKE_TRY(fake_stream_get(hstream, per_thread, &stream));
    if (!asynchronous) FAKE_TRY(fake_capture_forbids(stream));
    if (!work->copy.width || !work->copy.height || !work->copy.depth) return CUDA_SUCCESS;
    work->asynchronous = asynchronous;
    from_pageable = pageable(work->copy.from.base);
    to_pageable = pageable(work->copy.to.base);
    if (asynchronous) {
        bool stages = from_pageable && !stream->capture && (fake_copy_ns || !fake_idle(stream));
        if (stages && flat) stage(work);
        wait = !stream->capture && (to_pageable || (stages && !flat));
    } else {
        struct fake_memory *from = fake_memory_find((uintptr_t)work->copy.from.base),
                           *to = fake_memory_find((uintptr_t)work->copy.to.base);
        wait = !from || !to || from->type == CU_MEMORYTYPE_HOST || to->type == CU_MEMORYTYPE_HOST;
    }
    return fake_submit(stream, work, wait);
}

static CUresult flat(uint64_t to, enum side to_side, uint64_t from, enum side from_side,
    size_t bytes, CUstream stream, bool per_thread, bool asynchronous)
{
    struct fake_work work = {.type = WORK_COPY,
        .copy = {.to = {(char *)(uintptr_t)to, 0, 0},
            .from = {(char *)(uintptr_t)from, 0, 0},
            .width = bytes,
            .height = 1,
            .depth = 1,
            .to_array = to_side == ARRAY,
            .from_array = from_side == ARRAY,
            .shape = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                .srcDevice = from,
                .srcHost = (void *)(uintptr_t)from,
                .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                .dstDevice = to,
                .dstHost = (void *)(uintptr_t)to,
                .WidthInBytes = bytes,
                .Height = 1,
                .Depth = 1}}};

    if (from_side == HOST) work.copy.shape.srcMemoryType = CU_MEMORYTYPE_HOST;
    if (to_side == HOST) work.copy.shape.dstMemoryType = CU_MEMORYTYPE_HOST;
    if (from_side == DEVICE) work.copy.shape.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    if (to_side == DEVICE) work.copy.shape.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    FAKE_LOCKED;
    if (bytes && (!to || !from)) return CUDA_ERROR_INVALID_VALUE;
    if (bytes && to_side == DEVICE && !device_range(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (bytes && from_side == DEVICE && !device_range(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
    return put(stream, per_thread, &work, asynchronous);
}

#define A(x) ((uint64_t)(uintptr_t)(x))

IMPL(cuMemcpy)(bool pt, CUdeviceptr to, CUdeviceptr from, size_t n)
{
    return flat(to, ANY, from, ANY, n, NULL, pt, false);
}
IMPL(cuMemcpyHtoD_v2)(bool pt, CUdeviceptr to, const void *from, size_t n)
{
    return flat(to, DEVICE, A(from), HOST, n, NULL, pt, false);
}
IMPL(cuMemcpyDtoH_v2)(bool pt, void *to, CUdeviceptr from, size_t n)
{
    return flat(A(to), HOST, from, DEVICE, n, NULL, pt, false);
}
IMPL(cuMemcpyDtoD_v2)(bool pt, CUdeviceptr to, CUdeviceptr from, size_t n)
{
    return flat(to, DEVICE, from, DEVICE, n, NULL, pt, false);
}
IMPL(cuMemcpyAsync)(bool pt, CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
    return flat(to, ANY, from, ANY, n, s, pt, true);
}
IMPL(cuMemcpyHtoDAsync_v2)(bool pt, CUdeviceptr to, const void *from, size_t n, CUstream s)
{
    return flat(to, DEVICE, A(from), HOST, n, s, pt, true);
}
IMPL(cuMemcpyDtoHAsync_v2)(bool pt, void *to, CUdeviceptr from, size_t n, CUstream s)
{
    return flat(A(to), HOST, from, DEVICE, n, s, pt, true);
}
IMPL(cuMemcpyDtoDAsync_v2)(bool pt, CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
    return flat(to, DEVICE, from, DEVICE, n, s, pt, true);
}
IMPL(cuMemcpyHtoD)(CUdeviceptr_v1 to, const void *from, unsigned n)
{
    return flat(to, DEVICE, A(from), HOST, n, NULL, false, false);
}
IMPL(cuMemcpyDtoH)(void *to, CUdeviceptr_v1 from, unsigned n)
{
    return flat(A(to), HOST, from, DEVICE, n, NULL, false, false);
}
IMPL(cuMemcpyDtoD)(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned n)
{
    return flat(to, DEVICE, from, DEVICE, n, NULL, false, false);
}
IMPL(cuMemcpyHtoDAsync)(CUdeviceptr_v1 to, const void *from, unsigned n, CUstream s)
{
    return flat(to, DEVICE, A(from), HOST, n, s, false, true);
}
IMPL(cuMemcpyDtoHAsync)(void *to, CUdeviceptr_v1 from, unsigned n, CUstream s)
{
    return flat(A(to), HOST, from, DEVICE, n, s, false, true);
}
IMPL(cuMemcpyDtoDAsync)(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned n, CUstream s)
{
    return flat(to, DEVICE, from, DEVICE, n, s, false, true);
}

static CUresult peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
    size_t n, CUstream s, bool pt, bool async)
{
    {
        FAKE_LOCKED;
        if (!fake_context_get(to_context) || !fake_context_get(from_context))
            return CUDA_ERROR_INVALID_CONTEXT;
    }
    return flat(to, DEVICE, from, DEVICE, n, s, pt, async);
}
IMPL(cuMemcpyPeer)(bool pt, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
    CUcontext from_context, size_t n)
{
    return peer(to, to_context, from, from_context, n, NULL, pt, false);
}
IMPL(cuMemcpyPeerAsync)(bool pt, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
    CUcontext from_context, size_t n, CUstream s)
{
    return peer(to, to_context, from, from_context, n, s, pt, true);
}

/* ---- Arrays, one-dimensional access ---- */

static CUresult array_flat(CUarray to, size_t to_offset, uint64_t to_address, CUarray from,
    size_t from_offset, uint64_t from_address, size_t n, CUstream s, bool pt, bool async)
{
    {
        FAKE_LOCKED;
        struct fake_array *target = to ? fake_array_get(to) : NULL,
                          *source = from ? fake_array_get(from) : NULL;
        if ((to && !target) || (from && !source)) return CUDA_ERROR_INVALID_HANDLE;
        if (target) to_address = A(target->bytes + to_offset);
        if (source) from_address = A(source->bytes + from_offset);
    }
    return flat(to_address, to ? ARRAY : ANY, from_address, from ? ARRAY : ANY, n, s, pt, async);
}
IMPL(cuMemcpyDtoA_v2)(bool pt, CUarray to, size_t at, CUdeviceptr from, size_t n)
{
    return array_flat(to, at, 0, NULL, 0, from, n, NULL, pt, false);
}
IMPL(cuMemcpyAtoD_v2)(bool pt, CUdeviceptr to, CUarray from, size_t at, size_t n)
{
    return array_flat(NULL, 0, to, from, at, 0, n, NULL, pt, false);
}
IMPL(cuMemcpyHtoA_v2)(bool pt, CUarray to, size_t at, const void *from, size_t n)
{
    return array_flat(to, at, 0, NULL, 0, A(from), n, NULL, pt, false);
}
IMPL(cuMemcpyAtoH_v2)(bool pt, void *to, CUarray from, size_t at, size_t n)
{
    return array_flat(NULL, 0, A(to), from, at, 0, n, NULL, pt, false);
}
IMPL(cuMemcpyAtoA_v2)(bool pt, CUarray to, size_t at, CUarray from, size_t from_at, size_t n)
{
    return array_flat(to, at, 0, from, from_at, 0, n, NULL, pt, false);
}
IMPL(cuMemcpyHtoAAsync_v2)(bool pt, CUarray to, size_t at, const void *from, size_t n, CUstream s)
{
    return array_flat(to, at, 0, NULL, 0, A(from), n, s, pt, true);
}
IMPL(cuMemcpyAtoHAsync_v2)(bool pt, void *to, CUarray from, size_t at, size_t n, CUstream s)
{
    return array_flat(NULL, 0, A(to), from, at, 0, n, s, pt, true);
}

/* ---- Two and three dimensions ---- */

static CUresult place(struct fake_place *out, CUmemorytype type, const void *host,
    CUdeviceptr device, CUarray array, size_t pitch, size_t height, size_t x, size_t y, size_t z,
    size_t lines)
{
    if (type == CU_MEMORYTYPE_ARRAY) {
        struct fake_array *a = fake_array_get(array);
        if (!a) return CUDA_ERROR_INVALID_HANDLE;
        *out = (struct fake_place){a->bytes, a->pitch, a->slice};
    } else {
        char *base =
            type == CU_MEMORYTYPE_HOST ? (char *)(uintptr_t)host : (char *)(uintptr_t)device;
        if (!base) return CUDA_ERROR_INVALID_VALUE;
        *out = (struct fake_place){base, pitch, pitch * (height ? height : y + lines)};
    }
    out->base += z * out->slice + y * out->pitch + x;
    return CUDA_SUCCESS;
}

/* The work of a copy as CUDA_MEMCPY3D describes it, which 2D and peer copies are special cases of.
 */
CUresult fake_copy_work(const CUDA_MEMCPY3D *c, struct fake_work *work)
{
    *work = (struct fake_work){.type = WORK_COPY,
        .copy = {.width = c->WidthInBytes,
            .height = c->Height,
            .depth = c->Depth,
            .to_array = c->dstMemoryType == CU_MEMORYTYPE_ARRAY,
            .from_array = c->srcMemoryType == CU_MEMORYTYPE_ARRAY,
            .shape = *c}};
    FAKE_TRY(place(&work->copy.to, c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray,
        c->dstPitch ? c->dstPitch : c->WidthInBytes, c->dstHeight, c->dstXInBytes, c->dstY, c->dstZ,
        c->Height));
    return place(&work->copy.from, c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray,
        c->srcPitch ? c->srcPitch : c->WidthInBytes, c->srcHeight, c->srcXInBytes, c->srcY, c->srcZ,
        c->Height);
}

static CUresult box(const CUDA_MEMCPY3D *c, CUstream stream, bool per_thread, bool asynchronous)
{
    struct fake_work work;

    FAKE_LOCKED;
    FAKE_TRY(fake_copy_work(c, &work));
    return put(stream, per_thread, &work, asynchronous);
}

/* The fields that the structures have in common; LODs and contexts mean nothing here. */
#define COMMON_2D(c) \
    .srcXInBytes = (c)->srcXInBytes, .srcY = (c)->srcY, .srcMemoryType = (c)->srcMemoryType, \
    .srcHost = (c)->srcHost, .srcDevice = (c)->srcDevice, \
    .srcArray = (c)->srcArray, .srcPitch = (c)->srcPitch, .dstXInBytes = (c)->dstXInBytes, .dstY \
    = (c)->dstY, .dstMemoryType = (c)->dstMemoryType, \
    .dstHost = (c)->dstHost, .dstDevice = (c)->dstDevice, .dstArray = (c)->dstArray, .dstPitch = \
    (c)->dstPitch, .WidthInBytes = (c)->WidthInBytes, \
    .Height = (c)->Height
#define COMMON_3D(c) \
    COMMON_2D(c), .srcZ = (c)->srcZ, .srcHeight = (c)->srcHeight, .dstZ = (c)->dstZ, .dstHeight = \
    (c)->dstHeight, .Depth = (c)->Depth

#define BOX(fields, stream, pt, async) \
    if (!c) return CUDA_ERROR_INVALID_VALUE; \
    CUDA_MEMCPY3D whole = {fields}; \
    return box(&whole, stream, pt, async)
#define FLAT_FIELDS(c) COMMON_2D(c), .Depth = 1

IMPL(cuMemcpy2D_v2)(bool pt, const CUDA_MEMCPY2D *c) { BOX(FLAT_FIELDS(c), NULL, pt, false); }
IMPL(cuMemcpy2DUnaligned_v2)(bool pt, const CUDA_MEMCPY2D *c)
{
    BOX(FLAT_FIELDS(c), NULL, pt, false);
}
IMPL(cuMemcpy3D_v2)(bool pt, const CUDA_MEMCPY3D *c) { BOX(COMMON_3D(c), NULL, pt, false); }
IMPL(cuMemcpy3DPeer)(bool pt, const CUDA_MEMCPY3D_PEER *c) { BOX(COMMON_3D(c), NULL, pt, false); }
IMPL(cuMemcpy2DAsync_v2)(bool pt, const CUDA_MEMCPY2D *c, CUstream s)
{
    BOX(FLAT_FIELDS(c), s, pt, true);
}
IMPL(cuMemcpy3DAsync_v2)(bool pt, const CUDA_MEMCPY3D *c, CUstream s)
{
    BOX(COMMON_3D(c), s, pt, true);
}
IMPL(cuMemcpy3DPeerAsync)(bool pt, const CUDA_MEMCPY3D_PEER *c, CUstream s)
{
    BOX(COMMON_3D(c), s, pt, true);
}
IMPL(cuMemcpy2D)(const CUDA_MEMCPY2D_v1 *c) { BOX(FLAT_FIELDS(c), NULL, false, false); }
IMPL(cuMemcpy2DUnaligned)(const CUDA_MEMCPY2D_v1 *c) { BOX(FLAT_FIELDS(c), NULL, false, false); }
IMPL(cuMemcpy3D)(const CUDA_MEMCPY3D_v1 *c) { BOX(COMMON_3D(c), NULL, false, false); }
IMPL(cuMemcpy2DAsync)(const CUDA_MEMCPY2D_v1 *c, CUstream s)
{
    BOX(FLAT_FIELDS(c), s, false, true);
}
IMPL(cuMemcpy3DAsync)(const CUDA_MEMCPY3D_v1 *c, CUstream s) { BOX(COMMON_3D(c), s, false, true); }

/* ---- Batches ---- */

static CUresult batch(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
    size_t *failed, CUstream s, bool pt)
{
    *failed = SIZE_MAX;
    if (!to || !from || !sizes || !count) return CUDA_ERROR_INVALID_VALUE;
    {
        struct fake_stream *stream;
        FAKE_LOCKED;
        FAKE_TRY(fake_stream_get(s, pt, &stream));
        if (stream->legacy)
            return CUDA_ERROR_INVALID_VALUE; /* as cuda.h says; the threads' own default streams are
                                                good */
    }
    for (size_t i = 0; i < count; i++) {
        CUresult result = flat(to[i], ANY, from[i], ANY, sizes[i], s, pt, true);
        if (!result) continue;
        *failed = i;
        return result;
    }
    return CUDA_SUCCESS;
}
IMPL(cuMemcpyBatchAsync)(bool pt, CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
    CUmemcpyAttributes *attributes, size_t *indices, size_t attribute_count, size_t *failed,
    CUstream s)
{
    (void)attributes, (void)indices, (void)attribute_count;
    size_t at; /* not told before all is read: a program that does not care may give the same place
                  for everything */
    CUresult result = batch(to, from, sizes, count, &at, s, pt);
    if (failed) *failed = at;
    return result;
}
IMPL(cuMemcpyBatchAsync_v2)(bool pt, CUdeviceptr *to, CUdeviceptr *from, size_t *sizes,
    size_t count, CUmemcpyAttributes *attributes, size_t *indices, size_t attribute_count,
    CUstream s)
{
    (void)attributes, (void)indices, (void)attribute_count;
    size_t at;
    return batch(to, from, sizes, count, &at, s, pt);
}
IMPL(cuMemcpyWithAttributesAsync)(bool pt, CUdeviceptr to, CUdeviceptr from, size_t size,
    CUmemcpyAttributes *attributes, CUstream s)
{
    (void)attributes;
    return flat(to, ANY, from, ANY, size, s, pt, true);
}
