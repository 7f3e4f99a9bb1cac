/*
 * Calls that went into a graph: they make no work of their own, and no work may be awaited for them.
 *
 * A capture begins and ends by calls on one stream; others join it when they wait for an event that was recorded in it, and are part of it to its end.
 * Rings are read one after the other, so that a wait may be met after the end of the capture that it belongs to: members are kept for a while.
 */
#include <string.h>

#include "shim/trace/gpu.h"

enum { MEMBERS = CS_CAPTURE_MEMBERS, ROUNDS = 3 };

static struct member {
    cs_ref stream, origin;
    cs_u64 from, until; /* ticks; UINT64_MAX while it goes on */
    int rounds;         /* that its calls have been looked for since it ended */
} members[MEMBERS];
static cs_u32 newest, open_members;

void cs_gpu_captures_begin(void)
{
    if (newest) memset(members, 0, sizeof members);
    newest = open_members = 0;
}

static bool covers(const struct member *m, cs_ref stream, cs_u64 ticks) { return m->stream == stream && m->stream && ticks >= m->from && ticks < m->until; }

static const struct member *member_at(cs_ref stream, cs_u64 ticks)
{
    for (cs_u32 i = 0; i < MEMBERS; i++)
        if (covers(&members[i], stream, ticks)) return &members[i];
    return NULL;
}

static void member_add(cs_ref stream, cs_ref origin, cs_u64 from, cs_u64 until)
{
    struct member *m = &members[newest++ % MEMBERS];
    if (m->stream && m->until == UINT64_MAX) open_members--;
    *m = (struct member){.stream = stream, .origin = origin, .from = from, .until = until};
    open_members += until == UINT64_MAX;
}

/* By the program's own threads, which may be ahead of the records: of a capture that goes on. */
static cs_u64 began_of(const struct cs_stream *stream)
{
    cs_u64 began = cs_load(&stream->capture_began);
    return began ? began : UINT64_MAX;
}

bool cs_gpu_captures(const struct cs_stream *stream, cs_u64 ticks)
{
    if (ticks >= began_of(stream)) return true;
    return open_members && member_at(cs_load(&stream->object.ref), ticks);
}

void cs_gpu_capture_joined(struct cs_stream *stream, cs_u64 ticks, const cs_u64 *cause)
{
    cs_ref from = (cs_ref)(cause[1] >> 32);
    struct cs_stream *recorded = cs_pool_get(&cs_streams, from);
    if (!recorded || recorded == stream || cs_gpu_captures(stream, ticks)) return;
    const struct member *m = member_at(from, *cause);
    if (m && ticks < m->until) member_add(cs_load(&stream->object.ref), m->origin, ticks, m->until);
    else if (*cause >= began_of(recorded)) member_add(cs_load(&stream->object.ref), from, ticks, UINT64_MAX);
}

void cs_gpu_capture_began(struct cs_stream *stream, cs_u64 began)
{
    cs_ref origin = cs_load(&stream->object.ref);
    member_add(origin, origin, began, UINT64_MAX);
}

void cs_gpu_capture_ended(struct cs_stream *stream, cs_u64 began, cs_u64 ended)
{
    cs_ref origin = cs_load(&stream->object.ref);
    bool known = false;
    for (cs_u32 i = 0; i < MEMBERS; i++) {
        if (!members[i].stream || members[i].origin != origin || members[i].until != UINT64_MAX) continue;
        members[i].until = ended;
        known = known || members[i].stream == origin;
        open_members--;
    }
    if (!known) member_add(origin, origin, began, ended);
}

cs_u32 cs_gpu_capture_members(cs_ref origin, cs_u64 ended, cs_ref *streams, cs_u64 *from)
{
    cs_u32 found = 0;
    for (cs_u32 i = 0; i < MEMBERS; i++) {
        if (members[i].origin != origin || members[i].until != ended || !members[i].stream) continue;
        streams[found] = members[i].stream;
        from[found++] = members[i].from;
    }
    return found;
}

void cs_gpu_captures_resume(cs_u64 closed)
{
    for (cs_u32 i = 0; i < MEMBERS; i++) {
        struct member *m = &members[i];
        if (!m->stream || m->until != UINT64_MAX) continue;
        struct cs_stream *origin = cs_pool_get(&cs_streams, m->origin);
        cs_u64 began = origin && !cs_load(&origin->ended) ? cs_load(&origin->capture_began) : 0;
        if (began && began <= m->from) continue; /* it goes on */
        m->until = closed;
        open_members--;
    }
}

void cs_gpu_captures_settle(void)
{
    for (cs_u32 i = 0; i < MEMBERS; i++) {
        struct member *m = &members[i];
        if (!m->stream || m->until == UINT64_MAX || m->rounds++ >= ROUNDS) continue;
        struct cs_stream *stream = cs_pool_get(&cs_streams, m->stream);
        struct cs_gpu_lane *lane = stream ? cs_gpu_lane_get(stream->gpu_lane) : NULL;
        if (lane) cs_gpu_queue_remove(lane, m->from, m->until);
    }
}
