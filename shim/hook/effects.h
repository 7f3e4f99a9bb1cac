/*
 * What a call changes in our objects: the effects that rows of the call table name.
 *
 * Each effect is three statements inside the wrapper of its row: BEFORE the real call, AFTER it, and once the record is in the ring (PUBLISHED). They see
 * the wrapper's locals: thread_, call_, per_thread_, mode_, steer_ and hook_ (where CS_STEERED), r_ (the driver's answer, or that of a hook which
 * refuses the call), begin_, end_, stream_ (where the record says that the work went), and the parameters of the call. effects.def says
 * in which modes it is needed though nothing is recorded; ANSWER is what the application gets, the driver's answer unless a policy gives one in its
 * place. A new effect is these macros here, its row in effects.def, and its name in a row of the call table.
 */
#ifndef CS_HOOK_EFFECTS_H
#define CS_HOOK_EFFECTS_H

#include "shim/gpu/mark.h"
#include "shim/hook/callback.h"
#include "shim/hook/mode.h"
#include "shim/object/event.h"
#include "shim/object/graph.h"
#include "shim/object/kernel.h"
#include "shim/object/stream.h"
#include "shim/policy/hooks.h"
#include "shim/policy/steer.h"

enum {
#define EFFECT(name, asks) ASKS_##name = asks,
#include "shim/hook/effects.def"
#undef EFFECT
};

#define NOTHING                                      nothing, 0
#define DO(effect, ...)                              effect, __VA_ARGS__
#define CS_BEFORE(...)                               CS_BEFORE_(__VA_ARGS__)
#define CS_AFTER(...)                                CS_AFTER_(__VA_ARGS__)
#define CS_PUBLISHED(...)                            CS_PUBLISHED_(__VA_ARGS__)
#define CS_BARE(...)                                 __VA_ARGS__ /* takes the parentheses off a row's effect */
#define CS_BEFORE_(effect, ...)                      BEFORE_##effect(__VA_ARGS__)
#define CS_AFTER_(effect, ...)                       AFTER_##effect(__VA_ARGS__)
#define CS_PUBLISHED_(effect, ...)                   PUBLISHED_##effect(__VA_ARGS__)
#define CS_ASKS(...)                                 CS_ASKS_(__VA_ARGS__)
#define CS_ASKS_(effect, ...)                        ASKS_##effect
#define CS_DONE                                      (r_ == CUDA_SUCCESS)
#define CS_STEERED                                   CS_UNLIKELY(steered_)
#define CS_REFUSED                                   (CS_STEERED && CS_UNLIKELY(hook_.refused)) /* by a hook: nothing that the call names goes to the driver */
#define CS_KNOWN                                     (CS_DONE || (r_ == CUDA_ERROR_NOT_READY && !CS_REFUSED)) /* to the driver: the call's handle */
#define CS_ACCEPTED                                  (CS_DONE || (CS_STEERED && steer_.accepted)) /* by the driver: a policy's wait may have found an error then */

/* The driver's answer; ANSWER_effect(call, ...) may give one in its place. */
#define CS_ANSWER(call, ...)                         CS_ANSWER_(call, __VA_ARGS__)
#define CS_ANSWER_(call, effect, ...)                ANSWER_##effect(call, __VA_ARGS__)

#define ANSWER_nothing(driver, ...) driver
#define BEFORE_nothing(none)
#define AFTER_nothing(none)
#define PUBLISHED_nothing(none)

#define BEFORE_stream_create(out, flags_, priority_, green_)                                                                                         \
    struct cs_creation creation_;                                                                                                                    \
    if (CS_STEERED) cs_steer_creation(&creation_, thread_, call_, __builtin_return_address(0), flags_, priority_, green_, &hook_);
#define ANSWER_stream_create(driver, out, flags_, priority_, green_) (CS_STEERED ? cs_steer_create(&creation_, out) : (driver))
#define AFTER_stream_create(out, flags_, priority_, green_)                                                                                          \
    if (CS_STEERED && CS_DONE) hook_.info.stream = *(out);                                                                                           \
    if (CS_DONE)                                                                                                                                     \
        stream_ = CS_STEERED ? cs_steer_created(&creation_, *(out), end_)                                                                            \
                             : cs_stream_created(thread_, *(out), flags_, priority_, call_, __builtin_return_address(0), end_);
#define PUBLISHED_stream_create(out, flags_, priority_, green_)

/* The handle may come back from the driver before its destroy returns, so it is given up first and taken back if the driver refuses. */
#define BEFORE_stream_destroy(handle)                                                                                                                \
    CUresult kept_ = CUDA_SUCCESS;                                                                                                                   \
    const bool share_ = CS_STEERED && !hook_.refused && cs_steer_destroys_share(handle, &kept_);                                                     \
    cs_ref dying_ = share_ ? cs_stream_find(thread_, handle, per_thread_) : cs_stream_destroying(thread_, handle, per_thread_);
