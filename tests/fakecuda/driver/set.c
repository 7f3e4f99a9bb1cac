/* Setting memory, arrays as objects, and a stream's reads and writes of single values. */
#include "tests/fakecuda/driver/fake.h"

/* ---- Memset: never waits, also the synchronous ones, since they run on the device ---- */

static CUresult set(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width,
    size_t height, CUstream s, bool pt, bool async)
{
    struct fake_work work = {
        .type = WORK_SET, .asynchronous = async, .set = {to, pitch, width, height, value, element}};
    struct fake_memory *memory;
    struct fake_stream *stream;

    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(s, pt, &stream));
    if (!async) FAKE_TRY(fake_capture_forbids(stream));
    if (!width || !height) return CUDA_SUCCESS;
    memory = fake_memory_find(to);
    if (!memory || to % element ||
        to - memory->base + (height - 1) * pitch + width * element > memory->bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return fake_submit(stream, &work, false);
}

IMPL(cuMemsetD8_v2)(bool pt, CUdeviceptr to, unsigned char v, size_t n)
{
    return set(to, 0, v, 1, n, 1, NULL, pt, false);
}
IMPL(cuMemsetD16_v2)(bool pt, CUdeviceptr to, unsigned short v, size_t n)
{
    return set(to, 0, v, 2, n, 1, NULL, pt, false);
}
IMPL(cuMemsetD32_v2)(bool pt, CUdeviceptr to, unsigned v, size_t n)
{
    return set(to, 0, v, 4, n, 1, NULL, pt, false);
}
IMPL(cuMemsetD2D8_v2)(bool pt, CUdeviceptr to, size_t p, unsigned char v, size_t w, size_t h)
{
    return set(to, p, v, 1, w, h, NULL, pt, false);
}
IMPL(cuMemsetD2D16_v2)(bool pt, CUdeviceptr to, size_t p, unsigned short v, size_t w, size_t h)
{
    return set(to, p, v, 2, w, h, NULL, pt, false);
}
IMPL(cuMemsetD2D32_v2)(bool pt, CUdeviceptr to, size_t p, unsigned v, size_t w, size_t h)
{
    return set(to, p, v, 4, w, h, NULL, pt, false);
}
IMPL(cuMemsetD8Async)(bool pt, CUdeviceptr to, unsigned char v, size_t n, CUstream s)
{
    return set(to, 0, v, 1, n, 1, s, pt, true);
}
IMPL(cuMemsetD16Async)(bool pt, CUdeviceptr to, unsigned short v, size_t n, CUstream s)
{
    return set(to, 0, v, 2, n, 1, s, pt, true);
}
IMPL(cuMemsetD32Async)(bool pt, CUdeviceptr to, unsigned v, size_t n, CUstream s)
{
    return set(to, 0, v, 4, n, 1, s, pt, true);
}
IMPL(cuMemsetD2D8Async)(
    bool pt, CUdeviceptr to, size_t p, unsigned char v, size_t w, size_t h, CUstream s)
{
    return set(to, p, v, 1, w, h, s, pt, true);
}
IMPL(cuMemsetD2D16Async)(
    bool pt, CUdeviceptr to, size_t p, unsigned short v, size_t w, size_t h, CUstream s)
{
    return set(to, p, v, 2, w, h, s, pt, true);
}
IMPL(cuMemsetD2D32Async)(
    bool pt, CUdeviceptr to, size_t p, unsigned v, size_t w, size_t h, CUstream s)
{
    return set(to, p, v, 4, w, h, s, pt, true);
}
IMPL(cuMemsetD8)(CUdeviceptr_v1 to, unsigned char v, unsigned n)
{
    return set(to, 0, v, 1, n, 1, NULL, false, false);
}
IMPL(cuMemsetD16)(CUdeviceptr_v1 to, unsigned short v, unsigned n)
{
    return set(to, 0, v, 2, n, 1, NULL, false, false);
}
IMPL(cuMemsetD32)(CUdeviceptr_v1 to, unsigned v, unsigned n)
{
    return set(to, 0, v, 4, n, 1, NULL, false, false);
}
IMPL(cuMemsetD2D8)(CUdeviceptr_v1 to, unsigned p, unsigned char v, unsigned w, unsigned h)
{
    return set(to, p, v, 1, w, h, NULL, false, false);
}
IMPL(cuMemsetD2D16)(CUdeviceptr_v1 to, unsigned p, unsigned short v, unsigned w, unsigned h)
{
    return set(to, p, v, 2, w, h, NULL, false, false);
}
IMPL(cuMemsetD2D32)(CUdeviceptr_v1 to, unsigned p, unsigned v, unsigned w, unsigned h)
{
    return set(to, p, v, 4, w, h, NULL, false, false);
}

/* ---- Arrays ---- */

static struct fake_handles arrays;

struct fake_array *fake_array_get(CUarray handle) { return fake_handle_get(&arrays, handle); }

static size_t element_bytes(CUarray_format format, unsigned channels)
{
    size_t one = format == CU_AD_FORMAT_UNSIGNED_INT8 || format == CU_AD_FORMAT_SIGNED_INT8 ? 1
                 : format == CU_AD_FORMAT_UNSIGNED_INT32 || format == CU_AD_FORMAT_SIGNED_INT32 ||
                         format == CU_AD_FORMAT_FLOAT
                     ? 4
                     : 2;
    return one * channels;
}

