/*
 * The wrappers: one function a symbol, made from the call table.
 *
 * The path of a recorded call: one relaxed load (the mode), the thread's state from TLS, two time stamps around the driver's call, one look-up of the
 * stream, one 64-byte record, written once and not read. Whatever else is on, the call goes the long way (wrap/wrapped.h). cuda.h's prototype has been
 * declared before each definition (wrap/wrappers.h), so the compiler checks every row.
 */
#include "shim/calls/how_words.h"
#include "shim/calls/real.h"
#include "shim/calls/shown.h"
#include "shim/wrap/effects.h"
#include "shim/wrap/inside.h"
#include "shim/wrap/wrappers.h"

/* Where the record says that the work went, on the short way. */
#define STREAM_NO_STREAM           0
#define STREAM_ON_DEFAULT          STREAM_ON(NULL)
#define STREAM_ON(handle)          cs_wrapped_stream(wrapped_.thread, handle, wrapped_.per_thread, wrapped_.result, wrapped_.begin)
#define STREAM_ON_FIELD(handle)    (CS_MADE(&wrapped_) ? STREAM_ON(handle) : 0)
#define OFTEN_NO_STREAM            0
#define OFTEN_ON_DEFAULT           0
#define OFTEN_ON(handle)           cs_stream_glance(handle)
#define OFTEN_ON_FIELD(handle)     0

/* Where the long way finds the handle, and what it puts there. */
#define WHERE_NO_STREAM            NULL
#define WHERE_ON_DEFAULT           NULL
#define WHERE_ON(handle)           handle
#define WHERE_ON_FIELD(handle)     &(handle)
#define LANDS_NO_STREAM
#define LANDS_ON_DEFAULT
#define LANDS_ON(handle)           handle = long_.stream;
#define LANDS_ON_FIELD(handle)

/* Whether the call may use a default stream: what stands behind a pointer is looked at later. */
#define DEFAULTS_NO_STREAM         0
#define DEFAULTS_ON_DEFAULT        CS_MODE_DEFAULTS
#define DEFAULTS_ON(handle)        ((handle) <= CU_STREAM_PER_THREAD ? CS_MODE_DEFAULTS : 0)
#define DEFAULTS_ON_FIELD(handle)  CS_MODE_DEFAULTS

/* What the rows' value expressions may say. */
#define GIVEN(expression)          (CS_MADE(&wrapped_) ? (expression) : 0)
#define EVENT_ID(handle)           (cs_event_find(handle) ?: cs_event_of(wrapped_.thread, handle, CS_MADE(&wrapped_), wrapped_.begin))
#define DYING                      effect_.dying /* of an effect that destroys: the handle may be another object's by then */
#define GIVEN_FUNCTION             effect_.function
#define KERNEL_ID(function)        cs_kernel_of(function, CS_MADE(&wrapped_))

#define VALUE(label, format, expression) record_->value[i_++] = (cs_u64)(uintptr_t)(expression);

/* The wrapper passes on who has called it, as a last argument: only there is the return address sure to be the program's, however this is compiled. */
#define WITH_CALLER(...)           (__VA_ARGS__ __VA_OPT__(,) const void *caller_ __attribute__((unused)))
#define AND_CALLER(...)            (__VA_ARGS__ __VA_OPT__(,) __builtin_return_address(0))

/* Code that calls the driver for the program stands in sections of its own, so that tests can tell it from calls that the shim makes for itself. */
#define WRAPPER_CODE               __attribute__((section("cs_wrappers"), noinline))
#define LONG_CODE                  __attribute__((section("cs_wrappers_long"), noinline))

/* Marks are the only other thing that is on, and this call gets none. Never of a mode in which calls go straight on. */
CS_HOT bool goes_unmarked(unsigned mode, bool enqueues)
{
    if (mode != (CS_MODE_SHORT | CS_MODE_MARKS) || !cs_self || cs_self->inside) return false;
    return !enqueues || cs_mark_skips(cs_self);
}

