/*
 * The wrappers: one function a symbol, made from the call table.
 *
 * The path of a recorded call: one load (the mode), the thread's state from TLS, two time stamps around the driver's call, one look-up of the
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

/* The record of a call that does nothing to our objects, where size counts: what is left to find out is found there. */
#define RECORD_NO_STREAM           cs_wrapped_record_shared(wrapped_.thread, wrapped_.call, wrapped_.result, wrapped_.stream, wrapped_.begin, wrapped_.end)
#define RECORD_ON_DEFAULT          RECORD_ON(NULL)
#define RECORD_ON(handle)          cs_wrapped_record_on(wrapped_.thread, wrapped_.call, wrapped_.result, handle, wrapped_.begin, wrapped_.end)
#define RECORD_ON_FIELD(handle)    (CS_MADE(&wrapped_) ? RECORD_ON(handle) : RECORD_NO_STREAM)

/* Where the long way finds the handle, and what it puts there. */
#define WHERE_NO_STREAM            NULL
#define WHERE_ON_DEFAULT           NULL
#define WHERE_ON(handle)           handle
#define WHERE_ON_FIELD(handle)     &(handle)
#define LANDS_NO_STREAM
#define LANDS_ON_DEFAULT
#define LANDS_ON(handle)           handle = long_.stream;
#define LANDS_ON_FIELD(handle)

/* Whether the call may use a default stream: which one stands in its handle, or behind a pointer, is looked at later. And whether it does not, after all. */
#define MAY_NO_STREAM              0
#define MAY_ON_DEFAULT             CS_MODE_DEFAULTS
#define MAY_ON(handle)             CS_MODE_DEFAULTS
#define MAY_ON_FIELD(handle)       CS_MODE_DEFAULTS
#define HAS_ITS_OWN_NO_STREAM      false
#define HAS_ITS_OWN_ON_DEFAULT     false
#define HAS_ITS_OWN_ON(handle)     ((handle) > CU_STREAM_PER_THREAD)
#define HAS_ITS_OWN_ON_FIELD(at)   false

/* What the rows' value expressions may say. */
#define GIVEN(expression)          (CS_MADE(&wrapped_) ? (expression) : 0)
#define EVENT_ID(handle)           (cs_event_find(handle) ?: cs_event_of(wrapped_.thread, handle, CS_MADE(&wrapped_), wrapped_.begin))
#define DYING                      effect_.dying /* of an effect that destroys: the handle may be another object's by then */
#define GIVEN_FUNCTION             effect_.function
#define KERNEL_ID(function)        cs_kernel_of(function, CS_MADE(&wrapped_))

#define VALUE(label, format, expression) record_->value[i_++] = (cs_u64)(uintptr_t)(expression);

/* Code that calls the driver for the program stands in sections of its own, so that tests can tell it from calls that the shim makes for itself. */
#define WRAPPER_CODE               __attribute__((section("cs_wrappers"), noinline))
/* Of the long way there is one function a symbol, and none is called in a loop of its own: they stand without gaps. */
#define LONG_CODE                  __attribute__((section("cs_wrappers_long"), noinline, aligned(4)))

