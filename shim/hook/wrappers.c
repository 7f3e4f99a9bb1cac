/*
 * The wrappers: one function a symbol, made from the call table.
 *
 * The path of a recorded call: one relaxed load (is tracing on), the thread's state from TLS, two time stamps around the driver's call, one look-up of
 * the stream, one 64-byte record. cuda.h's prototype has been declared before each definition (hook/wrappers.h), so the compiler checks every row.
 */
#include "shim/base/clock.h"
#include "shim/calls/real.h"
#include "shim/calls/shown.h"
#include "shim/hook/effects.h"
#include "shim/hook/lookup.h"
#include "shim/hook/mode.h"
#include "shim/hook/wrappers.h"
#include "shim/trace/record.h"

/* Where the record says that the work went. */
#define CS_STREAM_NO_STREAM           0
#define CS_STREAM_ON_DEFAULT          cs_stream_of(thread_, NULL, per_thread_, CS_DONE, begin_)
#define CS_STREAM_ON(handle)          cs_stream_of(thread_, handle, per_thread_, CS_DONE || r_ == CUDA_ERROR_NOT_READY, begin_)
#define CS_STREAM_ON_FIELD(handle)    (CS_DONE ? cs_stream_of(thread_, handle, per_thread_, true, begin_) : 0)

/* What the rows' value expressions may say. */
#define GIVEN(expression)             (CS_DONE ? (expression) : 0)
#define EVENT_ID(handle)              cs_event_of(thread_, handle, CS_DONE || r_ == CUDA_ERROR_NOT_READY, begin_)
#define KERNEL_ID(function)           cs_kernel_of(function, CS_DONE)

#define VALUE(label, format, expression) (cs_u64)(uintptr_t)(expression),

#define WRAPPER(symbol, of_sibling, kind, on, effect, parameters, arguments, ...)                                                                    \
    CUresult cs_wrap_##symbol parameters                                                                                                             \
    {                                                                                                                                                \
        if (CS_UNLIKELY(cs_load(&cs_mode) == CS_MODE_PASS)) return cs_real.symbol arguments;                                                         \
        struct cs_thread *thread_ = cs_self;                                                                                                         \
        if (CS_UNLIKELY(!thread_ || thread_->inside)) {                                                                                              \
            thread_ = cs_enter_slowly();                                                                                                             \
            if (!thread_) return cs_real.symbol arguments;                                                                                           \
        }                                                                                                                                            \
        const bool per_thread_ = of_sibling;                                                                                                         \
        const cs_u16 call_ = CS_CALL_##symbol;                                                                                                       \
        (void)per_thread_;                                                                                                                           \
        thread_->inside = 1;                                                                                                                         \
        CS_BEFORE effect                                                                                                                             \
        const cs_u64 begin_ = cs_ticks();                                                                                                            \
        const CUresult r_ = cs_real.symbol arguments;                                                                                                \
        const cs_u64 end_ = cs_ticks();                                                                                                              \
        if (CS_UNLIKELY(r_ != CUDA_SUCCESS)) cs_result_seen(r_);                                                                                     \
        cs_ref stream_ = CS_STREAM_##on;                                                                                                             \
        CS_AFTER effect                                                                                                                              \
        struct cs_record *record_ = cs_record_claim(thread_, begin_, end_);                                                                          \
        if (CS_LIKELY(record_)) {                                                                                                                    \
            *record_ = (struct cs_record){begin_, end_, call_, (int16_t)r_, stream_, 0, {CS_SHOWN(VALUE, ##__VA_ARGS__)}};                           \
            cs_ring_publish(&thread_->ring);                                                                                                         \
        }                                                                                                                                            \
        CS_PUBLISHED effect                                                                                                                          \
        thread_->inside = 0;                                                                                                                         \
        return r_;                                                                                                                                   \
    }                                                                                                                                                \
    extern __typeof__(symbol) symbol __attribute__((alias("cs_wrap_" #symbol), visibility("default")));

#define CALL(name, sibling, kind, on, effect, parameters, arguments, ...)                                                                            \
    CS_SIBLINGS_##sibling(WRAPPER, name, kind, on, (effect), parameters, arguments, ##__VA_ARGS__)
#include "shim/calls/calls.def"
