/*
 * The current stream: of a thread and a device, as CuPy's and PyTorch's; or of the process and a device, as Warp's, for threads that have set none. A push
 * keeps what it replaced on the thread's stack.
 */
#include "shim/api/current.h"
#include "shim/api/event.h"

#include <stdlib.h>

struct api_current {
    custream_t stream[API_DEVICES];
};

struct api_pushed {
    struct api_pushed *below;
    custream_t before; /* NULL: none was set */
    int device;        /* whose current stream it was */
    bool switched;
    CUcontext context; /* that was current, where the device was switched */
};

static custream_t of_process[API_DEVICES]; /* the lock's */

static void set_free(custream_t *stream)
{
    custream_t gone = *stream;
    *stream = NULL; /* first: its owner's release may come here again */
    if (gone) custream_release(gone);
}

static void currents_drop(struct api_thread *thread)
{
    while (thread->pushed) {
        struct api_pushed *top = thread->pushed;
        thread->pushed = top->below;
        set_free(&top->before);
        free(top);
    }
    for (int device = 0; thread->current && device < API_DEVICES; device++) set_free(&thread->current->stream[device]);
    free(thread->current);
    thread->current = NULL;
}

/* --- get and set --- */

/* The slot of the thread, made at the first set. */
static custream_t *slot_of(int device, bool make)
{
    struct api_thread *thread = api_thread();
    if (!thread) return NULL;
    if (!thread->current && make) thread->current = calloc(1, sizeof *thread->current), thread->currents_end = currents_drop;
    return thread->current ? &thread->current->stream[device] : NULL;
}

static status device_of(custream_t stream, int *device)
{
    if (!api_stream_is_default(stream)) return *device = stream->object.device, CUSTREAM_SUCCESS;
    return api_current_device(device);
}

CS_EXPORT status custream_current(int device, custream_t *stream)
{
    NEED(stream);
    TRY(api_ready());
    TRY(api_device_check(device));
    if (device == -1) TRY(api_current_device(&device));
    custream_t *slot = slot_of(device, false), found = slot ? *slot : NULL;
    if (found && !cs_load_acq(&found->object.closed)) return *stream = found, custream_retain(found);
    cs_lock_take(&api_lock);
    found = of_process[device];
    if (found) found->object.references++;
    cs_lock_drop(&api_lock);
    if (found && !cs_load_acq(&found->object.closed)) return *stream = found, CUSTREAM_SUCCESS;
    if (found) custream_release(found);
    return custream_default(device, stream);
}

custream_t api_current_or(custream_t stream, status *why)
{
    *why = CUSTREAM_SUCCESS;
    if (stream) return stream;
    *why = custream_current(-1, &stream);
    return *why == CUSTREAM_SUCCESS ? stream : NULL;
}

/* What both ways of setting ask first. */
static status prepare(custream_t stream, unsigned flags, int *device)
{
    int current;
    TRY(api_ready());
    USABLE_STREAM(stream);
    TRY(api_current_device(&current));
    TRY(device_of(stream, device));
    CHECK(!(flags & CUSTREAM_CHECK_DEVICE) || *device == current, CUSTREAM_DEVICE_MISMATCH);
    return CUSTREAM_SUCCESS;
}

/* `stream` waits for the device's current one, or the other way round: a default stream is the device's own while its context is current. */
static status order_with_current(custream_t stream, int device, bool waits)
{
    struct api_scope scope;
    custream_t other;
    TRY(api_enter(&device, &scope));
    status result = custream_current(device, &other);
    if (result == CUSTREAM_SUCCESS) {
        result = waits ? custream_wait_stream(stream, other, NULL, 0) : custream_wait_stream(other, stream, NULL, 0);
        custream_release(other);
    }
    api_leave(&scope);
    return result;
}

