/* Green contexts, minimally: one is a share of nothing, its streams are the primary context's. */
#include "tests/fakecuda/driver/fake.h"

struct fake_green {
    struct fake_context *context;
};
static struct fake_handles handles;

struct fake_context *fake_green_context(CUgreenCtx handle);
struct fake_context *fake_green_context(CUgreenCtx handle)
{
    struct fake_green *green = fake_handle_get(&handles, handle);
    return green ? green->context : NULL;
}

IMPL(cuGreenCtxCreate)(CUgreenCtx *out, CUdevResourceDesc desc, CUdevice device, unsigned flags)
{
    struct fake_green *green;
    CUcontext primary;

    (void)desc;
    if (!out || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
    FAKE_TRY(impl_cuDevicePrimaryCtxRetain(&primary, device));
    FAKE_LOCKED;
    green = calloc(1, sizeof *green);
    if (!green) return CUDA_ERROR_OUT_OF_MEMORY;
    green->context = fake_context_get(primary);
    *out = fake_handle_new(&handles, green);
    return CUDA_SUCCESS;
}

IMPL(cuGreenCtxDestroy)(CUgreenCtx handle)
{
    int device;
    {
        FAKE_LOCKED;
        struct fake_green *green = fake_handle_get(&handles, handle);
        if (!green) return CUDA_ERROR_INVALID_CONTEXT;
        device = green->context->device;
        fake_handle_free(&handles, handle);
        free(green);
    }
    return impl_cuDevicePrimaryCtxRelease_v2(device);
}

IMPL(cuCtxFromGreenCtx)(CUcontext *out, CUgreenCtx handle)
{
    FAKE_LOCKED;
    struct fake_context *context = fake_green_context(handle);
    if (!out || !context) return CUDA_ERROR_INVALID_VALUE;
    *out = context->handle;
    return CUDA_SUCCESS;
}

IMPL(cuGreenCtxStreamCreate)(CUstream *out, CUgreenCtx handle, unsigned flags, int priority)
{
    struct fake_stream *stream;

    FAKE_LOCKED;
    struct fake_context *context = fake_green_context(handle);
    if (!out || !context || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    FAKE_TRY(fake_stream_new(context, flags, priority, &stream));
    fake_journal_created(stream);
    stream->green = handle;
    *out = stream->handle;
    return CUDA_SUCCESS;
}

API(cuDeviceGetDevResource, (CUdevice device, CUdevResource *resource, CUdevResourceType type),
    (device, resource, type))
{
    if (!resource || type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= fake_device_count) return CUDA_ERROR_INVALID_DEVICE;
    memset(resource, 0, sizeof *resource);
    resource->type = type;
    resource->sm.smCount = 132;
    return CUDA_SUCCESS;
}
API(cuDevResourceGenerateDesc, (CUdevResourceDesc * out, CUdevResource *resources, unsigned count),
    (out, resources, count))
{
    if (!out || !resources || !count) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdevResourceDesc)1; /* it describes nothing */
    return CUDA_SUCCESS;
}