#define ANSWER_stream_destroy(driver, handle) (share_ ? kept_ : (driver))
#define AFTER_stream_destroy(handle)     stream_ = dying_;
#define PUBLISHED_stream_destroy(handle)                                                                                                             \
    if (!share_) cs_stream_destroyed(dying_, CS_DONE, end_);

#define BEFORE_stream_attribute(handle, id, value)                                                                                                   \
    CUstreamAttrValue value_;                                                                                                                        \
    const bool refused_ = CS_STEERED && !cs_steer_attribute(thread_, handle, id, &(value), &value_);
#define ANSWER_stream_attribute(driver, handle, id, value) (refused_ ? CUDA_ERROR_INVALID_VALUE : (driver))
#define AFTER_stream_attribute(handle, id, value)
#define PUBLISHED_stream_attribute(handle, id, value)

#define ANSWER_launch_config(driver, ...) driver
#define BEFORE_launch_config(config)                                                                                                                 \
    struct cs_launch_copy copy_;                                                                                                                     \
    if (CS_STEERED && !hook_.refused) config = cs_steer_config(&steer_, config, &copy_);
#define AFTER_launch_config(config)
#define PUBLISHED_launch_config(config)

#define ANSWER_priority_range(driver, ...) driver
#define BEFORE_priority_range(least, greatest)
#define AFTER_priority_range(least, greatest)                                                                                                        \
    if (CS_STEERED && CS_DONE) cs_steer_range(least, greatest);
#define PUBLISHED_priority_range(least, greatest)

#define ANSWER_profiler(driver, ...) driver
#define BEFORE_profiler(starts)
#define AFTER_profiler(starts)
#define PUBLISHED_profiler(starts)       if (CS_DONE) cs_window_profiler(starts);

#define ANSWER_event_create(driver, ...) driver
#define BEFORE_event_create(out, flags)
#define AFTER_event_create(out, flags)                                                                                                               \
    if (CS_STEERED && CS_DONE) hook_.info.event = *(out);                                                                                            \
    if (CS_DONE) cs_event_created(thread_, *(out), flags, call_, __builtin_return_address(0), end_);
#define PUBLISHED_event_create(out, flags)

#define ANSWER_event_destroy(driver, ...) driver
#define BEFORE_event_destroy(handle)     cs_ref dying_ = cs_event_destroying(handle);
#define AFTER_event_destroy(handle)
#define PUBLISHED_event_destroy(handle)  cs_event_destroyed(dying_, CS_DONE, end_);

/* Published after the record, so that whoever finds this record as its cause finds it in the ring. */
#define ANSWER_event_record(driver, ...) driver
#define BEFORE_event_record(handle)
#define AFTER_event_record(handle)                                                                                                                   \
    if (CS_STEERED && CS_DONE) cs_steer_recorded(&steer_, cs_event_of(thread_, handle, steer_.captures, steer_.captures ? cs_ticks() : 0));
#define PUBLISHED_event_record(handle)                                                                                                               \
    if (CS_DONE && records_) cs_event_recorded(cs_event_of(thread_, handle, true, begin_), muted_ ? 0 : begin_, thread_->tid, stream_);

#define ANSWER_stream_wait(driver, ...) driver
#define BEFORE_stream_wait(stream, handle)                                                                                                           \
    const struct cs_cause cause_ = cs_event_cause(handle);                                                                                           \
    if (CS_STEERED) stream = cs_steer_wait(&steer_, stream, handle);
#define AFTER_stream_wait(stream, handle)
#define PUBLISHED_stream_wait(stream, handle)

#define ANSWER_event_wait(driver, ...) driver
#define BEFORE_event_wait(handle)        const struct cs_cause cause_ = cs_event_cause(handle);
#define AFTER_event_wait(handle)
#define PUBLISHED_event_wait(handle)

#define ANSWER_capture_begin(driver, ...) driver
#define BEFORE_capture_begin(handle)                                                                                                                 \
    const cs_u32 shares_ __attribute__((unused)) = CS_STEERED && !hook_.refused ? cs_steer_captures(handle) : 0;
#define AFTER_capture_begin(handle)                                                                                                                  \
    if (CS_DONE) cs_stream_capture(stream_, end_);
#define PUBLISHED_capture_begin(handle)

/* A capture that was invalidated ends too, with an error; refusals of the end call itself, the driver's and a hook's, leave it running. */
#define ANSWER_capture_end(driver, ...) driver
#define BEFORE_capture_end(handle, out)  cs_u64 capture_began_ __attribute__((unused)) = cs_stream_captures(cs_stream_find(thread_, handle, per_thread_));
#define AFTER_capture_end(handle, out)                                                                                                               \
    if (!CS_REFUSED && cs_capture_is_over(r_)) cs_stream_capture(stream_, 0);                                                                        \
    else capture_began_ = 0; /* for the record: none has ended */                                                                                    \
    const struct cs_graph_ids ids_ __attribute__((unused)) = CS_DONE ? cs_graph_ids_of(out, NULL) : (struct cs_graph_ids){0};
#define PUBLISHED_capture_end(handle, out)

