/*
 * As much of a driver as the objects ask for: contexts are numbers, handles come from a list that
 * gives the last one back first, as the real one does. stub_driver() puts it behind cs_real and
 * makes the pools. Each thread has its current context in stub_current.
 */
#ifndef CS_TESTS_UNIT_DRIVER_H
#define CS_TESTS_UNIT_DRIVER_H

#include <pthread.h>

#include "shim/base/clock.h"
#include "shim/calls/real.h"
#include "shim/object/creator.h"
#include "shim/object/event.h"
#include "shim/object/stream.h"
#include "tests/unit/check.h"

static __thread CUcontext stub_current;
static _Atomic int stub_current_asked;
static CUcontext stub_stream_context; /* of every stream; NULL: the current one */
static int stub_primary_active = 1;

static CUresult stub_cuCtxGetCurrent(CUcontext *out)
{
    return cs_add(&stub_current_asked, 1), *out = stub_current, CUDA_SUCCESS;
}
static CUresult stub_cuCtxGetDevice(CUdevice *out)
{
    return *out = (int)((uintptr_t)stub_current >> 32), CUDA_SUCCESS;
}
static CUresult stub_cuStreamGetCtx(CUstream stream, CUcontext *out)
{
    (void)stream;
    return *out = stub_stream_context ? stub_stream_context : stub_current, CUDA_SUCCESS;
}
static CUresult stub_cuStreamGetPriority(CUstream stream, int *out)
{
    return (void)stream, *out = -5, CUDA_SUCCESS;
}
static CUresult stub_cuStreamGetFlags(CUstream stream, unsigned *out)
{
    return (void)stream, *out = CU_STREAM_NON_BLOCKING, CUDA_SUCCESS;
}
static int stub_captures;
static CUresult stub_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *out)
{
    (void)stream;
    return *out = stub_captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE,
           CUDA_SUCCESS;
}
static CUresult stub_cuDeviceGetName(char *name, int size, CUdevice device)
{
    return snprintf(name, (size_t)size, "stub %d", device), CUDA_SUCCESS;
}
static CUresult stub_cuDeviceGetAttribute(int *out, CUdevice_attribute a, CUdevice d)
{
    return (void)a, (void)d, *out = 132, CUDA_SUCCESS;
}
static CUresult stub_cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    (void)device;
    return *flags = 0, *active = stub_primary_active, CUDA_SUCCESS;
}

static void stub_driver(void)
{
    cs_real.cuCtxGetCurrent = stub_cuCtxGetCurrent;
    cs_real.cuCtxGetDevice = stub_cuCtxGetDevice;
    cs_real.cuStreamGetCtx = stub_cuStreamGetCtx;
    cs_real.cuStreamGetPriority = stub_cuStreamGetPriority;
    cs_real.cuStreamGetFlags = stub_cuStreamGetFlags;
    cs_real.cuStreamIsCapturing = stub_cuStreamIsCapturing;
    cs_real.cuDeviceGetName = stub_cuDeviceGetName;
    cs_real.cuDeviceGetAttribute = stub_cuDeviceGetAttribute;
    cs_real.cuDevicePrimaryCtxGetState = stub_cuDevicePrimaryCtxGetState;
    cs_thread_set_ring_size(1 << 16);
    REQUIRE(cs_contexts_init() && cs_streams_init() && cs_events_init() && cs_creator_init());
}

/* A context of a device; `n` counts from 1. */
static inline CUcontext stub_context(int device, int n)
{
    return (CUcontext)((uintptr_t)device << 32 | (uintptr_t)n << 8);
}
static inline CUstream stub_stream(int n)
{
    return (CUstream)((uintptr_t)0x7f0000000000 + (uintptr_t)n * 0x3d0);
}
static inline CUevent stub_event(int n)
{
    return (CUevent)((uintptr_t)0x7e0000000000 + (uintptr_t)n * 0x80);
}

static inline struct cs_stream *stream_at(cs_ref ref) { return cs_pool_get(&cs_streams, ref); }
static inline struct cs_event *event_at(cs_ref ref) { return cs_pool_get(&cs_events, ref); }
static inline struct cs_context *context_at(cs_ref ref) { return cs_pool_get(&cs_contexts, ref); }

/* What the wrappers do. */
static inline cs_ref make_stream(struct cs_thread *t, CUstream handle)
{
    return cs_stream_created(t, handle, CU_STREAM_DEFAULT, 0, CS_CALL_cuStreamCreate,
        (const void *)&make_stream, cs_ticks());
}
static inline cs_ref make_event(struct cs_thread *t, CUevent handle)
{
    return cs_event_created(
        t, handle, 0, CS_CALL_cuEventCreate, (const void *)&make_event, cs_ticks());
}
static inline cs_ref find_stream(struct cs_thread *t, CUstream handle)
{
    return cs_stream_of(t, handle, false, true, cs_ticks());
}
static inline cs_ref find_event(struct cs_thread *t, CUevent handle)
{
    return cs_event_of(t, handle, true, cs_ticks());
}

static inline cs_u32 release_all(struct cs_pool
        *pool) /* what the writer does, when no record can name an ended object any more */
{
    cs_u32 n = 0;
    for (cs_u32 at = cs_pool_take_ended(pool), next; at; at = next, n++) {
        struct cs_object *object = cs_pool_slot(pool, at - 1);
        next = object->next;
        cs_pool_release(pool, object);
    }
    return n;
}

#endif
