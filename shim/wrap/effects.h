/*
 * What a call changes in our objects: the effects that rows of the call table name.
 *
 * An effect is up to four functions inside the wrapper of its row: what hooks are told (`tell`), what is done `before` the real call, `after` it, and once the
 * record is in the ring (`published`). They get the call (struct cs_wrapped), what the effect keeps meanwhile (struct cs_effect_NAME), and the arguments of the
 * row: an address where the effect changes what the driver is passed. NONE(step, effect) says that there is nothing to do. A new effect is a row of effects.def,
 * its struct and its four steps here, and its name in a row of the call table.
 */
#ifndef CS_WRAP_EFFECTS_H
#define CS_WRAP_EFFECTS_H

#include "shim/base/clock.h"
#include "shim/object/event.h"
#include "shim/object/graph.h"
#include "shim/object/kernel.h"
#include "shim/object/stream.h"
#include "shim/wrap/inside.h"
#include "shim/wrap/wrapped.h"

/* The column of the call table. */
#define NOTHING                        nothing
#define DO(...)                        __VA_ARGS__

/* The columns of effects.def, and what becomes of a row's (effect, arguments...). */
enum { CUSTREAM_HOOK_KIND = -2 };
enum {
#define EFFECT(name, asks, hook) CS_ASKS_##name = asks, CS_HOOK_##name = CUSTREAM_HOOK_##hook,
#include "shim/wrap/effects.def"
#undef EFFECT
};
enum {
#define EFFECT(name, ...) CS_EFFECT_##name,
#include "shim/wrap/effects.def"
#undef EFFECT
};
#define CS_ASKS(effect, ...)           CS_ASKS_##effect
#define CS_DOES_NOTHING(effect, ...)   (CS_EFFECT_##effect == CS_EFFECT_nothing)
#define CS_STATE(effect, ...)          struct cs_effect_##effect
#define CS_TELL(effect, ...)           cs_tell_##effect(&told_, ##__VA_ARGS__)
#define CS_BEFORE(effect, ...)         cs_before_##effect(&wrapped_, &effect_, ##__VA_ARGS__)
#define CS_AFTER(effect, ...)          cs_after_##effect(&wrapped_, &effect_, ##__VA_ARGS__)
#define CS_PUBLISHED(effect, ...)      cs_published_##effect(&wrapped_, &effect_, ##__VA_ARGS__)

/* What kind of hook meets a call: as its effect says, else its kind; -1 none. */
#define CS_HOOKED(kind, how, ...)      CS_HOOKED_(kind, how, __VA_ARGS__)
#define CS_HOOKED_(kind, how, effect, ...) ((int)CS_HOOK_##effect == (int)CUSTREAM_HOOK_KIND ? CS_HOOK_OF_KIND(kind, how) : (int)CS_HOOK_##effect)

#define STEP(step, effect, ...)        CS_HOT void cs_##step##_##effect(struct cs_wrapped *w, struct cs_effect_##effect *e, ##__VA_ARGS__)
#define NONE(step, effect)             CS_HOT void cs_##step##_##effect(struct cs_wrapped *w, struct cs_effect_##effect *e, ...) { (void)w, (void)e; }
#define TELL(effect, ...)              CS_HOT bool cs_tell_##effect(struct cs_told *told, __VA_ARGS__)
#define TELLS_NOTHING(effect)          CS_HOT bool cs_tell_##effect(struct cs_told *told, ...) { return (void)told, false; }
#define HOLD(step, effect)              /* off the GPU thread, while a context ends */                                                                \
    struct cs_effect_##effect {                                                                                                                      \
        bool held;                                                                                                                                   \
    };                                                                                                                                               \
    CS_HOT void cs_##step##_##effect(struct cs_wrapped *w, struct cs_effect_##effect *e, ...) { (void)w, e->held = cs_gpu_hold(); }
#define STATELESS(effect)              struct cs_effect_##effect {};

/* --- nothing --- */

STATELESS(nothing)
TELLS_NOTHING(nothing)
NONE(before, nothing)
NONE(after, nothing)
NONE(published, nothing)

/* --- stream_create --- */

