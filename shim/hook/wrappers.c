/*
 * The wrappers: one function a symbol, made from the call table.
 *
 * The path of a recorded call: one relaxed load (is tracing on), the thread's state from TLS, two time stamps around the driver's call, one look-up of
 * the stream, one 64-byte record, written once and not read. cuda.h's prototype has been declared before each definition (hook/wrappers.h), so the
 * compiler checks every row. Calls that put work on a GPU read one more word: whether they are to be marked (gpu/mark.h).
 */
#include "shim/gpu/mark.h"
#include "shim/base/clock.h"
#include "shim/calls/real.h"
#include "shim/calls/shown.h"
#include "shim/hook/effects.h"
#include "shim/hook/lookup.h"
#include "shim/hook/mode.h"
#include "shim/hook/wrappers.h"
#include "shim/trace/record.h"

/* Where the record says that the work went. */
#define STREAM_NO_STREAM           0
#define STREAM_ON_DEFAULT          STREAM_ON(NULL)
#define STREAM_ON(handle)                                                                                                                            \
    (cs_stream_find(thread_, handle, per_thread_) ?: cs_stream_of(thread_, handle, per_thread_, CS_DONE || r_ == CUDA_ERROR_NOT_READY, begin_))
#define STREAM_ON_FIELD(handle)    (CS_DONE ? STREAM_ON(handle) : 0)

/* Which calls are marked, how, and on which stream once the driver has accepted them. */
#define ENQUEUES(symbol, kind)                                                                                                                       \
    (CS_KIND_##kind == CS_KIND_LAUNCH || CS_KIND_##kind == CS_KIND_COPY || CS_KIND_##kind == CS_KIND_SET ||                                          \
     CS_CALL_##symbol == CS_CALL_cuGraphLaunch || CS_CALL_##symbol == CS_CALL_cuGraphLaunch_ptsz)
#define MARK_NO_STREAM             ((struct cs_mark){NULL, 0})
#define MARK_ON_DEFAULT            cs_mark_before(thread_, NULL, per_thread_)
#define MARK_ON(handle)            cs_mark_before(thread_, handle, per_thread_)
#define MARK_ON_FIELD(handle)      cs_mark_before_at(thread_, &(handle), per_thread_)
#define MARKED_NO_STREAM           NULL
#define MARKED_ON_DEFAULT          NULL
#define MARKED_ON(handle)          (handle)
#define MARKED_ON_FIELD(handle)    (CS_DONE ? (handle) : NULL)

/* What the rows' value expressions may say. */
#define GIVEN(expression)          (CS_DONE ? (expression) : 0)
#define EVENT_ID(handle)           (cs_event_find(handle) ?: cs_event_of(thread_, handle, CS_DONE, begin_))
#define DYING                      dying_ /* of an effect that destroys: the handle may be another object's by then */
#define KERNEL_ID(function)        cs_kernel_of(function, CS_DONE)

#define VALUE(label, format, expression) record_->value[i_++] = (cs_u64)(uintptr_t)(expression);

#define WRAPPER(symbol, of_sibling, kind, on, effect, parameters, arguments, ...)                                                                    \
    CUresult cs_wrap_##symbol parameters                                                                                                             \
    {                                                                                                                                                \
        if (CS_UNLIKELY(cs_load(&cs_mode) == CS_MODE_PASS)) return cs_real.symbol arguments;                                                         \
        struct cs_thread *thread_ = cs_self;                                                                                                         \
        if (CS_UNLIKELY(!thread_ || thread_->inside)) {                                                                                              \
            thread_ = cs_enter_slowly();                                                                                                             \
            if (!thread_) return cs_real.symbol arguments;                                                                                           \
        }                                                                                                                                            \
        const bool per_thread_ __attribute__((unused)) = of_sibling;                                                                                 \
        const cs_u16 call_ = CS_CALL_##symbol;                                                                                                       \
        int i_ __attribute__((unused)) = 0;                                                                                                          \
        thread_->inside = 1;                                                                                                                         \
        struct cs_mark mark_ = {NULL, 0};                                                                                                            \
        CS_BEFORE effect                                                                                                                             \
        if (ENQUEUES(symbol, kind) && CS_UNLIKELY(cs_load(&cs_gpu_marking))) mark_ = MARK_##on;                                                      \
        const cs_u64 begin_ = cs_ticks();                                                                                                            \
        const CUresult r_ = cs_real.symbol arguments;                                                                                                \
        const cs_u64 end_ = cs_ticks();                                                                                                              \
        if (CS_UNLIKELY(r_ != CUDA_SUCCESS)) cs_result_seen(r_);                                                                                     \
        cs_ref stream_ = STREAM_##on;                                                                                                                \
        CS_AFTER effect                                                                                                                              \
        struct cs_record *record_ = cs_record_claim(thread_);                                                                                        \
        record_->begin = begin_;                                                                                                                     \
        record_->end = end_;                                                                                                                         \
        record_->call = call_;                                                                                                                       \
        record_->result = (int16_t)r_;                                                                                                               \
        record_->stream = stream_;                                                                                                                   \
        if (ENQUEUES(symbol, kind)) record_->mark = mark_.number;                                                                                    \
        CS_SHOWN(VALUE, ##__VA_ARGS__)                                                                                                               \
        cs_record_publish(thread_, record_);                                                                                                         \
        if (ENQUEUES(symbol, kind) && CS_UNLIKELY(mark_.number))                                                                                     \
            cs_mark_after(mark_, &(struct cs_marked_call){thread_, MARKED_##on, stream_, CS_DONE, per_thread_, call_, begin_, end_, record_->value}); \
        CS_PUBLISHED effect                                                                                                                          \
        thread_->inside = 0;                                                                                                                         \
        return r_;                                                                                                                                   \
    }                                                                                                                                                \
    CS_EXPORTED(symbol)

#define CALL(name, sibling, kind, on, effect, parameters, arguments, ...)                                                                            \
    CS_SIBLINGS_##sibling(WRAPPER, name, kind, on, (effect), parameters, arguments, ##__VA_ARGS__)
#include "shim/calls/calls.def"
