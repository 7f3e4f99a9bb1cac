/*
 * The wrappers: one function a symbol, made from the call table.
 *
 * The path of a recorded call: one relaxed load (is tracing on), the thread's state from TLS, two time stamps around the driver's call, one look-up of
 * the stream, one 64-byte record, written once and not read. cuda.h's prototype has been declared before each definition (hook/wrappers.h), so the
 * compiler checks every row. Calls that put work on a GPU read one more word: whether they are to be marked (gpu/mark.h).
 */
#include "shim/gpu/mark.h"
#include "shim/audit/audit.h"
#include "shim/base/clock.h"
#include "shim/calls/how_words.h"
#include "shim/calls/real.h"
#include "shim/calls/shown.h"
#include "shim/hook/effects.h"
#include "shim/hook/lookup.h"
#include "shim/hook/mode.h"
#include "shim/hook/told.h"
#include "shim/hook/window.h"
#include "shim/hook/wrappers.h"
#include "shim/trace/record.h"

/* Where the record says that the work went. */
#define STREAM_NO_STREAM           0
#define STREAM_ON_DEFAULT          STREAM_ON(NULL)
#define STREAM_ON(handle)                                                                                                                            \
    (cs_stream_find(thread_, handle, per_thread_) ?: cs_stream_of(thread_, handle, per_thread_, CS_KNOWN, begin_))
#define STREAM_ON_FIELD(handle)    (CS_DONE ? STREAM_ON(handle) : 0)

/* Which calls are marked, how, and on which stream once the driver has accepted them. */
#define ENQUEUES(kind, how)        CS_ENQUEUES(CS_KIND_##kind, how)
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

