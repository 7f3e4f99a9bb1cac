/*
 * What a call changes in our objects: the effects that rows of the call table name.
 *
 * Each effect is three statements inside the wrapper of its row: BEFORE the real call, AFTER it, and once the record is in the ring (PUBLISHED). They see
 * the wrapper's locals: thread_, call_, per_thread_, r_ (the driver's answer), begin_, end_, stream_ (where the record says that the work went), and the
 * parameters of the call. A new effect is three macros here and its name in a row.
 */
#ifndef CS_HOOK_EFFECTS_H
#define CS_HOOK_EFFECTS_H

#include "shim/gpu/mark.h"
#include "shim/hook/callback.h"
#include "shim/object/event.h"
#include "shim/object/graph.h"
#include "shim/object/kernel.h"
#include "shim/object/stream.h"

#define NOTHING                                      nothing, 0
#define DO(effect, ...)                              effect, __VA_ARGS__
#define CS_BEFORE(...)                               CS_BEFORE_(__VA_ARGS__)
#define CS_AFTER(...)                                CS_AFTER_(__VA_ARGS__)
#define CS_PUBLISHED(...)                            CS_PUBLISHED_(__VA_ARGS__)
#define CS_BEFORE_(effect, ...)                      BEFORE_##effect(__VA_ARGS__)
#define CS_AFTER_(effect, ...)                       AFTER_##effect(__VA_ARGS__)
#define CS_PUBLISHED_(effect, ...)                   PUBLISHED_##effect(__VA_ARGS__)
#define CS_DONE                                      (r_ == CUDA_SUCCESS)

#define BEFORE_nothing(none)
#define AFTER_nothing(none)
#define PUBLISHED_nothing(none)

#define BEFORE_stream_create(out, flags, priority)
#define AFTER_stream_create(out, flags, priority)                                                                                                    \
    if (CS_DONE) stream_ = cs_stream_created(thread_, *(out), flags, priority, call_, __builtin_return_address(0), end_);
#define PUBLISHED_stream_create(out, flags, priority)

/* The handle may come back from the driver before its destroy returns, so it is given up first and taken back if the driver refuses. */
#define BEFORE_stream_destroy(handle)    cs_ref dying_ = cs_stream_destroying(thread_, handle, per_thread_);
#define AFTER_stream_destroy(handle)     stream_ = dying_;
#define PUBLISHED_stream_destroy(handle) cs_stream_destroyed(dying_, CS_DONE, end_);

#define BEFORE_event_create(out, flags)
#define AFTER_event_create(out, flags)                                                                                                               \
    if (CS_DONE) cs_event_created(thread_, *(out), flags, call_, __builtin_return_address(0), end_);
#define PUBLISHED_event_create(out, flags)

#define BEFORE_event_destroy(handle)     cs_ref dying_ = cs_event_destroying(handle);
#define AFTER_event_destroy(handle)
#define PUBLISHED_event_destroy(handle)  cs_event_destroyed(dying_, CS_DONE, end_);

/* Published after the record, so that whoever finds this record as its cause finds it in the ring. */
#define BEFORE_event_record(handle)
#define AFTER_event_record(handle)
#define PUBLISHED_event_record(handle)                                                                                                               \
    if (CS_DONE) cs_event_recorded(cs_event_of(thread_, handle, true, begin_), begin_, thread_->tid, stream_);

#define BEFORE_event_wait(handle)        const struct cs_cause cause_ = cs_event_cause(handle);
#define AFTER_event_wait(handle)
#define PUBLISHED_event_wait(handle)

#define BEFORE_capture_begin(handle)
#define AFTER_capture_begin(handle)                                                                                                                  \
    if (CS_DONE) cs_stream_capture(stream_, end_);
#define PUBLISHED_capture_begin(handle)

/* A capture that was invalidated ends too, with an error; refusals of the end call itself leave it running. */
#define BEFORE_capture_end(handle, out)  const cs_u64 capture_began_ = cs_stream_captures(cs_stream_find(thread_, handle, per_thread_));
#define AFTER_capture_end(handle, out)                                                                                                               \
    if (cs_capture_is_over(r_)) cs_stream_capture(stream_, 0);                                                                                       \
    const struct cs_graph_ids ids_ __attribute__((unused)) = CS_DONE ? cs_graph_ids_of(out, NULL) : (struct cs_graph_ids){0};
