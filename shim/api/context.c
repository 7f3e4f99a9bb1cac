/* Which context a call is made in. */
#include "shim/api/context.h"

/* --- which context, and whether it is still there --- */

static bool has_ended(CUcontext context, cs_u64 *id)
{
    unsigned long long number = 0;
    CUresult result = api_driver.cuCtxGetId ? api_driver.cuCtxGetId(context, &number) : CUDA_SUCCESS;
    *id = number;
    return result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT;
}

void api_home_now(struct api_home *home)
{
    *home = (struct api_home){.context = NULL};
    if (api_driver.cuCtxGetCurrent(&home->context) == CUDA_SUCCESS && home->context) has_ended(home->context, &home->id);
}

bool api_home_is(const struct api_home *home, const struct api_home *other) { return home->context == other->context && home->id == other->id; }

/* A context that CUDA will not number for another reason, such as an error in a kernel, is there. */
bool api_home_lives(const struct api_home *home)
{
    cs_u64 id;
    if (!home->context || api_forked()) return true;
    return !has_ended(home->context, &id) && (!id || !home->id || id == home->id);
}

/* --- primary contexts --- */

/* Those that were made, or kept alive, for a stream of this library: one reference each. */
static _Atomic(CUcontext) primaries[API_DEVICES];

static bool is_active(int device)
{
    unsigned flags;
    int active = 0;
    return api_driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active;
}

/* A reset ends the context but not our reference to it: to take another one makes it anew. */
static status primary_of(int device, CUcontext *context)
{
    CUcontext none = NULL;
    CHECK(device >= 0 && device < API_DEVICES, CUSTREAM_INVALID_VALUE);
    if ((*context = cs_load_acq(&primaries[device])) && is_active(device)) return CUSTREAM_SUCCESS;
    TRY(CUDA(cuDevicePrimaryCtxRetain, context, device));
    if (atomic_compare_exchange_strong(&primaries[device], &none, *context)) return CUSTREAM_SUCCESS;
    api_driver.cuDevicePrimaryCtxRelease_v2(device); /* the one that we have is enough */
    return CUSTREAM_SUCCESS;
}

/* Where the program holds nothing of this library's any more. A context that goes is not to stay current; one that the program has references to stays. */
void api_contexts_release(void)
{
    for (int device = 0; device < API_DEVICES && !api_forked(); device++) {
        CUcontext current = NULL, context = cs_load_acq(&primaries[device]);
        if (!context || api_object_any(device)) continue;
        cs_store(&primaries[device], NULL);
        api_driver.cuCtxGetCurrent(&current);
        api_driver.cuDevicePrimaryCtxRelease_v2(device);
        if (current == context && !is_active(device)) api_driver.cuCtxSetCurrent(NULL);
    }
}

status api_device_check(int device)
{
    int count;
    if (device == -1) return CUSTREAM_SUCCESS;
    TRY(CUDA(cuDeviceGetCount, &count));
    return device >= 0 && device < count && device < API_DEVICES ? CUSTREAM_SUCCESS : CUSTREAM_INVALID_VALUE;
}

/* The current context and its device; NULL and 0: there is none. One that has ended, by a reset or custream_shutdown on another thread it may be, is none; its
 * device still counts. */
static status look(CUcontext *context, CUdevice *device)
{
    cs_u64 id;
    *context = NULL;
    *device = 0;
    TRY(CUDA(cuCtxGetCurrent, context));
    if (!*context) return CUSTREAM_SUCCESS;
    bool ended = has_ended(*context, &id);
    CUresult result = api_driver.cuCtxGetDevice(device);
    if (ended || result == CUDA_ERROR_CONTEXT_IS_DESTROYED) *context = NULL;
    if (result != CUDA_ERROR_CONTEXT_IS_DESTROYED) return api_result(result);
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

status api_enter_primary(int device, struct api_scope *scope)
{
    CUcontext primary;
    scope->pushed = false;
    TRY(primary_of(device, &primary));
    TRY(CUDA(cuCtxPushCurrent_v2, primary));
    scope->pushed = true;
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
    if (*device == -1) *device = number;
    if (current) return api_enter_primary(*device, scope);
    TRY(primary_of(*device, &wanted));
    return CUDA(cuCtxSetCurrent, wanted); /* it stays: as with the CUDA runtime the next call finds one */
}

void api_leave(struct api_scope *scope)
{
    CUcontext popped;
    if (scope->pushed) api_driver.cuCtxPopCurrent_v2(&popped);
    scope->pushed = false;
}