#define WRAPPER(symbol, of_sibling, implies, enqueues, on, effect, parameters, arguments, ...)                                                       \
    SHORT_WAY(symbol, of_sibling, implies, on, effect, parameters, arguments, ##__VA_ARGS__)                                                         \
    LONG_WAY(symbol, on, effect, parameters, arguments, ##__VA_ARGS__)                                                                               \
    GATE(symbol, implies, enqueues, on, effect, parameters, arguments)                                                                               \
    CS_EXPORTED(symbol)

/*
 * The gate: the wrapper itself, which decides where the call goes on. It jumps, with all arguments where they are: both ways have the program's return address.
 *
 * C cannot promise a jump, and compilers take a call's arguments off the stack and put them back before they jump: a dozen instructions for a launch. So these
 * few are written out. Elsewhere the gate is C and passes the caller on as a last argument.
 */
#if defined(__x86_64__)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define WITH_CALLER(...)           (__VA_ARGS__)
#define CALLER                     __builtin_return_address(0)
/* Marks are the only other thing that is on, and this call gets none: the flags say equal. They keep all arguments, and the mode in eax. */
#define UNMARKED(name, then)                                                                                                                         \
    WRAPPER_CODE __attribute__((naked)) static void name(void)                                                                                       \
    {                                                                                                                                                \
        __asm__("cmp %[marks_], %%eax\n\t"                                                                                                           \
                "jne 1f\n\t"                                                                                                                         \
                "mov cs_self@gottpoff(%%rip), %%r11\n\t"                                                                                             \
                "mov %%fs:(%%r11), %%r11\n\t"                                                                                                        \
                "test %%r11, %%r11\n\t"                                                                                                              \
                "jz 2f\n\t"                                                                                                                          \
                "cmpl $0, %c[inside_](%%r11)\n\t" then                                                                                               \
                "1: ret\n"                                                                                                                           \
                "2: or $1, %%r11d\n\t"                                                                                                               \
                "ret"                                                                                                                                \
                :                                                                                                                                    \
                : [marks_] "i"(CS_MODE_SHORT | CS_MODE_MARKS), [inside_] "i"(offsetof(struct cs_thread, inside)),                                    \
                  [left_] "i"(offsetof(struct cs_thread, unmarked)));                                                                                \
    }
UNMARKED(unmarked_other, )
UNMARKED(unmarked_work, /* one of N is marked: cs_mark_skips */
         "jne 1f\n\t"
         "cmpl $0, %c[left_](%%r11)\n\t"
         "jle 2f\n\t" /* or less: a handler's call may have come in between */
         "decl %c[left_](%%r11)\n\t"
         "cmp %%eax, %%eax\n")

#define GATE(symbol, implies, enqueues, on, effect, parameters, arguments)                                                                           \
    WRAPPER_CODE __attribute__((naked)) CUresult cs_wrap_##symbol parameters                                                                         \
    {                                                                                                                                                \
        __asm__("mov cs_mode(%%rip), %%eax\n\t"                                                                                                      \
                ".if %c[rare_] == 0\n\t"                                                                                                             \
                "cmp %[short_], %%eax\n\t"                                                                                                           \
                "jne 1f\n\t"                                                                                                                         \
                "mov cs_self@gottpoff(%%rip), %%r11\n\t"                                                                                             \
                "mov %%fs:(%%r11), %%r11\n\t"                                                                                                        \
                "test %%r11, %%r11\n\t"                                                                                                              \
                "jz 2f\n\t"                                                                                                                          \
                "cmpl $0, %c[inside_](%%r11)\n\t"                                                                                                    \
                "je %P[near_]\n"                                                                                                                     \
                "2: jmp %P[far_]\n"                                                                                                                  \
                "1:\n\t"                                                                                                                             \
                ".endif\n\t"                                                                                                                         \
                "test %[long_], %%al\n\t"                                                                                                            \
                "jz 3f\n\t"                                                                                                                          \
                ".if %c[rare_] == 0\n\t"                                                                                                             \
                "call %P[unmarked_]\n\t"                                                                                                             \
                "je %P[near_]\n\t"                                                                                                                   \
                "jmp 2b\n"                                                                                                                           \
                ".else\n\t"                                                                                                                          \
                "jmp %P[far_]\n"                                                                                                                     \
                ".endif\n"                                                                                                                           \
                "3: jmp *cs_real+%c[real_](%%rip)"                                                                                                   \
                :                                                                                                                                    \
                : [rare_] "i"((implies) & CS_RARE), [short_] "i"(CS_MODE_SHORT), [inside_] "i"(offsetof(struct cs_thread, inside)),                  \
                  [long_] "i"(CS_MODE_ALL | CS_ASKS effect | MAY_##on), [real_] "i"(offsetof(struct cs_real, symbol)), [far_] "i"(cs_long_##symbol), \
                  [near_] "i"((implies) & CS_RARE ? cs_long_##symbol : cs_short_##symbol),                                                           \
                  [unmarked_] "i"((enqueues) ? unmarked_work : unmarked_other));                                                                     \
    }
#else
#define WITH_CALLER(...)           (__VA_ARGS__ __VA_OPT__(,) const void *caller_ __attribute__((unused)))
#define AND_CALLER(...)            (__VA_ARGS__ __VA_OPT__(,) __builtin_return_address(0))
#define CALLER                     caller_
/* Marks are the only other thing that is on, and this call gets none. Never of a mode in which calls go straight on. */
CS_HOT bool goes_unmarked(unsigned mode, bool enqueues)
{
    if (mode != (CS_MODE_SHORT | CS_MODE_MARKS) || !cs_self || cs_load(&cs_self->inside)) return false;
    return !enqueues || cs_mark_skips(cs_self);
}

#define GATE(symbol, implies, enqueues, on, effect, parameters, arguments)                                                                           \
    WRAPPER_CODE CUresult cs_wrap_##symbol parameters                                                                                                \
    {                                                                                                                                                \
        const unsigned mode_ = cs_mode_first();                                                                                                      \
        if (!(implies & CS_RARE) && CS_LIKELY(mode_ == CS_MODE_SHORT) && CS_LIKELY(cs_self && !cs_load(&cs_self->inside)))                           \
            return cs_short_##symbol AND_CALLER arguments;                                                                                           \
        if (!(mode_ & (CS_MODE_ALL | CS_ASKS effect | MAY_##on))) return cs_real.symbol arguments;                                                   \
        if (!(implies & CS_RARE) && goes_unmarked(mode_, enqueues)) return cs_short_##symbol AND_CALLER arguments;                                   \
        return cs_long_##symbol AND_CALLER arguments;                                                                                                \
    }
#endif

/* Both are functions of their own, so that a call that goes straight on saves no registers. Most short ones do not use the caller: the compiler leaves it out. */
#define SHORT_WAY(symbol, of_sibling, implies, on, effect, parameters, arguments, ...)                                                               \
    WRAPPER_CODE static CUresult cs_short_##symbol WITH_CALLER parameters                                                                            \
    {                                                                                                                                                \
        struct cs_wrapped wrapped_ = {                                                                                                               \
            .thread = cs_self, .caller = CALLER, .call = CS_CALL_##symbol, .per_thread = of_sibling, .records = true};                               \
        CS_STATE effect effect_;                                                                                                                     \
        struct cs_record *record_;                                                                                                                   \
        int i_ __attribute__((unused)) = 0;                                                                                                          \
        cs_store(&wrapped_.thread->inside, CS_IN_CALL(CS_CALL_##symbol));                                                                            \
        if (implies & (CS_BLOCKING | CS_NODE)) cs_store(&wrapped_.thread->waited, WHERE_##on);                                                       \
        CS_BEFORE effect;                                                                                                                            \
        wrapped_.begin = implies & CS_OFTEN ? cs_thread_clock_edge(wrapped_.thread, cs_ticks_of_counter()) : cs_wrapped_begin(wrapped_.thread);      \
        wrapped_.result = cs_real.symbol arguments;                                                                                                  \
        wrapped_.end = cs_ticks_of_counter();                                                                                                        \
        if (implies & CS_OFTEN) {                                                                                                                    \
            wrapped_.stream = OFTEN_##on ?: STREAM_##on;                                                                                             \
            CS_AFTER effect;                                                                                                                         \
            record_ = cs_wrapped_record(wrapped_.thread, CS_CALL_##symbol, wrapped_.result, wrapped_.stream, wrapped_.begin, wrapped_.end);          \
            CS_SHOWN(VALUE, ##__VA_ARGS__)                                                                                                           \
            cs_record_publish(wrapped_.thread, record_);                                                                                             \
            CS_PUBLISHED effect;                                                                                                                     \
            cs_store(&wrapped_.thread->inside, 0);                                                                                                   \
            return wrapped_.result;                                                                                                                  \
        }                                                                                                                                            \
        wrapped_.stream = CS_DOES_NOTHING effect ? 0 : STREAM_##on;                                                                                  \
        CS_AFTER effect;                                                                                                                             \
        record_ = CS_DOES_NOTHING effect ? RECORD_##on : RECORD_NO_STREAM;                                                                           \
        CS_SHOWN(VALUE, ##__VA_ARGS__)                                                                                                               \
        if (CS_DOES_NOTHING effect) return cs_wrapped_over(wrapped_.thread, record_, wrapped_.result);                                               \
        cs_wrapped_publish(wrapped_.thread, record_);                                                                                                \
        CS_PUBLISHED effect;                                                                                                                         \
        cs_store(&wrapped_.thread->inside, 0);                                                                                                       \
        return wrapped_.result;                                                                                                                      \
    }

/* The same, step by step. Without a thread the call is none of ours: it is made, and the steps do nothing. What effects keep is not there then, so they are
 * passed by. */
#define LONG_WAY(symbol, on, effect, parameters, arguments, ...)                                                                                     \
    LONG_CODE static CUresult cs_long_##symbol WITH_CALLER parameters                                                                                \
    {                                                                                                                                                \
        if (HAS_ITS_OWN_##on && !(cs_mode_first() & (CS_MODE_ALL | CS_ASKS effect))) return cs_real.symbol arguments;                                \
        struct cs_told told_;                                                                                                                        \
        struct cs_wrapped wrapped_;                                                                                                                  \
        struct cs_long long_;                                                                                                                        \
        CS_STATE effect effect_;                                                                                                                     \
        __typeof__(&cs_wrap_##symbol) real_ =                                                                                                        \
            cs_long_begin(&long_, &wrapped_, CS_CALL_##symbol, WHERE_##on, CALLER, CS_TELL effect ? &told_ : NULL);                                  \
        if (sizeof effect_ && !wrapped_.thread) return real_ arguments;                                                                              \
        LANDS_##on                                                                                                                                   \
        if (sizeof effect_ || wrapped_.thread) CS_BEFORE effect;                                                                                     \
        const bool over_ = CS_DOES_NOTHING effect && MAY_##on != 0 && CS_LIKELY(long_.only_steered);                                                 \
        const CUresult result_ = !over_ && cs_long_answers(&long_, WHERE_##on) ? long_.answer : real_ arguments;                                     \
        if (over_) return cs_left(&wrapped_, result_);                                                                                               \
        if (!CS_DOES_NOTHING effect) cs_long_done(&long_, result_, WHERE_##on);                                                                      \
        if (sizeof effect_ || wrapped_.thread) CS_AFTER effect;                                                                                      \
        struct cs_record *record_ = CS_DOES_NOTHING effect ? cs_long_done_record(&long_, result_, WHERE_##on) : cs_long_record(&long_);              \
        if (record_) {                                                                                                                               \
            int i_ __attribute__((unused)) = 0;                                                                                                      \
            CS_SHOWN(VALUE, ##__VA_ARGS__)                                                                                                           \
        }                                                                                                                                            \
        if (!CS_DOES_NOTHING effect) cs_long_publish(&long_);                                                                                        \
        if (sizeof effect_ || wrapped_.thread) CS_PUBLISHED effect;                                                                                  \
        return cs_long_end(&long_, WHERE_##on);                                                                                                      \
    }

#define ROW(symbol, other, of_sibling, ...) WRAPPER(symbol, of_sibling, __VA_ARGS__)
#define CALL(name, sibling, kind, how, on, effect, parameters, arguments, ...)                                                                       \
    CS_SIBLINGS_##sibling(ROW, name, CS_IMPLIED_BY_##kind, CS_ENQUEUES(CS_IMPLIED_BY_##kind, how), on, (effect), parameters, arguments, ##__VA_ARGS__)
#include "shim/calls/calls.def"
