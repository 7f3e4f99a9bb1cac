/*
 * The wrappers of the runtime's functions, made from their table: the caller's own copy of cudart is called, and the call recorded behind those that it
 * made of the driver. They change nothing, and no object hears of them.
 */
#include "shim/hook/runtime.h"

#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/hook/mode.h"
#include "shim/hook/runtime_copy.h"
#include "shim/trace/record.h"
#include "shim/trace/writer.h"

CS_READ_MOSTLY bool cs_runtime_shown;

/* In a call of the runtime: those that cudart makes into itself are part of it. */
static CS_TLS bool inside;

struct frame {
    cs_u64 begin; /* ticks; 0: before there was a clock */
    cs_u64 place; /* of the first record that the call may leave in the thread's ring; UNKNOWN: the thread has none yet */
};
#define UNKNOWN UINT64_MAX

/* A time before that of whatever the thread does in the call, so that the slice begins before those that it holds. Where the counter is slow, or seen in steps
 * (10 ns in some virtual machines), that takes a wait for its next one. */
static cs_u64 time_before(void)
{
    const cs_u64 now = cs_ticks();
    while (cs_ticks() == now) continue;
    return now;
}

static CS_COLD bool enters(struct frame *frame, unsigned mode)
{
    const struct cs_thread *thread = cs_self;
    if (inside || (mode != CS_MODE_COLD && !cs_runtime_shown) || (thread && thread->inside)) return false;
    inside = true;
    frame->place = thread ? cs_load(&thread->ring.head) : UNKNOWN;
    frame->begin = mode == CS_MODE_COLD ? 0 : time_before();
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

static CS_COLD void leaves(const struct frame *frame, enum cs_runtime_call call, cudaError_t result)
{
    CS_KEEP_ERRNO;
    const unsigned mode = cs_load_acq(&cs_mode);
    inside = false;
    if (!(mode & CS_MODE_WATCH) || !cs_runtime_shown || (!frame->begin && !(mode & CS_MODE_RECORD))) return;
    const cs_u64 end = cs_ticks();
    /* It is a driver's call that starts a recording: a runtime that could not start has unloaded the driver again. */
    struct cs_thread *thread = cs_self ?: cs_writer_alive() ? cs_enter_slowly() : NULL;
    if (!thread || thread->inside) return;
    thread->inside = 1; /* a signal handler that calls CUDA now would find the ring in between */
    const cs_u64 place = frame->place == UNKNOWN ? first_place(thread) : frame->place;
    struct cs_record *record = cs_record_claim(thread);
    *record = (struct cs_record){.begin = frame->begin, .end = end, .call = (cs_u16)call, .result = (int16_t)result, .value = {place}};
    cs_record_publish(thread, record);
    thread->inside = 0;
}

#define ADDRESS_CALLER __builtin_return_address(0)
#define ADDRESS_OF(f)  (const void *)(f)

#define WRAPPER(symbol, name, caller, parameters, arguments)                                                                                         \
    cudaError_t cs_run_##symbol parameters                                                                                                           \
    {                                                                                                                                                \
        __typeof__(&cs_run_##symbol) real_ =                                                                                                         \
            (__typeof__(real_))cs_runtime_function(CS_RUNTIME_##symbol, ADDRESS_##caller, __builtin_return_address(0));                              \
        const unsigned mode_ = cs_load(&cs_mode);                                                                                                    \
        struct frame frame_;                                                                                                                         \
        if (!(mode_ & (CS_MODE_RECORD | CS_MODE_COLD)) || !enters(&frame_, mode_)) return real_ arguments;                                           \
        const cudaError_t r_ = real_ arguments;                                                                                                      \
        leaves(&frame_, CS_RUNTIME_##symbol, r_);                                                                                                    \
        return r_;                                                                                                                                   \
    }

/* Hidden versions, as of the driver's names (hook/wrappers.h). The older one is a second name of the function: not every assembler gives one name two. */
#define EXPORTED_13(symbol) __asm__(".symver cs_run_" #symbol ", " #symbol "@libcudart.so.13");
#define EXPORTED_12(symbol)                                                                                                                          \
    extern CS_EXPORT __typeof__(cs_run_##symbol) cs_run12_##symbol __attribute__((alias("cs_run_" #symbol)));                                        \
    __asm__(".symver cs_run12_" #symbol ", " #symbol "@libcudart.so.12");
#define EXPORTED_CUDA13(symbol, ...) EXPORTED_13(symbol)
#define EXPORTED_BOTH(symbol, ...)   EXPORTED_13(symbol) EXPORTED_12(symbol)

#define RUNTIME(name, sibling, versions, caller, parameters, arguments)                                                                              \
    CS_RUNTIME_SIBLINGS_##sibling(WRAPPER, name, caller, parameters, arguments) CS_RUNTIME_SIBLINGS_##sibling(EXPORTED_##versions, name, )
#include "shim/calls/runtime.def"