struct cs_effect_stream_create {
    struct cs_creation creation;
    CUstream *out;
};
TELLS_NOTHING(stream_create)
CUresult cs_create_steered(void *effect); /* in place of the driver's call */
STEP(before, stream_create, CUstream *out, unsigned flags, int priority, CUgreenCtx green)
{
    if (!CS_STEERED(w)) return;
    cs_steer_creation(&e->creation, w->thread, w->call, w->caller, flags, priority, green, &w->way->hook);
    e->out = out;
    w->way->instead = cs_create_steered;
    w->way->state = e;
}
STEP(after, stream_create, CUstream *out, unsigned flags, int priority, CUgreenCtx green)
{
    (void)green;
    if (!CS_MADE(w)) return;
    if (CS_STEERED(w)) w->way->hook.info.stream = *out;
    w->stream = CS_STEERED(w) ? cs_steer_created(&e->creation, *out, w->end) : cs_stream_created(w->thread, *out, flags, priority, w->call, w->caller, w->end);
}
NONE(published, stream_create)

/* --- stream_destroy: the handle may come back from the driver before its destroy returns, so it is given up first and taken back if the driver refuses --- */

struct cs_effect_stream_destroy {
    cs_ref dying;
    bool share; /* only a share of it is taken back */
};
TELL(stream_destroy, CUstream handle) { return *told = (struct cs_told){.stream = handle}, true; }
STEP(before, stream_destroy, CUstream handle)
{
    CUresult answer;
    e->share = CS_STEERED(w) && !CS_REFUSED(w) && cs_steer_destroys_share(handle, &answer);
    e->dying = e->share ? cs_stream_find(w->thread, handle, w->per_thread) : cs_stream_destroying(w->thread, handle, w->per_thread);
    if (e->share) w->way->answered = true, w->way->answer = answer;
}
STEP(after, stream_destroy, CUstream handle)
{
    (void)handle;
    w->stream = e->dying;
}
STEP(published, stream_destroy, CUstream handle)
{
    (void)handle;
    if (!e->share) cs_stream_destroyed(e->dying, CS_MADE(w), w->end);
}

/* --- stream_attribute --- */

struct cs_effect_stream_attribute {
    CUstreamAttrValue value;
};
TELLS_NOTHING(stream_attribute)
STEP(before, stream_attribute, CUstream handle, CUstreamAttrID id, const CUstreamAttrValue **value)
{
    if (!CS_STEERED(w) || cs_steer_attribute(w->thread, handle, id, value, &e->value)) return;
    w->way->answered = true;
    w->way->answer = CUDA_ERROR_INVALID_VALUE;
}
NONE(after, stream_attribute)
NONE(published, stream_attribute)

/* --- launch_config --- */

struct cs_effect_launch_config {
    struct cs_launch_copy copy;
};
void cs_launch_records(struct cs_thread *thread, const CUlaunchConfig *config, cs_u64 begin); /* the events that it names */
TELLS_NOTHING(launch_config)
STEP(before, launch_config, const CUlaunchConfig **config)
{
    if (CS_STEERED(w) && !CS_REFUSED(w)) *config = cs_steer_config(&w->way->steer, *config, &e->copy);
}
NONE(after, launch_config)
STEP(published, launch_config, const CUlaunchConfig **config)
{
    (void)e;
    if (CS_MADE(w) && CS_UNLIKELY((*config)->numAttrs)) cs_launch_records(w->thread, *config, w->begin);
}

/* --- priority_range --- */

STATELESS(priority_range)
TELLS_NOTHING(priority_range)
NONE(before, priority_range)
STEP(after, priority_range, int *least, int *greatest)
{
    (void)e;
    if (CS_STEERED(w) && CS_MADE(w)) cs_steer_range(least, greatest);
}
NONE(published, priority_range)

/* --- profiler --- */

STATELESS(profiler)
TELLS_NOTHING(profiler)
NONE(before, profiler)
NONE(after, profiler)
STEP(published, profiler, bool starts)
{
    (void)e;
    if (CS_MADE(w)) cs_window_profiler(starts);
}