#define PUBLISHED_capture_end(handle, out)

#define BEFORE_graph_made(graph, exec)
#define AFTER_graph_made(graph, exec)                                                                                                                \
    const struct cs_graph_ids ids_ = CS_DONE ? cs_graph_ids_of(&(graph), exec) : (struct cs_graph_ids){0};
#define PUBLISHED_graph_made(graph, exec)

#define BEFORE_host_func(fn, data)                                                                                                                   \
    void *given_fn_ = (void *)(fn);                                                                                                                  \
    struct cs_callback *callback_ = cs_callback_new(thread_, hStream, per_thread_, given_fn_, data, call_);                                          \
    if (callback_) fn = cs_callback_host, data = callback_;
#define AFTER_host_func(fn, data)                                                                                                                    \
    if (!CS_DONE) cs_callback_refused(callback_);
#define PUBLISHED_host_func(fn, data)

#define BEFORE_callback(fn, data)                                                                                                                    \
    void *given_fn_ = (void *)(fn);                                                                                                                  \
    struct cs_callback *callback_ = cs_callback_new(thread_, hStream, per_thread_, given_fn_, data, call_);                                          \
    if (callback_) fn = cs_callback_stream, data = callback_;
#define AFTER_callback(fn, data)                                                                                                                     \
    if (!CS_DONE) cs_callback_refused(callback_);
#define PUBLISHED_callback(fn, data)

#define BEFORE_context_create(out)
#define AFTER_context_create(out)                                                                                                                    \
    if (CS_DONE) cs_context_made(*(out)), cs_context_set(thread_, *(out));
#define PUBLISHED_context_create(out)

#define BEFORE_context_set(handle)
#define AFTER_context_set(handle)                                                                                                                    \
    if (CS_DONE) cs_context_set(thread_, handle);
#define PUBLISHED_context_set(handle)

#define BEFORE_context_pop(none)
#define AFTER_context_pop(none)          cs_context_forget(thread_);
#define PUBLISHED_context_pop(none)

/* Ends the context or not, which does not show. */
#define BEFORE_context_detach(handle)    const bool held_ = cs_gpu_hold();
#define AFTER_context_detach(handle)                                                                                                                 \
    cs_context_forget(thread_);                                                                                                                      \
    if (CS_DONE) cs_context_end_unsure(handle);                                                                                                      \
    cs_gpu_release(held_);
#define PUBLISHED_context_detach(handle)

#define BEFORE_context_destroy(handle)   const bool held_ = cs_gpu_hold();
#define AFTER_context_destroy(handle)                                                                                                                \
    if (CS_DONE) cs_context_ended(handle);                                                                                                           \
    cs_gpu_release(held_);
#define PUBLISHED_context_destroy(handle)

#define BEFORE_primary_retain(out, device)
#define AFTER_primary_retain(out, device)                                                                                                            \
    if (CS_DONE) cs_context_is_primary(*(out), device);
#define PUBLISHED_primary_retain(out, device)

#define BEFORE_primary_end(device, reset) const bool held_ = cs_gpu_hold();
#define AFTER_primary_end(device, reset)                                                                                                             \
    if (CS_DONE && ((reset) || !cs_context_primary_active(device))) cs_context_primary_ended(device);                            \
    cs_gpu_release(held_);
#define PUBLISHED_primary_end(device, reset)

#define BEFORE_kernel_named(out, text)
#define AFTER_kernel_named(out, text)                                                                                                                \
    if (CS_DONE) cs_kernel_named((CUfunction)*(out), text); /* a CUkernel may stand for a function in a launch */
#define PUBLISHED_kernel_named(out, text)

#define BEFORE_kernels_unloaded(none)
#define AFTER_kernels_unloaded(none)     cs_kernels_unloaded();
#define PUBLISHED_kernels_unloaded(none)

#endif
