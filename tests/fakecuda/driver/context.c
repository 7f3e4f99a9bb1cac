/*
 * Contexts: the primary one of each device, created ones, and each thread's stack of current ones.
 *
 * A context's structure is never freed, so that a thread that still has a destroyed one current
 * finds out safely.
 */
#include "tests/fakecuda/driver/fake.h"

TLS struct fake_thread *fake_thread_known;
struct fake_context *fake_contexts;

static struct fake_handles handles;
static struct fake_context *primaries[FAKE_MAX_DEVICES];
static unsigned primary_flags[FAKE_MAX_DEVICES];

static pthread_key_t thread_key;

static void thread_ends(void *value)
{
    FAKE_LOCKED;
    fake_streams_drop(value);
    fake_thread_known = NULL;
    free(value);
}
static void make_thread_key(void) { pthread_key_create(&thread_key, thread_ends); }

struct fake_thread *fake_thread_new(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_thread_key);
    fake_thread_known = calloc(1, sizeof *fake_thread_known);
    if (!fake_thread_known) abort();
    pthread_setspecific(thread_key, fake_thread_known);
    return fake_thread_known;
}

CUresult fake_current(struct fake_context **context)
{
    struct fake_thread *thread = fake_thread();

    if (!thread->depth || !thread->stack[thread->depth - 1]) return CUDA_ERROR_INVALID_CONTEXT;
    *context = thread->stack[thread->depth - 1];
    return (*context)->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

struct fake_context *fake_context_get(CUcontext handle)
{
    struct fake_context *context = fake_handle_get(&handles, handle);
    return context && context->alive ? context : NULL;
}

CUresult fake_context_of(CUcontext handle, struct fake_context **context)
{
    if (!handle) return fake_current(context);
    *context = fake_context_get(handle);
    return *context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* Waits for all that its streams have been given so far, destroyed streams included. */
void fake_context_wait(struct fake_context *context)
{
    for (;;) {
        struct fake_record *tail = NULL;

        for (struct fake_stream *s = context->streams; s && !tail; s = s->next)
            tail = fake_stream_tail(s);
        if (!tail) break;
        fake_wait(tail);
        fake_record_drop(tail);
    }
    for (struct fake_stream *s = context->streams; s; s = s->next) fake_clock_back(s->last_end);
}

static bool start(struct fake_context *context, unsigned flags)
{
    static unsigned long long last_id;

    context->id = ++last_id;
    context->flags = flags;
    context->alive = true;
    context->generation++;
    context->legacy = fake_stream_alloc(context);
    context->legacy->legacy = true;
    context->legacy->id = context->id == 1 ? 7 : fake_next_id();
    return true;
}

static struct fake_context *context_new(int device, unsigned flags, bool primary)
{
    struct fake_context *context = calloc(1, sizeof *context);

    if (!context) return NULL;
    context->device = device;
    context->primary = primary;
    context->handle = fake_handle_new(&handles, context);
    start(context, flags);
    context->next = fake_contexts;
    fake_contexts = context;
    return context;
}

/* Ends a context after its work is done; its streams' handles become invalid. A primary one that is
 * reset keeps its references. */
static void stop(struct fake_context *context)
{
    fake_context_wait(context);
    context->alive = false;
    while (context->streams) fake_stream_release(context->streams);
    context->legacy = NULL;
}

static CUresult check_device(CUdevice device)
{
    return device < 0 || device >= fake_device_count ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

/* ---- Primary contexts ---- */

IMPL(cuDevicePrimaryCtxRetain)(CUcontext *pctx, CUdevice device)
{
    struct fake_context *context;

    FAKE_TRY(check_device(device));
    if (!pctx) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    context = primaries[device];
    if (!context) context = primaries[device] = context_new(device, primary_flags[device], true);
    else if (!context->alive) start(context, primary_flags[device]);
    context->references++;
    *pctx = context->handle;
    return CUDA_SUCCESS;
}

static CUresult primary_release(CUdevice device, bool all)
{
    struct fake_context *context;

    FAKE_TRY(check_device(device));
    FAKE_LOCKED;
    context = primaries[device];
    if (!context || !(all || context->references))
        return all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    if ((all || --context->references == 0) && context->alive) stop(context);
    return CUDA_SUCCESS;
}
IMPL(cuDevicePrimaryCtxRelease_v2)(CUdevice device) { return primary_release(device, false); }
IMPL(cuDevicePrimaryCtxRelease)(CUdevice device) { return primary_release(device, false); }
IMPL(cuDevicePrimaryCtxReset_v2)(CUdevice device) { return primary_release(device, true); }
IMPL(cuDevicePrimaryCtxReset)(CUdevice device) { return primary_release(device, true); }

static CUresult set_primary_flags(CUdevice device, unsigned flags)
{
    FAKE_TRY(check_device(device));
    FAKE_LOCKED;
    primary_flags[device] = flags;
    if (primaries[device]) primaries[device]->flags = flags;
    return CUDA_SUCCESS;
}
API(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned flags), (device, flags))
{
    return set_primary_flags(device, flags);
}
API(cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned flags), (device, flags))
{
    return set_primary_flags(device, flags);
}

API(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active),
    (device, flags, active))
{
    FAKE_TRY(check_device(device));
    if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    *flags = primary_flags[device];
    *active = primaries[device] && primaries[device]->alive;
    return CUDA_SUCCESS;
}