#define ANSWER_graph_made(driver, ...) driver
#define BEFORE_graph_made(graph, exec)
#define AFTER_graph_made(graph, exec)                                                                                                                \
    const struct cs_graph_ids ids_ = CS_DONE ? cs_graph_ids_of(&(graph), exec) : (struct cs_graph_ids){0};
#define PUBLISHED_graph_made(graph, exec)

#define ANSWER_host_func(driver, ...) driver
#define BEFORE_host_func(fn, data)                                                                                                                   \
    void *given_fn_ = (void *)(fn);                                                                                                                  \
    struct cs_callback *callback_ = records_ && !CS_REFUSED ? cs_callback_new(thread_, hStream, per_thread_, given_fn_, data, call_) : NULL;         \
    if (callback_) fn = cs_callback_host, data = callback_;
#define AFTER_host_func(fn, data)                                                                                                                    \
    if (!CS_ACCEPTED) cs_callback_refused(callback_);
#define PUBLISHED_host_func(fn, data)

#define ANSWER_callback(driver, ...) driver
/* The function is told the handle that the program gave, wherever the work went. Where there is no node left to remember it, the work goes there. */
#define BEFORE_callback(fn, data)                                                                                                                    \
    void *given_fn_ = (void *)(fn);                                                                                                                  \
    const CUstream told_ = !CS_STEERED ? hStream : hook_.met ? hook_.given : steer_.asked;                                                           \
    const bool moved_ = told_ != hStream && !CS_REFUSED, noted_ = moved_ || (records_ && !CS_REFUSED);                                               \
    struct cs_callback *callback_ = noted_ ? cs_callback_new(thread_, hStream, per_thread_, given_fn_, data, call_) : NULL;                          \
    if (callback_ && moved_) cs_callback_tells(callback_, told_, !records_);                                                                         \
    if (callback_) fn = cs_callback_stream, data = callback_;                                                                                        \
    else if (moved_ && !steer_.redirected) hStream = cs_steer_leave(&steer_);
#define AFTER_callback(fn, data)                                                                                                                     \
    if (!CS_ACCEPTED) cs_callback_refused(callback_);
#define PUBLISHED_callback(fn, data)

#define ANSWER_context_create(driver, ...) driver
#define BEFORE_context_create(out)
#define AFTER_context_create(out)                                                                                                                    \
    if (CS_DONE) cs_context_made(*(out)), cs_context_set(thread_, *(out));
#define PUBLISHED_context_create(out)

#define ANSWER_context_set(driver, ...) driver
#define BEFORE_context_set(handle)
#define AFTER_context_set(handle)                                                                                                                    \
    if (CS_DONE) cs_context_set(thread_, handle);
#define PUBLISHED_context_set(handle)

#define ANSWER_context_pop(driver, ...) driver
#define BEFORE_context_pop(none)
#define AFTER_context_pop(none)          cs_context_forget(thread_);
#define PUBLISHED_context_pop(none)

/* Ends the context or not, which does not show. */
#define ANSWER_context_detach(driver, ...) driver
#define BEFORE_context_detach(handle)    const bool held_ = cs_gpu_hold();
#define AFTER_context_detach(handle)                                                                                                                 \
    cs_context_forget(thread_);                                                                                                                      \
    if (CS_DONE) cs_context_end_unsure(handle);                                                                                                      \
    cs_gpu_release(held_);
#define PUBLISHED_context_detach(handle)

#define ANSWER_context_destroy(driver, ...) driver
#define BEFORE_context_destroy(handle)   const bool held_ = cs_gpu_hold();
#define AFTER_context_destroy(handle)                                                                                                                \
    if (CS_DONE) cs_context_ended(handle);                                                                                                           \
    cs_gpu_release(held_);
#define PUBLISHED_context_destroy(handle)

#define ANSWER_primary_retain(driver, ...) driver
#define BEFORE_primary_retain(out, device)
#define AFTER_primary_retain(out, device)                                                                                                            \
    if (CS_DONE) cs_context_is_primary(*(out), device);
#define PUBLISHED_primary_retain(out, device)

#define ANSWER_primary_end(driver, ...) driver
#define BEFORE_primary_end(device, reset) const bool held_ = cs_gpu_hold();
#define AFTER_primary_end(device, reset)                                                                                                             \
    if (CS_DONE && ((reset) || !cs_context_primary_active(device))) cs_context_primary_ended(device);                                                \
    cs_gpu_release(held_);
#define PUBLISHED_primary_end(device, reset)

#define ANSWER_kernel_named(driver, ...) driver
#define BEFORE_kernel_named(out, text)
#define AFTER_kernel_named(out, text)                                                                                                                \
    if (CS_DONE) cs_kernel_named((CUfunction)*(out), text); /* a CUkernel may stand for a function in a launch */
#define PUBLISHED_kernel_named(out, text)

#define ANSWER_kernels_unloaded(driver, ...) driver
#define BEFORE_kernels_unloaded(none)
#define AFTER_kernels_unloaded(none)     cs_kernels_unloaded();
#define PUBLISHED_kernels_unloaded(none)

#endif