/* --- event_create --- */

STATELESS(event_create)
TELL(event_create, CUevent *out, unsigned flags, bool foreign)
{
    *told = (struct cs_told){.flags = flags};
    return (void)out, (void)foreign, true;
}
NONE(before, event_create)
STEP(after, event_create, CUevent *out, unsigned flags, bool foreign) /* foreign: another process records it */
{
    (void)e;
    if (!CS_MADE(w)) return;
    if (CS_STEERED(w)) w->way->hook.info.event = *out;
    const cs_ref event = cs_event_created(w->thread, *out, flags, w->call, w->caller, w->end);
    if (foreign) cs_event_elsewhere(event);
}
NONE(published, event_create)

/* --- event_destroy --- */

struct cs_effect_event_destroy {
    cs_ref dying;
};
TELL(event_destroy, CUevent handle) { return *told = (struct cs_told){.event = handle}, true; }
STEP(before, event_destroy, CUevent handle)
{
    (void)w;
    e->dying = cs_event_destroying(handle);
}
NONE(after, event_destroy)
STEP(published, event_destroy, CUevent handle)
{
    (void)handle;
    cs_event_destroyed(e->dying, CS_MADE(w), w->end);
}

/* --- event_record: published after the record, so that whoever finds this record as its cause finds it in the ring. One that makes a node (EXTERNAL) leaves
 * the event as it was, and launches of the graph will record it --- */

STATELESS(event_record)
TELL(event_record, CUevent handle, bool node)
{
    *told = (struct cs_told){.event = handle};
    return (void)node, true;
}
NONE(before, event_record)
STEP(after, event_record, CUevent handle, bool node)
{
    (void)e;
    if (!CS_STEERED(w) || !CS_MADE(w) || node) return;
    const bool captures = w->way->steer.captures;
    cs_steer_recorded(&w->way->steer, cs_event_of(w->thread, handle, captures, captures ? cs_ticks() : 0));
}
STEP(published, event_record, CUevent handle, bool node)
{
    (void)e;
    if (!CS_MADE(w) || !w->records) return;
    if (node) cs_event_elsewhere(cs_event_of(w->thread, handle, true, w->begin));
    else cs_event_recorded(cs_event_of(w->thread, handle, true, w->begin), w->call & CS_CALL_MUTED ? 0 : w->begin, w->thread->tid, w->stream);
}

/* --- event_elsewhere: a graph or another process is to record the event --- */

STATELESS(event_elsewhere)
TELLS_NOTHING(event_elsewhere)
NONE(before, event_elsewhere)
NONE(after, event_elsewhere)
STEP(published, event_elsewhere, CUevent handle)
{
    (void)e;
    if (CS_MADE(w)) cs_event_elsewhere(cs_event_of(w->thread, handle, true, w->begin));
}

/* --- graph_node: it may be one that records an event --- */

STATELESS(graph_node)
TELLS_NOTHING(graph_node)
NONE(before, graph_node)
NONE(after, graph_node)
STEP(published, graph_node, const CUgraphNodeParams *node)
{
    (void)e;
    if (!CS_MADE(w) || node->type != CU_GRAPH_NODE_TYPE_EVENT_RECORD) return;
    cs_event_elsewhere(cs_event_of(w->thread, node->eventRecord.event, true, w->begin));
}

/* --- stream_wait --- */

struct cs_effect_stream_wait {
    struct cs_cause cause;
};
TELL(stream_wait, CUstream *stream, CUevent handle)
{
    *told = (struct cs_told){.event = handle};
    return (void)stream, true;
}
STEP(before, stream_wait, CUstream *stream, CUevent handle)
{
    e->cause = w->records ? cs_event_cause(handle) : (struct cs_cause){0, 0};
    if (CS_STEERED(w)) *stream = cs_steer_wait(&w->way->steer, *stream, handle);
}
NONE(after, stream_wait)
NONE(published, stream_wait)

/* --- event_wait --- */

