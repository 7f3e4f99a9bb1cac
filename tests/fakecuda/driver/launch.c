/* Launching kernels and host functions. */
#include "tests/fakecuda/driver/fake.h"

/* Parameters are read now, as the real driver does: from the array of pointers or from the packed
 * buffer. */
static void read_parameters(
    const struct fake_function *function, struct fake_work *work, void **parameters, void **extra)
{
    const char *packed = NULL;
    size_t offset = 0;

    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2)
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) packed = extra[1];
    for (unsigned i = 0; i < function->parameters; i++) {
        size_t bytes = function->bytes[i];

        offset = (offset + bytes - 1) / bytes * bytes;
        work->kernel.values[i] = 0;
        if (packed) memcpy(&work->kernel.values[i], packed + offset, bytes);
        else if (parameters) memcpy(&work->kernel.values[i], parameters[i], bytes);
        offset += bytes;
    }
    work->kernel.effect = function->effect;
    work->kernel.duration = function->microseconds_at < 0
                                ? function->duration
                                : work->kernel.values[function->microseconds_at] * 1000;
}

/* The work of one launch. */
void fake_kernel_work(
    const struct fake_function *function, const CUDA_KERNEL_NODE_PARAMS *p, struct fake_work *work)
{
    memset(work, 0, sizeof *work);
    work->type = WORK_KERNEL;
    work->kernel.params = *p;
    read_parameters(function, work, p->kernelParams, p->extra);
}

/* priority: the launch's own, NULL for the stream's. */
static CUresult launch_at(const int *priority, CUfunction f, CUstream hstream, bool per_thread,
    const unsigned grid[3], const unsigned block[3], unsigned shared, void **parameters,
    void **extra)
{
    struct fake_function *function;
    struct fake_stream *stream;

    if (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2])
        return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(hstream, per_thread, &stream));
    function = fake_function_get(f);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    if (hstream) {
        struct fake_context *context;
        FAKE_TRY(fake_current(&context));
        if (stream->context != context) return CUDA_ERROR_INVALID_HANDLE;
    }
    /* The common case of a benchmark: nothing to do, nothing in its way, and nobody to tell. */
    if (!function->effect && function->microseconds_at < 0 && !function->duration &&
        !stream->capture && !stream->context->capturing_blocking && fake_idle(stream) &&
        !fake_tracing())
        return CUDA_SUCCESS;
    {
        struct fake_work work;
        CUDA_KERNEL_NODE_PARAMS p = {.func = f,
            .gridDimX = grid[0],
            .gridDimY = grid[1],
            .gridDimZ = grid[2],
            .blockDimX = block[0],
            .blockDimY = block[1],
            .blockDimZ = block[2],
            .sharedMemBytes = shared,
            .kernelParams = parameters,
            .extra = extra};
        fake_kernel_work(function, &p, &work);
        work.kernel.priority = priority ? *priority : stream->priority;
        return fake_submit(stream, &work, false);
    }
}

static CUresult launch(CUfunction f, CUstream hstream, bool per_thread, const unsigned grid[3],
    const unsigned block[3], unsigned shared, void **parameters, void **extra)
{
    return launch_at(NULL, f, hstream, per_thread, grid, block, shared, parameters, extra);
}

IMPL(cuLaunchKernel)(bool per_thread, CUfunction f, unsigned gx, unsigned gy, unsigned gz,
    unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream, void **parameters,
    void **extra)
{
    if (fake_direct) return CUDA_SUCCESS;
    return launch(f, stream, per_thread, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared,
        parameters, extra);
}

/* Some attributes have the launch record an event. Here it is done when the kernel is, which is
 * late, but not too late. */
