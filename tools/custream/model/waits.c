#include "tools/custream/model/waits.h"

#include "tools/custream/model/room.h"
#include "tools/custream/trace/numbers.h"

bool call_waits(const struct call *call)
{
    return call_kind(call) == CS_KIND_SYNC || (call_kind(call) == CS_KIND_COPY && call_how(call, CS_HOW_BLOCKS));
}

/* The legacy default stream waits for others, so who waits for it may wait for any of them. */
static uint32_t waited_for(const struct run *run, const struct call *call, const struct numbers *recorded)
{
    if (call_kind(call) != CS_KIND_SYNC) return NONE;
    const uint32_t stream = call->what ? numbers_get(recorded, call->what, NONE) : call->stream;
    return stream != NONE && run->streams[stream].origin == ORIGIN_LEGACY ? NONE : stream;
}

struct host_wait *host_waits_make(const struct run *run)
{
    struct host_wait *waits = room_for(run->call_count, sizeof *waits);
    struct host_wait *last = room_for(run->thread_count, sizeof *last); /* by thread */
    struct numbers recorded = {0};                                      /* the stream of its last record, by event */
    for (size_t i = 0; i < run->thread_count; i++) last[i].call = NONE;
    for (uint32_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        waits[i] = last[call->thread];
        if (call->result) continue;
        if (call_how(call, CS_HOW_RECORDS) && call_kind(call) == CS_KIND_EVENT) *numbers_at(&recorded, call->what, NONE) = call->external ? NONE : call->stream;
        if (call_waits(call)) last[call->thread] = (struct host_wait){i, waited_for(run, call, &recorded)};
    }
    numbers_free(&recorded);
    free(last);
    return waits;
}