struct cs_effect_event_wait {
    struct cs_cause cause;
};
TELL(event_wait, CUevent handle) { return *told = (struct cs_told){.event = handle}, true; }
STEP(before, event_wait, CUevent handle)
{
    e->cause = w->records ? cs_event_cause(handle) : (struct cs_cause){0, 0};
    cs_store(&w->thread->waited, handle);
}
NONE(after, event_wait)
NONE(published, event_wait)

/* --- capture_begin --- */

struct cs_effect_capture_begin {
    cs_u32 shares; /* how many share the stream */
};
TELLS_NOTHING(capture_begin)
STEP(before, capture_begin, CUstream handle)
{
    e->shares = CS_STEERED(w) && !CS_REFUSED(w) ? cs_steer_captures(handle) : 0;
}
STEP(after, capture_begin, CUstream handle)
{
    (void)handle, (void)e;
    if (CS_MADE(w)) cs_stream_capture(w->stream, w->end);
}
NONE(published, capture_begin)

/* --- capture_end: one that was invalidated ends too, with an error; refusals of the end call itself, the driver's and a hook's, leave it running --- */

struct cs_effect_capture_end {
    cs_u64 began; /* for the record: the capture that has ended; 0 none */
    struct cs_graph_ids ids;
};
TELLS_NOTHING(capture_end)
STEP(before, capture_end, CUstream handle, CUgraph *out)
{
    (void)out;
    e->began = cs_stream_captures(cs_stream_find(w->thread, handle, w->per_thread));
}
STEP(after, capture_end, CUstream handle, CUgraph *out)
{
    (void)handle;
    if (!CS_REFUSED(w) && cs_capture_is_over(w->result)) cs_stream_capture(w->stream, 0);
    else e->began = 0;
    /* Recording began within the capture, and is over: else nobody would know which of the calls recorded then went into it. */
    if (e->began && !w->records && e->began < cs_load(&cs_events_known_since)) w->records = true, w->call |= CS_CALL_MUTED;
    e->ids = CS_MADE(w) ? cs_graph_ids_of(out, NULL) : (struct cs_graph_ids){0};
}
NONE(published, capture_end)

/* --- graph_made --- */

struct cs_effect_graph_made {
    struct cs_graph_ids ids;
};
TELLS_NOTHING(graph_made)
NONE(before, graph_made)
STEP(after, graph_made, CUgraph graph, const CUgraphExec *exec)
{
    e->ids = CS_MADE(w) && w->records ? cs_graph_ids_of(&graph, exec) : (struct cs_graph_ids){0};
}
NONE(published, graph_made)

/* --- host_func --- */

struct cs_effect_host_func {
    void *function; /* that the program gave */
    struct cs_callback *callback;
};
TELLS_NOTHING(host_func)
STEP(before, host_func, CUstream stream, CUhostFn *fn, void **data)
{
    e->function = (void *)*fn;
    e->callback = w->records && !CS_REFUSED(w) ? cs_callback_new(w->thread, stream, w->per_thread, e->function, *data, w->call) : NULL;
    if (e->callback) *fn = cs_callback_host, *data = e->callback;
}
STEP(after, host_func, CUstream stream, CUhostFn *fn, void **data)
{
    (void)stream, (void)fn, (void)data;
    if (!CS_ACCEPTED(w)) cs_callback_refused(e->callback);
}
NONE(published, host_func)

/* --- callback: the function is told the handle that the program gave, wherever the work went. Where no node is left to remember it, the work goes there --- */

struct cs_effect_callback {
    void *function; /* that the program gave */
    struct cs_callback *callback;
};
TELLS_NOTHING(callback)
STEP(before, callback, CUstream *stream, CUstreamCallback *fn, void **data)
{
    const CUstream told = !CS_STEERED(w) ? *stream : w->way->hook.met ? w->way->hook.given : w->way->steer.asked;
    const bool moved = told != *stream && !CS_REFUSED(w), noted = moved || (w->records && !CS_REFUSED(w));
    e->function = (void *)*fn;
    e->callback = noted ? cs_callback_new(w->thread, *stream, w->per_thread, e->function, *data, w->call) : NULL;
    if (e->callback && moved) cs_callback_tells(e->callback, told, !w->records);
    if (e->callback) *fn = cs_callback_stream, *data = e->callback;
    else if (moved && !w->way->steer.redirected) *stream = cs_steer_leave(&w->way->steer);
}
STEP(after, callback, CUstream *stream, CUstreamCallback *fn, void **data)
{
    (void)stream, (void)fn, (void)data;
    if (!CS_ACCEPTED(w)) cs_callback_refused(e->callback);
}
NONE(published, callback)

