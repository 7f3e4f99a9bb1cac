/*
 * The API without the recorder. Opened in a process that has the preload library all the same, hooks and annotations are that one's business: its functions
 * are found in the global scope, where they stand in front of ours.
 */
#define _GNU_SOURCE
#include "shim/api/link.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>

/* The preload library's function; NULL where there is none. */
#define THEIRS(name) ((__typeof__(&name))theirs(#name, (void *)(uintptr_t)&name))
static void *theirs(const char *name, void *own)
{
    Dl_info where;
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found || found == own || !dladdr(found, &where) || !where.dli_fname) return NULL;
    return strstr(where.dli_fname, "libcustream_shim") ? found : NULL; /* else it is a program's own entry for ours */
}

/* Its object of a stream that this library has just met; NULL. */
static custream_t their_object(void *handle)
{
    custream_t stream = NULL;
    __typeof__(&custream_wrap) wrap = THEIRS(custream_wrap);
    return wrap && wrap(&stream, handle, -1, NULL, NULL) == CUSTREAM_SUCCESS ? stream : NULL;
}

cs_u64 api_link_stream(void *handle) { return (void)handle, 0; }
cs_u64 api_link_event(void *handle) { return (void)handle, 0; }
bool api_link_stream_ended(cs_u64 link) { return (void)link, false; }
bool api_link_event_ended(cs_u64 link) { return (void)link, false; }

bool api_link_requested(void *handle, cs_u64 link, int *priority)
{
    custream_t stream = their_object(handle);
    (void)link;
    if (!stream) return false;
    bool known = THEIRS(custream_get_requested_priority)(stream, priority) == CUSTREAM_SUCCESS;
    THEIRS(custream_release)(stream);
    return known;
}

void api_link_named(void *handle, const char *name)
{
    custream_t stream = their_object(handle);
    if (!stream) return;
    THEIRS(custream_set_name)(stream, name);
    THEIRS(custream_release)(stream);
}

bool api_link_history(void *handle, cs_u64 link, custream_history_t *history)
{
    custream_t stream = their_object(handle);
    (void)link;
    if (!stream) return false;
    bool known = THEIRS(custream_history)(stream, history) == CUSTREAM_SUCCESS;
    THEIRS(custream_release)(stream);
    return known;
}

custream_status_t api_link_hook(custream_hook_kind_t kind, custream_hook_fn *function, void *arg, cs_u32 *number)
{
    custream_hook_t hook;
    __typeof__(&custream_register_hook) add = THEIRS(custream_register_hook);
    custream_status_t result = add ? add(kind, function, arg, &hook) : CUSTREAM_NOT_SUPPORTED;
    if (result == CUSTREAM_SUCCESS) *number = (cs_u32)(uintptr_t)hook;
    return result;
}

bool api_link_unhook(cs_u32 number, bool *running)
{
    __typeof__(&custream_unregister_hook) remove = THEIRS(custream_unregister_hook);
    custream_status_t result = remove ? remove((custream_hook_t)(uintptr_t)number) : CUSTREAM_INVALID_HANDLE;
    *running = result == CUSTREAM_NOT_READY;
    return result != CUSTREAM_INVALID_HANDLE;
}

/* Its hooks are the only ones, and what waits is refused there before anything is looked at: also a wait for no device. */
bool api_link_in_hook(void)
{
    __typeof__(&custream_device_synchronize) wait = THEIRS(custream_device_synchronize);
    return wait && wait(INT_MIN) == CUSTREAM_NOT_SUPPORTED;
}

void api_link_stays(bool stays) { (void)stays; }

static CS_TLS int depth; /* of ranges: a pop without its push is the caller's fault here too */

int api_link_push(const char *text)
{
    __typeof__(&custream_trace_range_push) push = THEIRS(custream_trace_range_push);
    return push ? push(text) == CUSTREAM_SUCCESS ? 0 : -1 : depth++;
}

int api_link_pop(void)
{
    __typeof__(&custream_trace_range_pop) pop = THEIRS(custream_trace_range_pop);
    if (pop) return pop() == CUSTREAM_SUCCESS ? 0 : -1;
    return depth ? --depth : -1;
}

void api_link_mark(const char *text)
{
    __typeof__(&custream_trace_mark) mark = THEIRS(custream_trace_mark);
    if (mark) mark(text);
}

custream_status_t api_link_record(bool on)
{
    __typeof__(&custream_trace_start) start = on ? THEIRS(custream_trace_start) : THEIRS(custream_trace_stop);
    return start ? start() : CUSTREAM_NOT_SUPPORTED;
}

custream_status_t api_link_flush(void)
{
    __typeof__(&custream_trace_flush) flush = THEIRS(custream_trace_flush);
    return flush ? flush() : CUSTREAM_NOT_SUPPORTED;
}
