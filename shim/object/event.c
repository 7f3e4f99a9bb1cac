#include "shim/object/event.h"

#include "shim/base/clock.h"
#include "shim/object/creator.h"

enum { EVENTS = 1 << 17 };

struct cs_pool cs_events;
_Atomic cs_u64 cs_events_known_since;
CS_READ_MOSTLY struct cs_map cs_event_handles;
static _Atomic cs_u32 event_count;

bool cs_events_init(void)
{
    cs_store(&event_count, 0);
    return cs_pool_init(&cs_events, sizeof(struct cs_event), EVENTS) && cs_map_init(&cs_event_handles, 19);
}

static cs_ref enter(struct cs_thread *thread, CUevent handle, unsigned flags, cs_u16 call, cs_name library, cs_u64 ticks)
{
    struct cs_event *event = cs_pool_new(&cs_events);
    struct cs_map_slot *slot = event ? cs_map_slot(&cs_event_handles, (uintptr_t)handle, true) : NULL;
    if (!slot) {
        if (event) cs_pool_release(&cs_events, &event->object), cs_add(&cs_events.refused, 1);
        return 0;
    }
    cs_store(&event->handle, (uintptr_t)handle);
    cs_store_rel(&event->context, cs_context_current(thread));
    event->flags = flags;
    event->number = cs_add(&event_count, 1) + 1;
    event->call = call;
    event->library = library;
    event->created = ticks;
    cs_ref ref = cs_load(&event->object.ref);
    cs_u64 before = atomic_exchange(&slot->value, ref);
    if (!(before & CS_MAP_DEAD)) { /* the driver reuses the handle of an event whose end we did not see */
        struct cs_event *gone = cs_pool_get(&cs_events, (cs_ref)before);
        if (gone) cs_store(&gone->ended, ticks), cs_pool_end(&cs_events, &gone->object);
    }
    return ref;
}

cs_ref cs_event_created(struct cs_thread *thread, CUevent handle, unsigned flags, cs_u16 call, const void *caller, cs_u64 ticks)
{
    return enter(thread, handle, flags, call, cs_creator_of(caller), ticks);
}

/* The object that a dead handle stood for, as in stream.c. */
static struct cs_event *dead_of(CUevent handle, cs_u64 value)
{
    struct cs_event *event = cs_pool_get(&cs_events, (cs_ref)value);
    return event && cs_load(&event->handle) == (uintptr_t)handle ? event : NULL;
}

cs_ref cs_event_of(struct cs_thread *thread, CUevent handle, bool accepted, cs_u64 begin)
{
    if (!handle) return 0;
    cs_u64 value = cs_map_get(&cs_event_handles, (uintptr_t)handle);
    if (CS_LIKELY(value && !(value & CS_MAP_DEAD))) return (cs_ref)value;
    if (value) {
        struct cs_event *dead = dead_of(handle, value);
        cs_u64 ended = dead ? cs_load_acq(&dead->ended) : 0;
        if (dead && (!accepted || !ended || begin <= ended)) return (cs_ref)value;
        if (!dead && begin <= cs_load_acq(&cs_events.released)) return 0;
    }
    cs_ref ref = accepted ? enter(thread, handle, 0, 0, 0, begin) : 0;
    if (accepted && !ref) atomic_fetch_sub(&cs_events.refused, 1); /* counted when it was created, or never told of; not at each use */
    return ref;
}

cs_ref cs_event_destroying(CUevent handle)
{
    struct cs_map_slot *slot = cs_map_slot(&cs_event_handles, (uintptr_t)handle, false);
    cs_u64 value = slot ? cs_load_acq(&slot->value) : 0;
    while (value && !(value & CS_MAP_DEAD) && !atomic_compare_exchange_weak(&slot->value, &value, value | CS_MAP_DEAD)) {}
    return dead_of(handle, value) ? (cs_ref)value : 0;
}

void cs_event_destroyed(cs_ref ref, bool done, cs_u64 ticks)
{
    struct cs_event *event = cs_pool_get(&cs_events, ref);
    if (!event || cs_load(&event->object.ended)) return;
    struct cs_map_slot *slot = cs_map_slot(&cs_event_handles, event->handle, false);
    cs_u64 alive = ref, dead = ref | CS_MAP_DEAD;
    if (done) {
        cs_store_rel(&event->ended, ticks);
        cs_pool_end(&cs_events, &event->object);
    } else if (!slot || !atomic_compare_exchange_strong(&slot->value, &dead, alive) || !atomic_load(&event->object.ended)) {
        return;
    }
    dead = ref | CS_MAP_DEAD; /* of two destroys at once the refused one had taken the mark off */
    if (slot) atomic_compare_exchange_strong(&slot->value, &alive, dead);
}

void cs_events_end_with(cs_ref context)
{
    cs_u32 high = cs_load_acq(&cs_events.high);
    cs_u64 now = cs_ticks();
    for (cs_u32 i = 0; i < high && i < cs_events.capacity; i++) {
        struct cs_event *event = (struct cs_event *)cs_pool_slot(&cs_events, i);
        cs_ref ref = cs_load_acq(&event->object.ref);
        if (!ref || cs_load_acq(&event->context) != context || cs_load(&event->object.ended) || cs_load(&event->object.ref) != ref) continue;
        cs_event_destroying((CUevent)(uintptr_t)event->handle);
        cs_event_destroyed(ref, true, now);
    }
}

void cs_event_named(CUevent handle, cs_name name)
{
    struct cs_event *event = cs_pool_get(&cs_events, cs_event_find(handle));
    if (event) cs_store_rel(&event->name, name);
}

void cs_event_recorded(cs_ref ref, cs_u64 begin, cs_u32 tid, cs_ref stream)
{
    struct cs_event *event = cs_pool_get(&cs_events, ref);
    if (!event) return;
    cs_u32 sequence = cs_load(&event->sequence);
    if (sequence & 1 || !atomic_compare_exchange_strong(&event->sequence, &sequence, sequence + 1)) return;
    /* Each with release: who reads one of them then reads the odd number too. */
    cs_store_rel(&event->recorded_tid, tid);
    cs_store_rel(&event->recorded_stream, stream);
    cs_store_rel(&event->recorded, begin);
    cs_store_rel(&event->sequence, sequence + 2);
}

void cs_event_elsewhere(cs_ref ref)
{
    struct cs_event *event = cs_pool_get(&cs_events, ref);
    if (event) cs_store(&event->elsewhere, true);
}

struct cs_cause cs_event_cause(CUevent handle)
{
    cs_u64 value = handle ? cs_map_get(&cs_event_handles, (uintptr_t)handle) : 0;
    struct cs_event *event = cs_pool_get(&cs_events, (cs_ref)value);
    for (int tries = 0; event && tries < 8; tries++) {
        cs_u32 sequence = cs_load_acq(&event->sequence);
        if (sequence & 1) continue;
        struct cs_cause cause = {cs_load(&event->recorded), cs_load(&event->recorded_tid) | (cs_u64)cs_load(&event->recorded_stream) << 32};
        atomic_thread_fence(memory_order_acquire);
        if (cs_load(&event->sequence) != sequence) continue;
        if (cause.ticks < cs_load(&cs_events_known_since)) break;
        if (CS_UNLIKELY(cs_load(&event->elsewhere))) cause.ticks |= CS_CAUSE_UNSURE;
        return cause;
    }
    return (struct cs_cause){event && cs_load(&event->elsewhere) ? CS_CAUSE_UNSURE : 0, 0};
}