/* Makes the device's context current in place of the one that is. */
static status make_current(int device)
{
    struct api_scope scope;
    CUcontext context;
    TRY(api_enter(&device, &scope));
    if (!scope.pushed) return CUSTREAM_SUCCESS;
    TRY(CUDA(cuCtxPopCurrent_v2, &context));
    return CUDA(cuCtxSetCurrent, context);
}

CS_EXPORT status custream_set_current(custream_t stream, unsigned flags)
{
    int device;
    CHECK(!(flags & ~(unsigned)(CUSTREAM_SCOPE_PROCESS | CUSTREAM_SYNC | CUSTREAM_SWITCH_DEVICE | CUSTREAM_CHECK_DEVICE)), CUSTREAM_INVALID_VALUE);
    TRY(prepare(stream, flags, &device));
    if (flags & CUSTREAM_SYNC) TRY(order_with_current(stream, device, true));
    custream_t *slot = flags & CUSTREAM_SCOPE_PROCESS ? &of_process[device] : slot_of(device, true);
    CHECK(slot, CUSTREAM_NO_MEMORY);
    TRY(custream_retain(stream));
    cs_lock_take(&api_lock);
    custream_t before = *slot;
    *slot = stream;
    cs_lock_drop(&api_lock);
    if (before) custream_release(before);
    return flags & CUSTREAM_SWITCH_DEVICE ? make_current(device) : CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_push(custream_t stream, unsigned flags)
{
    int device;
    CHECK(!(flags & ~(unsigned)(CUSTREAM_SYNC | CUSTREAM_SWITCH_DEVICE | CUSTREAM_CHECK_DEVICE)), CUSTREAM_INVALID_VALUE);
    TRY(prepare(stream, flags, &device));
    custream_t *slot = slot_of(device, true);
    struct api_pushed *pushed = slot ? calloc(1, sizeof *pushed) : NULL;
    CHECK(pushed, CUSTREAM_NO_MEMORY);
    *pushed = (struct api_pushed){.below = api_thread()->pushed, .before = *slot, .device = device, .switched = flags & CUSTREAM_SWITCH_DEVICE};
    status result = flags & CUSTREAM_SYNC ? order_with_current(stream, device, true) : CUSTREAM_SUCCESS;
    if (result == CUSTREAM_SUCCESS && pushed->switched) result = CUDA(cuCtxGetCurrent, &pushed->context);
    if (result == CUSTREAM_SUCCESS && pushed->switched) result = make_current(device);
    if (result != CUSTREAM_SUCCESS) return free(pushed), result;
    custream_retain(stream);
    *slot = stream; /* the reference to the one before is the stack's now */
    api_thread()->pushed = pushed;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_pop(unsigned flags)
{
    status result = CUSTREAM_SUCCESS;
    CHECK(!(flags & ~(unsigned)CUSTREAM_SYNC_EXIT), CUSTREAM_INVALID_VALUE);
    struct api_thread *thread = api_thread();
    struct api_pushed *top = thread ? thread->pushed : NULL;
    CHECK(top, CUSTREAM_INVALID_VALUE);
    custream_t *slot = &thread->current->stream[top->device], left = *slot;
    *slot = top->before;
    thread->pushed = top->below;
    bool open = left && !cs_load_acq(&left->object.closed);
    if (flags & CUSTREAM_SYNC_EXIT && open && !api_forked()) result = order_with_current(left, top->device, false);
    if (top->switched && !api_forked()) {
        status back = CUDA(cuCtxSetCurrent, top->context);
        if (result == CUSTREAM_SUCCESS) result = back;
    }
    if (left) custream_release(left);
    free(top);
    return result;
}

void api_currents_release(void)
{
    struct api_thread *thread = api_thread();
    if (thread) currents_drop(thread);
    for (int device = 0; device < API_DEVICES; device++) {
        cs_lock_take(&api_lock);
        custream_t stream = of_process[device];
        of_process[device] = NULL;
        cs_lock_drop(&api_lock);
        if (stream) custream_release(stream);
    }
}