#define WRAPPER(symbol, of_sibling, implies, enqueues, on, effect, parameters, arguments, ...)                                                       \
    SHORT_WAY(symbol, of_sibling, implies, on, effect, parameters, arguments, ##__VA_ARGS__)                                                         \
    LONG_WAY(symbol, on, effect, parameters, arguments, ##__VA_ARGS__)                                                                               \
    WRAPPER_CODE CUresult cs_wrap_##symbol parameters                                                                                                \
    {                                                                                                                                                \
        const unsigned mode_ = cs_load(&cs_mode);                                                                                                    \
        if (!(implies & CS_RARE) && CS_LIKELY(mode_ == CS_MODE_SHORT) && CS_LIKELY(cs_self && !cs_self->inside))                                     \
            return cs_short_##symbol AND_CALLER arguments;                                                                                           \
        if (!(mode_ & (CS_MODE_ALL | CS_ASKS effect | DEFAULTS_##on))) return cs_real.symbol arguments;                                              \
        if (!(implies & CS_RARE) && goes_unmarked(mode_, enqueues)) return cs_short_##symbol AND_CALLER arguments;                                   \
        return cs_long_##symbol AND_CALLER arguments;                                                                                                \
    }                                                                                                                                                \
    CS_EXPORTED(symbol)

/* Both are functions of their own, so that a call that goes straight on saves no registers. Most short ones do not use the caller: the compiler leaves it out. */
#define SHORT_WAY(symbol, of_sibling, implies, on, effect, parameters, arguments, ...)                                                               \
    WRAPPER_CODE static CUresult cs_short_##symbol WITH_CALLER parameters                                                                            \
    {                                                                                                                                                \
        struct cs_wrapped wrapped_ = {                                                                                                               \
            .thread = cs_self, .caller = caller_, .call = CS_CALL_##symbol, .per_thread = of_sibling, .records = true};                              \
        CS_STATE effect effect_;                                                                                                                     \
        wrapped_.thread->inside = 1;                                                                                                                 \
        CS_BEFORE effect;                                                                                                                            \
        wrapped_.begin = cs_ticks_of_counter();                                                                                                      \
        wrapped_.result = cs_real.symbol arguments;                                                                                                  \
        wrapped_.end = cs_ticks_of_counter();                                                                                                        \
        wrapped_.stream = (implies & CS_OFTEN ? OFTEN_##on : 0) ?: STREAM_##on;                                                                      \
        CS_AFTER effect;                                                                                                                             \
        struct cs_record *record_ = (implies & CS_OFTEN ? cs_wrapped_record : cs_wrapped_record_shared)(                                             \
            wrapped_.thread, CS_CALL_##symbol, wrapped_.result, wrapped_.stream, wrapped_.begin, wrapped_.end);                                      \
        int i_ __attribute__((unused)) = 0;                                                                                                          \
        CS_SHOWN(VALUE, ##__VA_ARGS__)                                                                                                               \
        cs_record_publish(wrapped_.thread, record_);                                                                                                 \
        CS_PUBLISHED effect;                                                                                                                         \
        wrapped_.thread->inside = 0;                                                                                                                 \
        return wrapped_.result;                                                                                                                      \
    }

/* The same, step by step. Without a thread the call is none of ours: it is made, and the steps do nothing. What effects keep is not there then, so they are
 * passed by. */
#define LONG_WAY(symbol, on, effect, parameters, arguments, ...)                                                                                     \
    LONG_CODE static CUresult cs_long_##symbol WITH_CALLER parameters                                                                                \
    {                                                                                                                                                \
        struct cs_told told_;                                                                                                                        \
        struct cs_wrapped wrapped_;                                                                                                                  \
        struct cs_long long_;                                                                                                                        \
        CS_STATE effect effect_;                                                                                                                     \
        __typeof__(&cs_wrap_##symbol) real_ =                                                                                                        \
            cs_long_begin(&long_, &wrapped_, CS_CALL_##symbol, WHERE_##on, caller_, CS_TELL effect ? &told_ : NULL);                                 \
        if (sizeof effect_ && !wrapped_.thread) return cs_real.symbol arguments;                                                                     \
        LANDS_##on                                                                                                                                   \
        if (CS_DOES_NOTHING effect && CS_LIKELY(long_.only_steered)) return cs_left(&wrapped_, real_ arguments);                                     \
        if (sizeof effect_ || wrapped_.thread) CS_BEFORE effect;                                                                                     \
        cs_long_done(&long_, cs_long_answers(&long_, WHERE_##on) ? long_.answer : real_ arguments, WHERE_##on);                                      \
        if (sizeof effect_ || wrapped_.thread) CS_AFTER effect;                                                                                      \
        struct cs_record *record_ = cs_long_record(&long_);                                                                                          \
        if (record_) {                                                                                                                               \
            int i_ __attribute__((unused)) = 0;                                                                                                      \
            CS_SHOWN(VALUE, ##__VA_ARGS__)                                                                                                           \
            cs_record_publish(wrapped_.thread, record_);                                                                                             \
        }                                                                                                                                            \
        if (sizeof effect_ || wrapped_.thread) CS_PUBLISHED effect;                                                                                  \
        return cs_long_end(&long_, WHERE_##on);                                                                                                      \
    }

#define ROW(symbol, other, of_sibling, ...) WRAPPER(symbol, of_sibling, __VA_ARGS__)
#define CALL(name, sibling, kind, how, on, effect, parameters, arguments, ...)                                                                       \
    CS_SIBLINGS_##sibling(ROW, name, CS_IMPLIED_BY_##kind, CS_ENQUEUES(CS_IMPLIED_BY_##kind, how), on, (effect), parameters, arguments, ##__VA_ARGS__)
#include "shim/calls/calls.def"
