/* The API without the recorder: nothing is known. In a process that has the preload library all the same, hooks and annotations are that one's business. */
#include "shim/api/link.h"

#include <string.h>

static cs_u64 no_object(void *handle) { return (void)handle, 0; }
static bool no_end(cs_u64 link) { return (void)link, false; }
static bool no_request(void *handle, cs_u64 link, int *priority) { return (void)handle, (void)link, (void)priority, false; }
static void no_name(void *handle, const char *name) { (void)handle, (void)name; }
static bool no_history(void *handle, cs_u64 link, custream_history_t *history) { return (void)handle, (void)link, (void)history, false; }
static bool no_unhook(cs_u32 number, bool *running) { return (void)number, (void)running, false; }
static bool no_hook_runs(void) { return false; }
static void no_stay(bool stays) { (void)stays; }
static void no_mark(const char *text) { (void)text; }
static status no_record(bool on) { return (void)on, CUSTREAM_NOT_SUPPORTED; }
static status no_flush(void) { return CUSTREAM_NOT_SUPPORTED; }

static status no_hook(custream_hook_kind_t kind, custream_hook_fn *function, void *arg, cs_u32 *number)
{
    return (void)kind, (void)function, (void)arg, (void)number, CUSTREAM_NOT_SUPPORTED;
}

static CS_TLS int depth; /* of ranges: a pop without its push is the caller's fault here too */
static int push(const char *text) { return (void)text, depth++; }
static int pop(void) { return depth ? --depth : -1; }

static struct api_link table = {
    .size = sizeof table, .version = API_LINK_VERSION, .stream = no_object, .event = no_object, .stream_ended = no_end, .event_ended = no_end,
    .requested = no_request, .named = no_name, .history = no_history, .hook = no_hook, .unhook = no_unhook, .in_hook = no_hook_runs, .stays = no_stay,
    .push = push, .pop = pop, .mark = no_mark, .record = no_record, .flush = no_flush,
};
const struct api_link *const api_link = &table;

#pragma weak libcustream_link /* the loader finds it in the preload library, or nowhere */

__attribute__((constructor)) static void at_start(void)
{
    const struct api_link *theirs = libcustream_link ? libcustream_link() : NULL;
    const size_t from = offsetof(struct api_link, requested);
    if (!theirs || theirs->version != API_LINK_VERSION || theirs->size <= from) return;
    const size_t both = theirs->size < sizeof table ? theirs->size : sizeof table;
    memcpy((char *)&table + from, (const char *)theirs + from, both - from);
}
