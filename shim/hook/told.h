/*
 * What hooks are told of a call besides its stream, by the effect that its row names: a row of another effect does not compile without one here.
 */
#ifndef CS_HOOK_TOLD_H
#define CS_HOOK_TOLD_H

#include "shim/policy/hooks.h"

#define CS_TOLD(...)                      CS_TOLD_(__VA_ARGS__)
#define CS_TOLD_(effect, ...)             TOLD_##effect(__VA_ARGS__)

#define TOLD_event_record(handle)         hook_.info.event = handle;
#define TOLD_event_wait(handle)           hook_.info.event = handle;
#define TOLD_stream_wait(stream_, handle) hook_.info.event = handle;
#define TOLD_event_create(out, flags_)    hook_.kind = CUSTREAM_HOOK_EVENT_CREATE, hook_.info.flags = flags_;
#define TOLD_event_destroy(handle)        hook_.kind = CUSTREAM_HOOK_EVENT_DESTROY, hook_.info.event = handle;
#define TOLD_stream_destroy(handle)       hook_.kind = CUSTREAM_HOOK_DESTROY, hook_.info.stream = handle;

/* Nothing; and creations of streams are asked about in their chain (policy/steer.c). */
#define TOLD_nothing(...)
#define TOLD_stream_attribute(...)
#define TOLD_launch_config(...)
#define TOLD_priority_range(...)
#define TOLD_profiler(...)
#define TOLD_capture_begin(...)
#define TOLD_capture_end(...)
#define TOLD_graph_made(...)
#define TOLD_host_func(...)
#define TOLD_callback(...)
#define TOLD_context_create(...)
#define TOLD_context_set(...)
#define TOLD_context_pop(...)
#define TOLD_context_detach(...)
#define TOLD_context_destroy(...)
#define TOLD_primary_retain(...)
#define TOLD_primary_end(...)
#define TOLD_kernel_named(...)
#define TOLD_kernels_unloaded(...)
#define TOLD_stream_create(...)

#endif
