#define _GNU_SOURCE
#include "shim/api/link.h"
#include "shim/api/sized.h"
#include "shim/wrap/wrap.h"

#include <dlfcn.h>
#include <stdio.h>

#include "shim/base/keep.h"
#include "shim/base/module.h"
#include "shim/calls/calls.h"
#include "shim/gpu/backend.h"
#include "shim/object/event.h"
#include "shim/object/stream.h"
#include "shim/out/output.h"
#include "shim/policy/hooks.h"
#include "shim/process/process.h"
#include "shim/trace/stream_life.h"
#include "shim/trace/writer.h"

static cs_u64 link_stream(void *handle)
{
    cs_u64 value = (uintptr_t)handle > (uintptr_t)CU_STREAM_PER_THREAD && cs_stream_handles.slots ? cs_map_get(&cs_stream_handles, (uintptr_t)handle) : 0;
    return value & CS_MAP_DEAD ? 0 : value;
}

static cs_u64 link_event(void *handle) { return handle && cs_event_handles.slots ? cs_event_find(handle) : 0; }

static struct cs_stream *stream_of(cs_u64 link) { return link ? cs_pool_get(&cs_streams, (cs_ref)link) : NULL; }
static struct cs_stream *stream_now(void *handle, cs_u64 link) { return stream_of(link ? link : link_stream(handle)); }

static bool link_stream_ended(cs_u64 link)
{
    const struct cs_stream *stream = stream_of(link);
    return link && (!stream || cs_load_acq(&stream->ended));
}

static bool link_event_ended(cs_u64 link)
{
    const struct cs_event *event = link ? cs_pool_get(&cs_events, (cs_ref)link) : NULL;
    return link && (!event || cs_load_acq(&event->ended));
}

static bool link_requested(void *handle, cs_u64 link, int *priority)
{
    const struct cs_stream *stream = stream_now(handle, link);
    if (!stream || !cs_load_acq(&stream->filled) || cs_load(&stream->origin) != CS_STREAM_CREATED) return false;
    *priority = stream->priority_asked;
    return true;
}

static void link_named(void *handle, const char *name)
{
    if (!cs_stream_handles.slots) return; /* nothing is kept of streams */
    cs_stream_named(NULL, (CUstream)handle, name && *name ? cs_name_add(name) : 0);
}

/* The counts are the writer's, which goes on counting. */
static bool link_history(void *handle, cs_u64 link, custream_history_t *history)
{
    custream_history_t found = {.size = sizeof found};
    if (!link) link = link_stream(handle);
    struct cs_stream *s = stream_of(link);
    cs_u64 work[CS_WORK_KINDS];
    if (!s || !cs_load_acq(&s->filled)) return false;
    uint64_t *const counts[] = {&found.launches, &found.copies, &found.sets, &found.records, &found.waits, &found.synchronizations,
                                &found.graph_launches, &found.others};
    _Static_assert(CS_COUNT(counts) == CS_WORK_KINDS, "a count for each kind of work");
    cs_stream_life_history((cs_ref)link, work, &found.bytes_copied);
    for (int i = 0; i < CS_WORK_KINDS; i++) *counts[i] = work[i];
    snprintf(found.library, sizeof found.library, "%s", s->library ? cs_name_text(s->library) : "");
    snprintf(found.call, sizeof found.call, "%s", s->call ? cs_call_info[s->call].name : "");
    return api_give(history, &found) == CUSTREAM_SUCCESS;
}

/* --- hooks --- */

/* Wrappers ask policies and hooks from now on. Not once the process has begun to end. */
static bool steer_from_now_on(void)
{
    unsigned mode = cs_load_acq(&cs_mode);
    if (mode == CS_MODE_COLD) cs_activate(), mode = cs_load_acq(&cs_mode); /* one that is under way may have looked already */
    if (mode == CS_MODE_PASS && cs_activate_for_hooks()) mode = cs_load_acq(&cs_mode);
    return cs_mode_steer(CS_MODE_HOOKS) || mode == CS_MODE_COLD; /* no driver is loaded yet: the first call looks */
}

/* A library with a hook is not unloaded any more: the hook may be called, or be running, when the program closes it. The program itself has no name, and stays. */
static void pin_module_of(custream_hook_fn *function)
{
    CS_KEEP_ERRNO;
    struct cs_module module;
    if (!cs_module_of((const void *)function, &module) || !*module.name) return;
    if (!dlopen(module.name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) dlerror();
}

static bool link_unhook(cs_u32 number, bool *running)
{
    if (!cs_hook_remove(number, running)) return false;
    cs_mode_hook_gone();
    return true;
}

static status link_hook(custream_hook_kind_t kind, custream_hook_fn *function, void *arg, cs_u32 *number)
{
    bool running;
    pin_module_of(function);
    if (!(*number = cs_hook_add(kind, function, arg))) return CUSTREAM_NO_MEMORY;
    if (steer_from_now_on()) return CUSTREAM_SUCCESS;
    link_unhook(*number, &running);
    return CUSTREAM_NOT_SUPPORTED;
}

/* --- annotations --- */

static struct cs_annotation annotation(const char *text) { return (struct cs_annotation){.text = cs_name_add_guest(text)}; }

static int link_push(const char *text)
{
    if (!cs_annotate_init()) return -1;
    struct cs_annotation what = annotation(text);
    return cs_annotate_push(&what);
}
static int link_pop(void) { return cs_annotate_init() ? cs_annotate_pop(0) : -1; }

static void link_mark(const char *text)
{
    struct cs_annotation what = annotation(text);
    if (cs_annotate_init()) cs_annotate_mark(&what);
}

static status link_record(bool on)
{
    const char *why = NULL;
    if (!(cs_load_acq(&cs_mode) & CS_MODE_WATCH)) return CUSTREAM_NOT_SUPPORTED;
    return cs_window_say(on, &why) || !on ? CUSTREAM_SUCCESS : CUSTREAM_NOT_SUPPORTED;
}

static status link_flush(void)
{
    enum { GPU_MS = 2000 };
    if (!(cs_load_acq(&cs_mode) & CS_MODE_WATCH) || !*cs_output_path()) return CUSTREAM_NOT_SUPPORTED;
    cs_gpu_flush(GPU_MS);
    return cs_writer_bring() ? CUSTREAM_SUCCESS : CUSTREAM_NOT_READY;
}

static const struct api_link table = {
    .size = sizeof table, .version = API_LINK_VERSION,
    .stream = link_stream, .event = link_event, .stream_ended = link_stream_ended, .event_ended = link_event_ended,
    .requested = link_requested, .named = link_named, .history = link_history,
    .hook = link_hook, .unhook = link_unhook, .in_hook = cs_hook_inside, .stays = cs_hooks_stay,
    .push = link_push, .pop = link_pop, .mark = link_mark, .record = link_record, .flush = link_flush,
};
const struct api_link *const api_link = &table;

const struct api_link *libcustream_link(void) { return api_link; }