/* ---- Created contexts ---- */

static CUresult push(struct fake_context *context)
{
    if (fake_thread()->depth == FAKE_STACK) return CUDA_ERROR_OUT_OF_MEMORY;
    fake_thread()->stack[fake_thread()->depth++] = context;
    return CUDA_SUCCESS;
}

static CUresult create(CUcontext *pctx, unsigned flags, CUdevice device)
{
    struct fake_context *context;

    FAKE_TRY(check_device(device));
    if (!pctx) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    context = context_new(device, flags, false);
    if (!context) return CUDA_ERROR_OUT_OF_MEMORY;
    context->references = 1;
    *pctx = context->handle;
    return push(context);
}
IMPL(cuCtxCreate)(CUcontext *pctx, unsigned flags, CUdevice device)
{
    return create(pctx, flags, device);
}
IMPL(cuCtxCreate_v2)(CUcontext *pctx, unsigned flags, CUdevice device)
{
    return create(pctx, flags, device);
}
IMPL(cuCtxCreate_v3)(
    CUcontext *pctx, CUexecAffinityParam *params, int count, unsigned flags, CUdevice device)
{
    (void)params, (void)count;
    return create(pctx, flags, device);
}
IMPL(cuCtxCreate_v4)(CUcontext *pctx, CUctxCreateParams *params, unsigned flags, CUdevice device)
{
    (void)params;
    return create(pctx, flags, device);
}

static CUresult destroy(CUcontext handle)
{
    struct fake_context *context;

    FAKE_LOCKED;
    context = fake_context_get(handle);
    if (!context || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    stop(context);
    fake_handle_free(&handles, context->handle);
    if (fake_thread()->depth && fake_thread()->stack[fake_thread()->depth - 1] == context)
        fake_thread()->depth--;
    return CUDA_SUCCESS;
}
IMPL(cuCtxDestroy_v2)(CUcontext ctx) { return destroy(ctx); }
IMPL(cuCtxDestroy)(CUcontext ctx) { return destroy(ctx); }

IMPL(cuCtxAttach)(CUcontext *pctx, unsigned flags)
{
    struct fake_context *context;

    if (!pctx || flags) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_current(&context));
    context->references++;
    *pctx = context->handle;
    return CUDA_SUCCESS;
}

IMPL(cuCtxDetach)(CUcontext ctx)
{
    {
        struct fake_context *context;
        FAKE_LOCKED;
        context = fake_context_get(ctx);
        if (!context) return CUDA_ERROR_INVALID_CONTEXT;
        if (--context->references > 0) return CUDA_SUCCESS;
    }
    return destroy(ctx);
}

/* ---- The current context ---- */

/* A primary context can be made current before it is retained again. */
static struct fake_context *settable(CUcontext handle)
{
    struct fake_context *context = fake_handle_get(&handles, handle);
    return context && (context->alive || context->primary) ? context : NULL;
}

static CUresult push_handle(CUcontext handle)
{
    struct fake_context *context;

    FAKE_LOCKED;
    context = settable(handle);
    return context ? push(context) : CUDA_ERROR_INVALID_CONTEXT;
}
IMPL(cuCtxPushCurrent_v2)(CUcontext ctx) { return push_handle(ctx); }
IMPL(cuCtxPushCurrent)(CUcontext ctx) { return push_handle(ctx); }

static CUresult pop(CUcontext *pctx)
{
    struct fake_context *context;

    if (!fake_thread()->depth) return CUDA_ERROR_INVALID_CONTEXT;
    context = fake_thread()->stack[--fake_thread()->depth];
    if (pctx) *pctx = context ? context->handle : NULL;
    return CUDA_SUCCESS;
}
IMPL(cuCtxPopCurrent_v2)(CUcontext *pctx) { return pop(pctx); }
IMPL(cuCtxPopCurrent)(CUcontext *pctx) { return pop(pctx); }

