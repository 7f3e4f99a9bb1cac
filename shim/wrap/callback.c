/*
 * Host functions and stream callbacks: run by the driver on a thread of its own, shown as slices there with their delay since they were enqueued.
 *
 * The wrapper hands the driver a trampoline and a node from a fixed pool; the node is given back when the function runs. While the stream
 * captures, the program's own function goes into the graph untouched, since a graph shows its host nodes to the program and runs them many times.
 * Delays that a policy puts in (policy/jitter.c) are slices of the same threads.
 */
#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/policy/steer.h"
#include "shim/trace/record.h"
#include "shim/wrap/inside.h"

struct cs_callback {
    struct cs_object object;
    void *function, *data;
    cs_u64 enqueued; /* ticks */
    cs_ref stream;
    cs_u16 call; /* that enqueued it */
    bool hidden; /* it was enqueued while no calls were recorded */
    bool tells;  /* the function this stream, and not the one that the driver says */
    CUstream told;
};

static struct cs_pool callbacks;

static void delayed(const struct cs_delayed *d);

bool cs_callbacks_init(void)
{
    cs_store_rel(&cs_steer_delayed, delayed);
    return cs_pool_init(&callbacks, sizeof(struct cs_callback), 1 << 16);
}

struct cs_callback *cs_callback_new(struct cs_thread *thread, CUstream stream, bool per_thread, void *function, void *data, cs_u16 call)
{
    CS_KEEP_ERRNO;
    if (!function || cs_stream_is_capturing(stream, per_thread)) return NULL; /* where the driver says nothing it refuses the call anyway */
    struct cs_callback *callback = cs_pool_new(&callbacks);
    if (!callback) return NULL;
    callback->function = function;
    callback->data = data;
    callback->stream = cs_stream_of(thread, stream, per_thread, false, 0);
    callback->call = call;
    callback->enqueued = cs_ticks();
    return callback;
}

void cs_callback_tells(struct cs_callback *callback, CUstream stream, bool hidden)
{
    callback->told = stream;
    callback->tells = true;
    callback->hidden = hidden;
}

void cs_callback_refused(struct cs_callback *callback)
{
    if (callback) cs_pool_release(&callbacks, &callback->object);
}

static struct cs_callback take(void *node)
{
    struct cs_callback copy = *(struct cs_callback *)node;
    cs_pool_release(&callbacks, &((struct cs_callback *)node)->object);
    return copy;
}

/* Of a thread that is not in a call of ours: the driver's, as a rule. */
static struct cs_thread *running(void) { return cs_self && !cs_load(&cs_self->inside) ? cs_self : cs_enter_slowly(); }

/* A function that does not return makes no record: until it does, its thread's state says so. In this order: trace/inside.c reads both. */
static struct cs_thread *enters(const struct cs_callback *callback)
{
    CS_KEEP_ERRNO;
    struct cs_thread *thread = callback->hidden ? NULL : running();
    if (!thread) return NULL;
    cs_store_rel(&thread->function_stream, callback->stream);
    cs_store_rel(&thread->function, callback->function);
    return thread;
}

static void leaves(struct cs_thread *entered)
{
    if (entered && entered == cs_self) cs_store(&entered->function, NULL);
}

static void record(const struct cs_callback *callback, cs_u64 begin)
{
    CS_KEEP_ERRNO;
    cs_u64 end = cs_ticks();
    struct cs_thread *thread = callback->hidden ? NULL : running();
    if (!thread || !(cs_load_acq(&cs_mode) & CS_MODE_WATCH)) return; /* it was enqueued while calls were recorded: it is shown, whenever it comes */
    const struct cs_stream *stream = cs_pool_get(&cs_streams, callback->stream);
    const bool muted = stream && cs_load(&stream->muted);
    cs_record_put(thread, &(struct cs_record){.begin = begin,
                                              .end = end,
                                              .call = CS_CALL_CALLBACK | (muted ? CS_CALL_MUTED : 0),
                                              .stream = callback->stream,
                                              .value = {(uintptr_t)callback->function, callback->enqueued, callback->call}});
}

/* One of the calling thread's own stands before the call that it is in. */
static void delayed(const struct cs_delayed *d)
{
    CS_KEEP_ERRNO;
    struct cs_thread *thread = d->on_stream ? running() : cs_self;
    const struct cs_stream *stream = cs_pool_get(&cs_streams, d->stream);
    if (!thread || !cs_mode_records() || (stream && cs_load(&stream->muted))) return;
    cs_record_put(thread, &(struct cs_record){
        .begin = d->begin, .end = d->end, .call = CS_CALL_DELAY, .stream = d->stream, .value = {d->us, d->call, d->on_stream}});
}

void CUDA_CB cs_callback_host(void *node)
{
    struct cs_callback callback = take(node);
    struct cs_thread *entered = enters(&callback);
    cs_u64 begin = cs_ticks_before();
    ((CUhostFn)callback.function)(callback.data);
    leaves(entered);
    record(&callback, begin);
}

void CUDA_CB cs_callback_stream(CUstream stream, CUresult status, void *node)
{
    struct cs_callback callback = take(node);
    struct cs_thread *entered = enters(&callback);
    cs_u64 begin = cs_ticks_before();
    ((CUstreamCallback)callback.function)(callback.tells ? callback.told : stream, status, callback.data);
    leaves(entered);
    record(&callback, begin);
}
