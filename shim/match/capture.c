/*
 * Calls that went into a graph: they make no work of their own, and no work may be awaited for them.
 *
 * A capture begins and ends by calls on one stream; others join it when they wait for an event that was recorded in it, and are part of it to its end.
 * Members are kept for a while: a thread may have been in a call when another ended the capture, and its record comes behind the end.
 */
#include "shim/match/state.h"

static struct cs_captures *const state = &cs_match.captures;

static bool covers(const struct cs_capture_member *m, cs_ref stream, cs_u64 ticks)
{
    return m->stream == stream && m->stream && ticks >= m->from && ticks < m->until;
}

static const struct cs_capture_member *member_at(cs_ref stream, cs_u64 ticks)
{
    for (cs_u32 i = 0; i < CS_MEMBERS; i++)
        if (covers(&state->members[i], stream, ticks)) return &state->members[i];
    return NULL;
}

static struct cs_capture_member *member_add(cs_ref stream, cs_ref origin, cs_u64 from, cs_u64 until)
{
    struct cs_capture_member *m = &state->members[state->newest++ % CS_MEMBERS];
    if (m->stream && m->until == UINT64_MAX) state->open--;
    *m = (struct cs_capture_member){.stream = stream, .origin = origin, .from = from, .until = until};
    state->open += until == UINT64_MAX;
    return m;
}

/* By the program's own threads, which may be ahead of the records: of a capture that goes on. */
static cs_u64 began_of(const struct cs_stream *stream)
{
    cs_u64 began = cs_load(&stream->capture_began);
    return began ? began : UINT64_MAX;
}

bool cs_captures(const struct cs_stream *stream, cs_u64 ticks)
{
    if (ticks >= began_of(stream)) return true;
    if (!state->open && ticks >= state->until) return false;
    const struct cs_match_lane *lane = cs_match_lane_made(stream);
    return (state->open || (lane && ticks < lane->captured_until)) && member_at(cs_load(&stream->object.ref), ticks);
}

void cs_match_capture_joined(struct cs_stream *stream, cs_u64 ticks, const cs_u64 *cause)
{
    cs_ref from = (cs_ref)(cause[1] >> 32);
    struct cs_stream *recorded = cs_pool_get(&cs_streams, from);
    if (!recorded || cs_captures(stream, ticks)) return;
    const struct cs_capture_member *m = member_at(from, *cause);
    if (m) member_add(cs_load(&stream->object.ref), m->origin, ticks, m->until);
    else if (*cause >= began_of(recorded)) member_add(cs_load(&stream->object.ref), from, ticks, UINT64_MAX);
}

void cs_match_capture_began(struct cs_stream *stream, cs_u64 began)
{
    cs_ref origin = cs_load(&stream->object.ref);
    member_add(origin, origin, began, UINT64_MAX);
}

/* What has been read of its calls leaves its lane: of a capture whose begin is not recorded. */
static void member_ends(struct cs_capture_member *m, cs_u64 until)
{
    const struct cs_stream *stream = cs_pool_get(&cs_streams, m->stream);
    struct cs_match_lane *lane = stream ? cs_match_lane_of(stream) : NULL;
    state->open -= m->until == UINT64_MAX;
    m->until = until;
    if (!lane) return;
    if (lane->captured_until < until) lane->captured_until = until;
    if (state->until < until) state->until = until;
    cs_queue_remove(lane, m->from, until);
}

void cs_match_capture_ended(struct cs_stream *stream, cs_u64 began, cs_u64 ended)
{
    cs_ref origin = cs_load(&stream->object.ref);
    bool known = false;
    for (cs_u32 i = 0; i < CS_MEMBERS; i++) {
        if (!state->members[i].stream || state->members[i].origin != origin || state->members[i].until != UINT64_MAX) continue;
        known = known || state->members[i].stream == origin;
        member_ends(&state->members[i], ended);
    }
    if (!known) member_ends(member_add(origin, origin, began, ended), ended);
}

cs_u32 cs_capture_members(cs_ref origin, cs_u64 ended, cs_ref *streams, cs_u64 *from)
{
    cs_u32 found = 0;
    for (cs_u32 i = 0; i < CS_MEMBERS; i++) {
        if (state->members[i].origin != origin || state->members[i].until != ended || !state->members[i].stream) continue;
        streams[found] = state->members[i].stream;
        from[found++] = state->members[i].from;
    }
    return found;
}

void cs_match_captures_resume(cs_u64 closed)
{
    for (cs_u32 i = 0; i < CS_MEMBERS; i++) {
        struct cs_capture_member *m = &state->members[i];
        if (!m->stream || m->until != UINT64_MAX) continue;
        struct cs_stream *origin = cs_pool_get(&cs_streams, m->origin);
        cs_u64 began = origin && !cs_load(&origin->ended) ? cs_load(&origin->capture_began) : 0;
        if (began && began <= m->from) continue; /* it goes on */
        member_ends(m, closed);
    }
}
