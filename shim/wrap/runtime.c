/*
 * The wrappers of the runtime's functions, made from their table: the caller's own copy of cudart is called, and the call recorded behind those that it
 * made of the driver. They change nothing, and no object hears of them. Where a profiler tells of the runtime's calls, that is recorded instead.
 */
#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/gpu/backend.h"
#include "shim/process/process.h"
#include "shim/trace/record.h"
#include "shim/trace/writer.h"
#include "shim/wrap/runtime.h"

/* In a call of the runtime: those that cudart makes into itself are part of it. How it was told of: OURS by our function in front of it, else in which of the
 * profiler's times at work; its end is not told when that is over. */
enum { OUTSIDE = 0, OURS = UINT16_MAX };
static CS_TLS cs_u16 inside;

static bool is_inside(void) { return inside && (inside == OURS || inside == cs_load(&cs_runtime_turn)); }

struct frame {
    cs_u64 begin; /* ticks; 0: before there was a clock */
    cs_u64 place; /* of the first record that the call may leave in the thread's ring; UNKNOWN: the thread has none yet */
};
#define UNKNOWN UINT64_MAX

static CS_COLD bool enters(struct frame *frame, unsigned mode, enum cs_runtime_source source, cs_u16 how)
{
    const struct cs_thread *thread = cs_thread_own();
    if (is_inside() || (mode != CS_MODE_COLD && cs_load(&cs_runtime_source) != (int)source) || (thread && cs_load(&thread->inside))) return false;
    inside = how;
    frame->place = thread ? cs_load(&thread->ring.head) : UNKNOWN;
    frame->begin = mode == CS_MODE_COLD ? 0 : cs_ticks_before();
    return true;
}

/* Ranges that were open when the thread got its ring are told first: they hold the call. */
static cs_u64 first_place(const struct cs_thread *thread)
{
    cs_u64 i = thread->first;
    const cs_u64 head = cs_load(&thread->ring.head);
    while (i < head && ((const struct cs_record *)thread->ring.slots[i & thread->ring.mask])->call == CS_CALL_RANGE_PUSH) i++;
    return i;
}

static CS_COLD void leaves(const struct frame *frame, enum cs_runtime_call call, cudaError_t result, cs_u32 correlation)
{
    CS_KEEP_ERRNO;
    const unsigned mode = cs_load_acq(&cs_mode);
    inside = OUTSIDE;
    if (!(mode & CS_MODE_WATCH) || cs_load(&cs_runtime_source) == CS_RUNTIME_NOBODY || (!frame->begin && !(mode & CS_MODE_RECORD))) return;
    const cs_u64 end = cs_ticks();
    /* It is a driver's call that starts a recording: a runtime that could not start has unloaded the driver again. */
    struct cs_thread *thread = cs_thread_own() ?: cs_writer_alive() ? cs_enter_slowly() : NULL;
    if (!thread || cs_load(&thread->inside)) return;
    const cs_u64 place = frame->place == UNKNOWN ? first_place(thread) : frame->place;
    cs_record_put(thread, &(struct cs_record){
        .begin = frame->begin, .end = end, .call = (cs_u16)call, .result = (int16_t)result, .value = {place, correlation}});
}

static CS_TLS cs_u64 told_place; /* of the call that the profiler has told of; its begin it keeps for us */

static cs_u64 told_begins(cs_u16 turn)
{
    const unsigned mode = cs_mode_first();
    struct frame frame;
    if (!(mode & CS_MODE_RECORD) || !enters(&frame, mode, CS_RUNTIME_PROFILER, turn)) return 0;
    told_place = frame.place;
    return frame.begin;
}

static void told_ends(cs_u16 turn, cs_u64 began, cs_u16 call, int result, cs_u32 correlation)
{
    const struct frame frame = {began, told_place};
    if (inside == turn) leaves(&frame, (enum cs_runtime_call)call, (cudaError_t)result, correlation);
}

void cs_runtime_begin(bool shown)
{
    cs_runtime_listener = (struct cs_runtime_listener){told_begins, told_ends};
    cs_store(&cs_runtime_source, shown ? CS_RUNTIME_SYMBOLS : CS_RUNTIME_NOBODY);
}

#define ADDRESS_CALLER __builtin_return_address(0)
#define ADDRESS_OF(f)  (const void *)(f)

#define WRAPPER(symbol, name, caller, parameters, arguments)                                                                                         \
    cudaError_t cs_run_##symbol parameters                                                                                                           \
    {                                                                                                                                                \
        __typeof__(&cs_run_##symbol) real_ =                                                                                                         \
            (__typeof__(real_))cs_runtime_function(CS_RUNTIME_##symbol, ADDRESS_##caller, __builtin_return_address(0));                              \
        const unsigned mode_ = cs_mode_first();                                                                                                      \
        struct frame frame_;                                                                                                                         \
        if (!(mode_ & (CS_MODE_RECORD | CS_MODE_COLD)) || !enters(&frame_, mode_, CS_RUNTIME_SYMBOLS, OURS)) return real_ arguments;                 \
        const cudaError_t r_ = real_ arguments;                                                                                                      \
        leaves(&frame_, CS_RUNTIME_##symbol, r_, 0);                                                                                                 \
        return r_;                                                                                                                                   \
    }

/* Hidden versions, as of the driver's names (wrap/wrappers.h). The older one is a second name of the function: not every assembler gives one name two. */
#define EXPORTED_13(symbol) __asm__(".symver cs_run_" #symbol ", " #symbol "@libcudart.so.13");
#define EXPORTED_12(symbol)                                                                                                                          \
    extern CS_EXPORT __typeof__(cs_run_##symbol) cs_run12_##symbol __attribute__((alias("cs_run_" #symbol)));                                        \
    __asm__(".symver cs_run12_" #symbol ", " #symbol "@libcudart.so.12");
#define EXPORTED_CUDA13(symbol, ...) EXPORTED_13(symbol)
#define EXPORTED_BOTH(symbol, ...)   EXPORTED_13(symbol) EXPORTED_12(symbol)

#define RUNTIME(name, sibling, versions, caller, parameters, arguments)                                                                              \
    CS_RUNTIME_SIBLINGS_##sibling(WRAPPER, name, caller, parameters, arguments) CS_RUNTIME_SIBLINGS_##sibling(EXPORTED_##versions, name, )
#include "shim/calls/runtime.def"