static CUresult record_by(const CUlaunchAttribute *at, CUstream hstream, bool per_thread)
{
    struct fake_stream *stream;
    CUevent handle;

    if (at->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
        handle = at->value.programmaticEvent.event;
    else if (at->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
        handle = at->value.launchCompletionEvent.event;
    else return CUDA_SUCCESS;
    FAKE_LOCKED;
    struct fake_event *event = fake_event_get(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    FAKE_TRY(fake_stream_get(hstream, per_thread, &stream));
    return fake_event_put(stream, event);
}

IMPL(cuLaunchKernelEx)(
    bool per_thread, const CUlaunchConfig *c, CUfunction f, void **parameters, void **extra)
{
    const int *priority = NULL;

    if (!c || (c->numAttrs && !c->attrs)) return CUDA_ERROR_INVALID_VALUE;
    if (fake_direct) return CUDA_SUCCESS;
    for (unsigned i = 0; i < c->numAttrs; i++) {
        if (c->attrs[i].id != CU_LAUNCH_ATTRIBUTE_PRIORITY) {
            fake_journal_add(" attribute=%d", (int)c->attrs[i].id);
            continue;
        }
        priority = &c->attrs[i].value.priority;
        fake_journal_add(" priority=%d", *priority);
    }
    FAKE_TRY(launch_at(priority, f, c->hStream, per_thread,
        (unsigned[]){c->gridDimX, c->gridDimY, c->gridDimZ},
        (unsigned[]){c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes, parameters,
        extra));
    for (unsigned i = 0; i < c->numAttrs; i++)
        FAKE_TRY(record_by(&c->attrs[i], c->hStream, per_thread));
    return CUDA_SUCCESS;
}

IMPL(cuLaunchCooperativeKernel)(bool per_thread, CUfunction f, unsigned gx, unsigned gy,
    unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream,
    void **parameters)
{
    if (fake_direct) return CUDA_SUCCESS;
    return launch(f, stream, per_thread, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared,
        parameters, NULL);
}

IMPL(cuLaunchCooperativeKernelMultiDevice)(CUDA_LAUNCH_PARAMS *list, unsigned count, unsigned flags)
{
    (void)flags;
    if (!list || !count) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        CUDA_LAUNCH_PARAMS *p = &list[i];
        FAKE_TRY(launch(p->function, p->hStream, false,
            (unsigned[]){p->gridDimX, p->gridDimY, p->gridDimZ},
            (unsigned[]){p->blockDimX, p->blockDimY, p->blockDimZ}, p->sharedMemBytes,
            p->kernelParams, NULL));
    }
    return CUDA_SUCCESS;
}

/* The launches of CUDA 1 to 3, whose parameters were set on the function; here they have none. */
static CUresult launch_old(CUfunction f, int width, int height, CUstream stream)
{
    uint64_t nothing = 0;
    void *parameters[8] = {
        &nothing, &nothing, &nothing, &nothing, &nothing, &nothing, &nothing, &nothing};

    if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
    return launch(f, stream, false, (unsigned[]){(unsigned)width, (unsigned)height, 1},
        (unsigned[]){1, 1, 1}, 0, parameters, NULL);
}
IMPL(cuLaunch)(CUfunction f) { return launch_old(f, 1, 1, NULL); }
IMPL(cuLaunchGrid)(CUfunction f, int width, int height)
{
    return launch_old(f, width, height, NULL);
}
IMPL(cuLaunchGridAsync)(CUfunction f, int width, int height, CUstream stream)
{
    return launch_old(f, width, height, stream);
}

/* ---- Host functions ---- */

static CUresult host(
    CUstream hstream, bool per_thread, CUhostFn function, CUstreamCallback callback, void *data)
{
    struct fake_work work = {.type = WORK_HOST, .host = {function, callback, hstream, data}};
    struct fake_stream *stream;

    if (!function && !callback) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(hstream, per_thread, &stream));
    return fake_submit(stream, &work, false);
}
IMPL(cuLaunchHostFunc)(bool per_thread, CUstream stream, CUhostFn function, void *data)
{
    return host(stream, per_thread, function, NULL, data);
}
IMPL(cuLaunchHostFunc_v2)(
    bool per_thread, CUstream stream, CUhostFn function, void *data, unsigned mode)
{
    (void)mode;
    return host(stream, per_thread, function, NULL, data);
}

IMPL(cuStreamAddCallback)(
    bool per_thread, CUstream hstream, CUstreamCallback callback, void *data, unsigned flags)
{
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    {
        struct fake_stream *stream;
        FAKE_LOCKED;
        FAKE_TRY(fake_stream_get(hstream, per_thread, &stream));
        if (stream->capture)
            return fake_capture_forbids(stream); /* it has no node; host functions have */
    }
    return host(hstream, per_thread, NULL, callback, data);
}
