/* Which context a call is made in. */
#include "shim/api/api.h"

/* Primary contexts that were made, or kept alive, for a stream of this library: one reference each. */
static _Atomic(CUcontext) primaries[API_DEVICES];

static status primary_of(int device, CUcontext *context)
{
    CUcontext none = NULL;
    CHECK(device >= 0 && device < API_DEVICES, CUSTREAM_INVALID_VALUE);
    if ((*context = cs_load_acq(&primaries[device]))) return CUSTREAM_SUCCESS;
    TRY(CUDA(cuDevicePrimaryCtxRetain, context, device));
    if (atomic_compare_exchange_strong(&primaries[device], &none, *context)) return CUSTREAM_SUCCESS;
    api_driver.cuDevicePrimaryCtxRelease_v2(device); /* another thread was first */
    return CUSTREAM_SUCCESS;
}

static bool is_needed(int device)
{
    static const enum api_mark marks[] = {API_STREAM, API_EVENT, API_GRAPH};
    cs_u64 alive = 0, ever;
    for (size_t i = 0; i < CS_COUNT(marks) && !alive; i++) api_object_counts(marks[i], device, &alive, &ever);
    return alive;
}

/* Where the program holds nothing any more. A context that goes is not to stay current. */
void api_contexts_release(void)
{
    for (int device = 0; device < API_DEVICES && !api_forked(); device++) {
        CUcontext current = NULL, context = cs_load_acq(&primaries[device]);
        if (!context || is_needed(device)) continue;
        cs_store(&primaries[device], NULL);
        api_driver.cuCtxGetCurrent(&current);
        api_driver.cuDevicePrimaryCtxRelease_v2(device);
        if (current == context) api_driver.cuCtxSetCurrent(NULL);
    }
}

status api_device_check(int device)
{
    int count;
    if (device == -1) return CUSTREAM_SUCCESS;
    TRY(CUDA(cuDeviceGetCount, &count));
    return device >= 0 && device < count && device < API_DEVICES ? CUSTREAM_SUCCESS : CUSTREAM_INVALID_VALUE;
}

/* The current context and its device; NULL and 0: there is none. One that was destroyed, by custream_shutdown on another thread it may be, is none. */
static status look(CUcontext *context, CUdevice *device)
{
    *context = NULL;
    *device = 0;
    TRY(CUDA(cuCtxGetCurrent, context));
    if (!*context) return CUSTREAM_SUCCESS;
    CUresult result = api_driver.cuCtxGetDevice(device);
    if (result != CUDA_ERROR_CONTEXT_IS_DESTROYED) return api_result(result);
    *context = NULL;
    *device = 0;
    return CUSTREAM_SUCCESS;
}

status api_current_device(int *device)
{
    CUcontext context;
    CUdevice current;
    TRY(look(&context, &current));
    *device = current;
    return CUSTREAM_SUCCESS;
}

status api_enter(int *device, struct api_scope *scope)
{
    CUcontext current, wanted;
    CUdevice number;
    scope->pushed = false;
    TRY(api_device_check(*device));
    TRY(look(&current, &number));
    if (current && (*device == -1 || *device == number)) {
        *device = number;
        return CUSTREAM_SUCCESS;
    }
    if (!current) CHECK(api_makes_contexts(), CUSTREAM_NO_CONTEXT);
    if (*device == -1) *device = 0;
    TRY(primary_of(*device, &wanted));
    if (!current) return CUDA(cuCtxSetCurrent, wanted); /* it stays: as with the CUDA runtime the next call finds one */
    TRY(CUDA(cuCtxPushCurrent_v2, wanted));
    scope->pushed = true;
    return CUSTREAM_SUCCESS;
}

status api_enter_of(custream_t stream, struct api_scope *scope)
{
    CUcontext context = stream->context;
    int any = -1;
    scope->pushed = false;
    if (api_stream_is_default(stream)) return api_enter(&any, scope);
    if (!context) TRY(CUDA(cuStreamGetCtx, stream->handle, &context));
    TRY(CUDA(cuCtxPushCurrent_v2, context));
    scope->pushed = true;
    return CUSTREAM_SUCCESS;
}

void api_leave(struct api_scope *scope)
{
    CUcontext popped;
    if (scope->pushed) api_driver.cuCtxPopCurrent_v2(&popped);
    scope->pushed = false;
}