static CUresult array_create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    struct fake_context *context;
    struct fake_array *array;
    CUdeviceptr bytes;

    if (!out || !shape->Width) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_current(&context));
    FAKE_TRY(fake_unsafe());
    array = calloc(1, sizeof *array);
    if (!array) return CUDA_ERROR_OUT_OF_MEMORY;
    array->shape = *shape;
    array->element = element_bytes(shape->Format, shape->NumChannels);
    array->pitch = array->element * shape->Width;
    array->slice = array->pitch * (shape->Height ? shape->Height : 1);
    FAKE_TRY(fake_memory_new(
        array->slice * (shape->Depth ? shape->Depth : 1), CU_MEMORYTYPE_DEVICE, 0, &bytes));
    array->bytes = (char *)(uintptr_t)bytes;
    *out = fake_handle_new(&arrays, array);
    return CUDA_SUCCESS;
}
API(cuArrayCreate_v2, (CUarray * out, const CUDA_ARRAY_DESCRIPTOR *d), (out, d))
{
    if (!d) return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR shape = {
        .Width = d->Width, .Height = d->Height, .Format = d->Format, .NumChannels = d->NumChannels};
    return array_create(out, &shape);
}
API(cuArray3DCreate_v2, (CUarray * out, const CUDA_ARRAY3D_DESCRIPTOR *d), (out, d))
{
    return d ? array_create(out, d) : CUDA_ERROR_INVALID_VALUE;
}
API(cuArrayDestroy, (CUarray handle), (handle))
{
    struct fake_array *array;

    FAKE_LOCKED;
    array = fake_array_get(handle);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    fake_memory_free((CUdeviceptr)(uintptr_t)array->bytes);
    fake_handle_free(&arrays, handle);
    free(array);
    return CUDA_SUCCESS;
}
API(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR * d, CUarray handle), (d, handle))
{
    struct fake_array *array;

    if (!d) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    array = fake_array_get(handle);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    *d = array->shape;
    return CUDA_SUCCESS;
}

/* ---- Values ---- */

static CUresult values(CUstream s, bool pt, const struct fake_values_op *ops, unsigned count)
{
    struct fake_work work = {.type = WORK_VALUES, .values = {count}};
    struct fake_stream *stream;

    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(s, pt, &stream));
    for (unsigned i = 0; i < count; i++)
        if (!ops[i].address || ops[i].address % ops[i].bytes || !fake_memory_find(ops[i].address))
            return CUDA_ERROR_INVALID_VALUE;
    work.owned_bytes = count * sizeof *ops;
    work.owned = malloc(work.owned_bytes);
    if (!work.owned) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(work.owned, ops, work.owned_bytes);
    return fake_submit(stream, &work, false);
}

#define VALUE(call, type, waits, size) \
    IMPL(call)(bool pt, CUstream stream, CUdeviceptr address, type value, unsigned flags) { \
        return values(stream, pt, &(struct fake_values_op){waits, address, value, flags, size}, \
        1); \
    }
VALUE(cuStreamWaitValue32_v2, cuuint32_t, true, 4)
VALUE(cuStreamWaitValue64_v2, cuuint64_t, true, 8)
VALUE(cuStreamWriteValue32_v2, cuuint32_t, false, 4)
VALUE(cuStreamWriteValue64_v2, cuuint64_t, false, 8)
VALUE(cuStreamWaitValue32, cuuint32_t, true, 4)
VALUE(cuStreamWaitValue64, cuuint64_t, true, 8)
VALUE(cuStreamWriteValue32, cuuint32_t, false, 4)
VALUE(cuStreamWriteValue64, cuuint64_t, false, 8)
#undef VALUE

static CUresult batch(
    CUstream stream, bool pt, unsigned count, const CUstreamBatchMemOpParams *params)
{
    struct fake_values_op ops[256];
    unsigned used = 0;

    if (!params || !count || count > COUNT_OF(ops)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        const CUstreamBatchMemOpParams *p = &params[i];

        switch (p->operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            ops[used++] = (struct fake_values_op){
                true, p->waitValue.address, p->waitValue.value, p->waitValue.flags, 4};
            break;
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            ops[used++] = (struct fake_values_op){
                true, p->waitValue.address, p->waitValue.value64, p->waitValue.flags, 8};
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            ops[used++] = (struct fake_values_op){
                false, p->writeValue.address, p->writeValue.value, p->writeValue.flags, 4};
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            ops[used++] = (struct fake_values_op){
                false, p->writeValue.address, p->writeValue.value64, p->writeValue.flags, 8};
            break;
        case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        case CU_STREAM_MEM_OP_BARRIER: break;
        default: return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return values(stream, pt, ops, used);
}
IMPL(cuStreamBatchMemOp_v2)(
    bool pt, CUstream stream, unsigned count, CUstreamBatchMemOpParams *params, unsigned flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : batch(stream, pt, count, params);
}
IMPL(cuStreamBatchMemOp)(
    bool pt, CUstream stream, unsigned count, CUstreamBatchMemOpParams *params, unsigned flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : batch(stream, pt, count, params);
}