/* What a policy is told of the call, where there is one: which stream it takes decides what it is asked. */
#define HOW(symbol, other, of_sibling, kind)                                                                                                         \
    ((struct cs_steered){CS_CALL_##symbol, CS_KIND_##kind, of_sibling,                                                                               \
                         CS_CALL_##symbol != CS_CALL_##other && (void *)cs_real.other != (void *)cs_real_missing, __builtin_return_address(0)})
#define STEER_NO_STREAM            cs_steer_nothing(&steer_), (void)how_
#define STEER_ON_DEFAULT           cs_steer_default(&steer_, thread_, &how_)
#define STEER_ON(handle)           handle = cs_steer_stream(&steer_, thread_, handle, &how_)
#define STEER_ON_FIELD(handle)     cs_steer_field(&steer_, thread_, field_ ? field_ : &(handle), &how_)

/* Whether the call may use a default stream: what stands behind a pointer is looked at later. */
#define DEFAULTS_NO_STREAM         0
#define DEFAULTS_ON_DEFAULT        CS_MODE_DEFAULTS
#define DEFAULTS_ON(handle)        ((handle) <= CU_STREAM_PER_THREAD ? CS_MODE_DEFAULTS : 0)
#define DEFAULTS_ON_FIELD(handle)  CS_MODE_DEFAULTS

/* What hooks are asked, before any policy. A stream that stands behind a pointer is theirs where it is launched with (cs_steer_config). */
#define HOOK_NO_STREAM             cs_hooks_ask(&hook_, NULL)
#define HOOK_ON_DEFAULT            cs_hooks_ask(&hook_, NULL)
#define HOOK_ON(handle)            handle = cs_hooks_ask(&hook_, handle)
#define HOOK_ON_FIELD(handle)      hooked_ = cs_hooks_ask(&hook_, (uintptr_t)&(handle) < 4096 ? NULL : (handle)), field_ = &hooked_

/* Calls whose places in the program an audit of the default stream tells. */
#define AUDITED(kind)                                                                                                                                \
    ((CS_KIND_##kind >= CS_KIND_LAUNCH && CS_KIND_##kind <= CS_KIND_QUERY) || CS_KIND_##kind == CS_KIND_GRAPH || CS_KIND_##kind == CS_KIND_HOSTFN || \
     CS_KIND_##kind == CS_KIND_MEMORY || CS_KIND_##kind == CS_KIND_MEMOP || CS_KIND_##kind == CS_KIND_EXTERNAL)

#define WRAPPER(symbol, other, of_sibling, kind, how, on, effect, parameters, arguments, ...)                                                        \
    CUresult cs_wrap_##symbol parameters                                                                                                             \
    {                                                                                                                                                \
        unsigned mode_ = cs_load(&cs_mode);                                                                                                          \
        const unsigned asks_ = CS_ASKS effect | CS_MODE_CALLS | CS_MODE_HOOKS | DEFAULTS_##on;                                                       \
        if (CS_UNLIKELY(mode_ != CS_MODE_RECORDING) && !(mode_ & (CS_MODE_RECORD | CS_MODE_COLD | asks_))) return cs_real.symbol arguments;          \
        struct cs_thread *thread_ = cs_self;                                                                                                         \
        if (CS_UNLIKELY(!thread_ || thread_->inside)) {                                                                                              \
            thread_ = cs_enter_slowly();                                                                                                             \
            if (!thread_) return cs_real.symbol arguments;                                                                                           \
            mode_ = cs_load(&cs_mode);                                                                                                               \
        }                                                                                                                                            \
        __typeof__(&cs_wrap_##symbol) real_ = cs_real.symbol;                                                                                        \
        bool per_thread_ __attribute__((unused)) = of_sibling, records_ = mode_ & CS_MODE_RECORD;                                                    \
        const unsigned steered_ = mode_ & CS_MODE_STEER & asks_;                                                                                     \
        const cs_u16 call_ = CS_CALL_##symbol;                                                                                                       \
        cs_u16 muted_ = 0;                                                                                                                           \
        int i_ __attribute__((unused)) = 0;                                                                                                          \
        thread_->inside = 1;                                                                                                                         \
        struct cs_steer steer_;                                                                                                                      \
        struct cs_hooked hook_;                                                                                                                      \
        if (CS_STEERED) {                                                                                                                            \
            const struct cs_steered how_ = HOW(symbol, other, of_sibling, kind);                                                                     \
            CUstream hooked_ __attribute__((unused));                                                                                                \
            const CUstream *field_ __attribute__((unused)) = NULL;                                                                                   \
            const int hooked_by_ = CS_HOOKED(call_, CS_KIND_##kind, CS_BARE effect);                                                                 \
            if (CS_UNLIKELY(cs_hooks_listen(hooked_by_))) {                                                                                          \
                cs_hooks_meet(&hook_, call_, hooked_by_, of_sibling);                                                                                \
                CS_TOLD effect                                                                                                                       \
                HOOK_##on;                                                                                                                           \
            } else cs_hooks_leave(&hook_);                                                                                                           \
            if (CS_UNLIKELY(hook_.refused)) cs_steer_refused(&steer_, of_sibling);                                                                   \
            else STEER_##on;                                                                                                                         \
            per_thread_ = steer_.per_thread;                                                                                                         \
            if (steer_.flip) real_ = cs_real.other;                                                                                                  \
        }                                                                                                                                            \
        struct cs_mark mark_ = {NULL, 0};                                                                                                            \
        CS_BEFORE effect                                                                                                                             \
        if (ENQUEUES(kind, how) && CS_UNLIKELY(cs_load(&cs_gpu_marking)) && records_ && !CS_REFUSED) mark_ = MARK_##on;                              \
        const bool stamps_ = CS_LIKELY(records_) || CS_ASKS effect & CS_MODE_WATCH;                                                                  \
        const cs_u64 begin_ = stamps_ ? cs_ticks() : 0;                                                                                              \
        CUresult r_ = CS_REFUSED ? hook_.refused : CS_ANSWER(real_ arguments, CS_BARE effect);                                                       \
        if (CS_STEERED) r_ = cs_steer_done(&steer_, r_);                                                                                             \
        const cs_u64 end_ = stamps_ ? cs_ticks() : 0;                                                                                                \
        if (CS_UNLIKELY(r_ != CUDA_SUCCESS) && records_) cs_result_seen(r_);                                                                         \
        cs_ref stream_ = stamps_ ? STREAM_##on : 0;                                                                                                  \
        CS_AFTER effect                                                                                                                              \
        if (CS_STEERED && records_) {                                                                                                                \
            muted_ = cs_steer_mutes(&steer_, stream_) ? CS_CALL_MUTED : 0;                                                                           \
            if (AUDITED(kind) && cs_audit_on()) cs_audit_site(thread_, __builtin_return_address(0), steer_.stream == CU_STREAM_LEGACY);              \
        }                                                                                                                                            \
        struct cs_record *record_ = NULL;                                                                                                            \
        if (CS_LIKELY(records_)) {                                                                                                                   \
            record_ = cs_record_claim(thread_);                                                                                                      \
            record_->begin = begin_;                                                                                                                 \
            record_->end = end_;                                                                                                                     \
            record_->call = call_ | muted_;                                                                                                          \
            record_->result = (int16_t)r_;                                                                                                           \
            record_->stream = stream_;                                                                                                               \
            if (ENQUEUES(kind, how)) record_->mark = mark_.number;                                                                                   \
            CS_SHOWN(VALUE, ##__VA_ARGS__)                                                                                                           \
            cs_record_publish(thread_, record_);                                                                                                     \
        }                                                                                                                                            \
        if (ENQUEUES(kind, how) && CS_UNLIKELY(mark_.number))                                                                                        \
            cs_mark_after(mark_, &(struct cs_marked_call){thread_, MARKED_##on, stream_, CS_DONE, per_thread_, call_, begin_, end_, record_->value});\
        CS_PUBLISHED effect                                                                                                                          \
        if (CS_STEERED) cs_hooks_tell(&hook_, r_);                                                                                                   \
        thread_->inside = 0;                                                                                                                         \
        return r_;                                                                                                                                   \
    }                                                                                                                                                \
    CS_EXPORTED(symbol)

#define CALL(name, sibling, kind, how, on, effect, parameters, arguments, ...)                                                                       \
    CS_SIBLINGS_##sibling(WRAPPER, name, kind, how, on, (effect), parameters, arguments, ##__VA_ARGS__)
#include "shim/calls/calls.def"