/* --- context_create --- */

STATELESS(context_create)
TELLS_NOTHING(context_create)
NONE(before, context_create)
STEP(after, context_create, CUcontext *out)
{
    (void)e;
    if (CS_MADE(w)) cs_context_made(*out), cs_context_set(w->thread, *out);
}
NONE(published, context_create)

/* --- context_set --- */

STATELESS(context_set)
TELLS_NOTHING(context_set)
NONE(before, context_set)
STEP(after, context_set, CUcontext handle)
{
    (void)e;
    if (CS_MADE(w)) cs_context_set(w->thread, handle);
}
NONE(published, context_set)

/* --- context_pop --- */

STATELESS(context_pop)
TELLS_NOTHING(context_pop)
NONE(before, context_pop)
STEP(after, context_pop)
{
    (void)e;
    cs_context_forget(w->thread);
}
NONE(published, context_pop)

/* --- context_detach: ends the context or not, which does not show --- */

TELLS_NOTHING(context_detach)
HOLD(before, context_detach)
STEP(after, context_detach, CUcontext handle)
{
    cs_context_forget(w->thread);
    if (CS_MADE(w)) cs_context_end_unsure(handle);
    cs_gpu_release(e->held);
}
NONE(published, context_detach)

/* --- context_destroy --- */

struct cs_effect_context_destroy {
    bool held;
    cs_ref dying;
};
TELLS_NOTHING(context_destroy)
STEP(before, context_destroy, CUcontext handle)
{
    (void)w;
    e->held = cs_gpu_hold();
    e->dying = cs_context_destroying(handle);
}
STEP(after, context_destroy, CUcontext handle)
{
    (void)handle;
    cs_context_destroyed(e->dying, CS_MADE(w));
    cs_gpu_release(e->held);
}
NONE(published, context_destroy)

/* --- primary_retain --- */

STATELESS(primary_retain)
TELLS_NOTHING(primary_retain)
NONE(before, primary_retain)
STEP(after, primary_retain, CUcontext *out, CUdevice device)
{
    (void)e;
    if (CS_MADE(w)) cs_context_is_primary(*out, device);
}
NONE(published, primary_retain)

/* --- primary_end --- */

TELLS_NOTHING(primary_end)
HOLD(before, primary_end)
STEP(after, primary_end, CUdevice device, bool reset)
{
    if (CS_MADE(w) && (reset || !cs_context_primary_active(device))) cs_context_primary_ended(device);
    cs_gpu_release(e->held);
}
NONE(published, primary_end)

/* --- green_end: a green context has a reference of its device's primary one, which may be the last --- */

TELLS_NOTHING(green_end)
HOLD(before, green_end)
STEP(after, green_end)
{
    if (CS_MADE(w)) cs_context_primaries_ended();
    cs_gpu_release(e->held);
}
NONE(published, green_end)

/* --- kernel_named --- */

STATELESS(kernel_named)
TELLS_NOTHING(kernel_named)
NONE(before, kernel_named)
STEP(after, kernel_named, const void *out, const char *name)
{
    (void)e;
    if (CS_MADE(w)) cs_kernel_named(*(const CUfunction *)out, name); /* a CUkernel may stand for a function in a launch */
}
NONE(published, kernel_named)

/* --- kernels_unloaded --- */

STATELESS(kernels_unloaded)
TELLS_NOTHING(kernels_unloaded)
NONE(before, kernels_unloaded)
STEP(after, kernels_unloaded)
{
    (void)w, (void)e;
    cs_kernels_unloaded();
}
NONE(published, kernels_unloaded)

#undef STEP
#undef NONE
#undef HOLD
#undef TELL
#undef TELLS_NOTHING
#undef STATELESS

#endif
