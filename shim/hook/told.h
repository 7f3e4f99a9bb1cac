/*
 * Of a call: what kind of hook it meets, and what hooks are told of it besides its stream, by the effect that its row names. A row of another effect does not
 * compile without a TOLD here.
 */
#ifndef CS_HOOK_TOLD_H
#define CS_HOOK_TOLD_H

#include "shim/policy/hooks.h"

/* The kind that the effect says, else that of the row's kind; -1 none. A HOOKED is the second of two arguments, and what is none is the first. */
#define CS_HOOKED(call, kind, ...)        CS_HOOKED_(cs_hook_of_kind(call, kind), __VA_ARGS__)
#define CS_HOOKED_(by_kind, effect, ...)  CS_HOOKED_1(HOOKED_##effect, by_kind, )
#define CS_HOOKED_1(...)                  CS_HOOKED_2(__VA_ARGS__)
#define CS_HOOKED_2(none, kind, ...)      ((int)(kind))

#define HOOKED_stream_create              , CUSTREAM_HOOK_CREATE /* asked about in the chain of creations (policy/steer.c) */
#define HOOKED_stream_destroy             , CUSTREAM_HOOK_DESTROY
#define HOOKED_event_create               , CUSTREAM_HOOK_EVENT_CREATE
#define HOOKED_event_destroy              , CUSTREAM_HOOK_EVENT_DESTROY
#define HOOKED_event_record               , CUSTREAM_HOOK_RECORD
#define HOOKED_capture_begin              , CUSTREAM_HOOK_CAPTURE
#define HOOKED_capture_end                , CUSTREAM_HOOK_CAPTURE

#define CS_TOLD(...)                      CS_TOLD_(__VA_ARGS__)
#define CS_TOLD_(effect, ...)             TOLD_##effect(__VA_ARGS__)

#define TOLD_event_record(handle)         hook_.info.event = handle;
#define TOLD_event_wait(handle)           hook_.info.event = handle;
#define TOLD_stream_wait(stream_, handle) hook_.info.event = handle;
#define TOLD_event_create(out, flags_)    hook_.info.flags = flags_;
#define TOLD_event_destroy(handle)        hook_.info.event = handle;
#define TOLD_stream_destroy(handle)       hook_.info.stream = handle;

/* Nothing. */
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
