/*
 * What the backend can't bring for a while: whoever finds out says so, and the writer learns from when to when and why. Neither waits for the other.
 */
#include "shim/base/clock.h"
#include "shim/base/no_room.h"
#include "shim/gpu/backend.h"

enum { OVER = 64 };

const char cs_gpu_ended[] = "the process was ending";

static struct {
    _Atomic cs_u64 since;
    const char *_Atomic why; /* NULL: it is not missing */
} now[CS_GPU_PARTS];

/* Stretches that are over, until the writer has had them; where it comes too late the oldest are gone, and counted. */
static struct over {
    _Atomic cs_u64 number; /* of all that there were, from 1; 0: being written */
    _Atomic int part;
    _Atomic cs_u64 from, until;
    const char *_Atomic why;
} over[OVER];
static _Atomic cs_u64 over_count;
static cs_u64 next_over = 1; /* the writer's */

static void is_over(enum cs_gpu_part part, cs_u64 from, cs_u64 until, const char *why)
{
    const cs_u64 number = cs_add(&over_count, 1) + 1;
    struct over *o = &over[number % OVER];
    cs_store(&o->number, 0);
    atomic_thread_fence(memory_order_release);
    cs_store(&o->part, (int)part);
    cs_store(&o->from, from);
    cs_store(&o->until, until);
    cs_store(&o->why, why);
    cs_store_rel(&o->number, number);
}

bool cs_gpu_change_missing(enum cs_gpu_part part, const char *was, const char *why)
{
    if (cs_load_acq(&now[part].why) != was) return false;
    const cs_u64 ticks = cs_ticks(), since = cs_load(&now[part].since);
    if (why) cs_store(&now[part].since, ticks);
    if (!atomic_compare_exchange_strong(&now[part].why, &was, why)) return false;
    if (was && was != cs_gpu_ended) is_over(part, since, ticks, was);
    return true;
}

void cs_gpu_set_missing(enum cs_gpu_part part, const char *why)
{
    while (!cs_gpu_change_missing(part, cs_load_acq(&now[part].why), why)) continue;
}

const char *cs_gpu_missing(enum cs_gpu_part part, cs_u64 *since)
{
    const char *why = cs_load_acq(&now[part].why);
    *since = cs_load(&now[part].since);
    return why;
}

bool cs_gpu_missing_over(struct cs_gpu_gap *gap)
{
    const cs_u64 count = cs_load(&over_count);
    if (count >= next_over + OVER) {
        cs_no_room(CS_NO_ROOM_FOR_GAPS, count + 1 - OVER - next_over);
        next_over = count + 1 - OVER;
    }
    const struct over *o = &over[next_over % OVER];
    if (next_over > count || cs_load_acq(&o->number) != next_over) return false; /* that one is being written: it is there in the next round */
    *gap = (struct cs_gpu_gap){(enum cs_gpu_part)cs_load(&o->part), cs_load(&o->from), cs_load(&o->until), cs_load(&o->why)};
    atomic_thread_fence(memory_order_acquire);
    const bool kept = cs_load(&o->number) == next_over++;
    if (!kept) cs_no_room(CS_NO_ROOM_FOR_GAPS, 1);
    return kept;
}

void cs_gpu_missing_after_fork_in_child(void)
{
    for (int part = 0; part < CS_GPU_PARTS; part++) cs_store(&now[part].why, NULL);
    next_over = cs_load(&over_count) + 1;
}