IMPL(cuCtxSetCurrent)(CUcontext ctx)
{
    struct fake_context *context = NULL;

    FAKE_LOCKED;
    if (ctx && !(context = settable(ctx))) return CUDA_ERROR_INVALID_CONTEXT;
    if (!ctx) {
        if (fake_thread()->depth) fake_thread()->depth--;
        return CUDA_SUCCESS;
    }
    if (!fake_thread()->depth) return push(context);
    fake_thread()->stack[fake_thread()->depth - 1] = context;
    return CUDA_SUCCESS;
}

API(cuCtxGetCurrent, (CUcontext * pctx), (pctx))
{
    if (!pctx) return CUDA_ERROR_INVALID_VALUE;
    *pctx = fake_thread()->depth && fake_thread()->stack[fake_thread()->depth - 1]
                ? fake_thread()->stack[fake_thread()->depth - 1]->handle
                : NULL;
    return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *device, CUcontext ctx)
{
    struct fake_context *context;

    if (!device) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    CUresult result = fake_context_of(ctx, &context);
    if (result && (ctx || result != CUDA_ERROR_CONTEXT_IS_DESTROYED)) return result;
    *device = context->device; /* also of a current one that has ended */
    return CUDA_SUCCESS;
}
API(cuCtxGetDevice, (CUdevice * device), (device)) { return get_device(device, NULL); }
API(cuCtxGetDevice_v2, (CUdevice * device, CUcontext ctx), (device, ctx))
{
    return get_device(device, ctx);
}

API(cuCtxGetId, (CUcontext ctx, unsigned long long *id), (ctx, id))
{
    struct fake_context *context;

    if (!id) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    CUresult result = fake_context_of(ctx, &context);
    if (result) return ctx ? CUDA_ERROR_CONTEXT_IS_DESTROYED : result;
    *id = context->id;
    return CUDA_SUCCESS;
}

API(cuCtxGetFlags, (unsigned *flags), (flags))
{
    struct fake_context *context;

    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_current(&context));
    *flags = context->flags;
    return CUDA_SUCCESS;
}

API(cuCtxSetFlags, (unsigned flags), (flags))
{
    struct fake_context *context;

    FAKE_LOCKED;
    FAKE_TRY(fake_current(&context));
    context->flags = flags;
    return CUDA_SUCCESS;
}

API(cuCtxGetApiVersion, (CUcontext ctx, unsigned *version), (ctx, version))
{
    struct fake_context *context;

    if (!version) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_context_of(ctx, &context));
    *version = 3020;
    return CUDA_SUCCESS;
}

void fake_priority_range(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
}

IMPL(cuCtxGetStreamPriorityRange)(int *least, int *greatest)
{
    struct fake_context *context;
    int low, high;

    FAKE_LOCKED;
    FAKE_TRY(fake_current(&context));
    fake_priority_range(&low, &high);
    fake_journal_add(" least=%d greatest=%d", low, high);
    if (least) *least = low;
    if (greatest) *greatest = high;
    return CUDA_SUCCESS;
}

/* Nobody profiles; a client of CUPTI hears of them as of any call. */
IMPL(cuProfilerStart)(void) { return CUDA_SUCCESS; }
IMPL(cuProfilerStop)(void) { return CUDA_SUCCESS; }

API(cuCtxGetLimit, (size_t *value, CUlimit limit), (value, limit))
{
    (void)limit;
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    *value = 1024;
    return CUDA_SUCCESS;
}
API(cuCtxSetLimit, (CUlimit limit, size_t value), (limit, value))
{
    (void)limit, (void)value;
    return CUDA_SUCCESS;
}
API(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags), (peer, flags))
{
    (void)flags;
    FAKE_LOCKED;
    return fake_context_get(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
API(cuCtxDisablePeerAccess, (CUcontext peer), (peer))
{
    FAKE_LOCKED;
    return fake_context_get(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult synchronize(CUcontext ctx)
{
    struct fake_context *context;

    FAKE_LOCKED;
    FAKE_TRY(fake_context_of(ctx, &context));
    FAKE_TRY(fake_capture_forbids_context(context));
    FAKE_TAKES_TIME;
    fake_trace_context(context);
    fake_context_wait(context);
    return CUDA_SUCCESS;
}
IMPL(cuCtxSynchronize)(void) { return synchronize(NULL); }
IMPL(cuCtxSynchronize_v2)(CUcontext ctx) { return synchronize(ctx); }
