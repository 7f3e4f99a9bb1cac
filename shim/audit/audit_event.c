/*
 * What events stand for, as the audit sees it: the clocks of the stream at the event's last record.
 *
 * Kept for the last record of each event, by the event's place in its pool. Clocks are as long as there were lanes; they come from one stretch of memory
 * in sizes of powers of two, and a record that needs a longer one gives its old one back. Where that memory is used up an event is forgotten.
 */
#include <string.h>

#include "shim/audit/audit_model.h"
#include "shim/base/memory.h"

enum { EVENTS = 1 << 17, CLASSES = 12 };
#define MEMORY ((size_t)128 << 20)

static struct cs_audit_event *events;
static char *whole, *memory, *memory_end;
CS_TABLE(AUDIT, events, EVENTS);
CS_TABLE(AUDIT, whole, MEMORY);
static cs_u64 *spare[CLASSES]; /* lists: the first word leads to the next */

void cs_audit_events_begin(void)
{
    cs_memory_forget(events, EVENTS * sizeof *events);
    cs_memory_forget(whole, MEMORY);
    memory = whole;
    memory_end = whole + MEMORY;
    memset(spare, 0, sizeof spare);
}

/* Both clocks of n components. */
static size_t bytes_of(cs_u32 class) { return (size_t)128 << class; }

static cs_u64 *clocks_new(cs_u32 class)
{
    cs_u64 *at = spare[class];
    if (at) {
        memcpy(&spare[class], at, sizeof *spare);
        return at;
    }
    if ((size_t)(memory_end - memory) < bytes_of(class)) return NULL;
    at = (cs_u64 *)(void *)memory;
    memory += bytes_of(class);
    return at;
}

static void clocks_free(struct cs_audit_event *event)
{
    if (!event->clock[0]) return;
    memcpy(event->clock[0], &spare[event->class], sizeof *spare);
    spare[event->class] = event->clock[0];
    event->clock[0] = event->clock[1] = NULL;
}

struct cs_audit_event *cs_audit_event_make(cs_ref ref, cs_u32 n)
{
    cs_u32 index = cs_ref_index(ref);
    if (!events || !ref || index >= EVENTS) return NULL;
    struct cs_audit_event *event = &events[index];
    cs_u32 class = 0;
    while (bytes_of(class) < 2 * n * sizeof(cs_u64)) class++;
    if (event->class != class || !event->clock[0]) {
        clocks_free(event);
        event->class = class;
        event->clock[0] = clocks_new(class);
    }
    event->ref = event->clock[0] ? ref : 0;
    event->n = n;
    event->capture = event->work = 0;
    event->more = false;
    if (!event->clock[0]) return NULL;
    event->clock[1] = event->clock[0] + n;
    memset(event->clock[0], 0, 2 * n * sizeof(cs_u64));
    return event;
}

const struct cs_audit_event *cs_audit_event_get(cs_ref ref)
{
    cs_u32 index = cs_ref_index(ref);
    return events && ref && index < EVENTS && events[index].ref == ref ? &events[index] : NULL;
}
