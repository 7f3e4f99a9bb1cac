/*
 * Calls that went into a graph: they make no work of their own, and no work may be awaited for them.
 *
 * A capture begins and ends by calls on one stream; others join it when they wait for an event that was recorded in it, and are part of it to its end.
 * Members are kept for a while: a thread may have been in a call when another ended the capture, and its record comes behind the end.
 */
#include "shim/match/state.h"

static struct cs_captures *const state = &cs_match.captures;

/* A capture goes with the stream on which it began, and no call ends it then. */
static bool is_gone(cs_ref origin, cs_u64 ticks)
{
    const struct cs_stream *stream = cs_pool_get(&cs_streams, origin);
    const cs_u64 ended = stream ? cs_load_acq(&stream->ended) : 0;
    return !stream || (ended && ticks >= ended);
}

static bool covers(const struct cs_capture_member *m, cs_u64 ticks)
{
    return ticks >= m->from && ticks < m->until && !(m->until == UINT64_MAX && is_gone(m->origin, ticks));
}

/* By its number, while it is kept. */
static struct cs_capture_member *member_of(cs_u64 number)
{
    return number && number + CS_MEMBERS > state->ever ? &cs_match.table.members[(number - 1) % CS_MEMBERS] : NULL;
}

/* How many places are in use. */
static cs_u32 member_count(void) { return state->ever < CS_MEMBERS ? (cs_u32)state->ever : CS_MEMBERS; }

static const struct cs_capture_member *member_at(cs_ref stream, const struct cs_match_lane *lane, cs_u64 ticks)
{
    const struct cs_capture_member *m;
    if (!lane || !(lane->capturing || ticks < lane->captured_until)) return NULL;
    for (cs_u64 number = lane->capture; (m = member_of(number)) && m->stream == stream; number = m->before)
        if (covers(m, ticks)) return m;
    return NULL;
}

static struct cs_match_lane *lane_of(cs_ref ref)
{
    const struct cs_stream *stream = cs_pool_get(&cs_streams, ref);
    return stream ? cs_match_lane_of(stream) : NULL;
}

/* It is open no more: it has ended, or its place is wanted. */
static void member_closes(const struct cs_capture_member *m)
{
    const struct cs_stream *stream = cs_pool_get(&cs_streams, m->stream);
    struct cs_match_lane *lane = stream ? cs_match_lane_made(stream) : NULL;
    if (m->until != UINT64_MAX) return;
    state->open--;
    if (lane && lane->capturing) lane->capturing--;
}

static struct cs_capture_member *member_add(cs_ref stream, cs_ref origin, cs_u64 from, cs_u64 until)
{
    struct cs_match_lane *lane = lane_of(stream);
    struct cs_capture_member *m = &cs_match.table.members[state->ever % CS_MEMBERS];
    if (m->stream) {
        if (m->from > state->forgotten) state->forgotten = m->from;
        if (m->until == UINT64_MAX && m->from > state->muted) state->muted = m->from; /* nobody knows at the end that it was part of the capture */
        member_closes(m);
    }
    *m = (struct cs_capture_member){.stream = stream, .origin = origin, .from = from, .until = until, .before = lane ? lane->capture : 0};
    state->ever++;
    if (lane) lane->capture = state->ever;
    if (until != UINT64_MAX) return m;
    state->open++;
    if (lane) lane->capturing++;
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
    return member_at(cs_load(&stream->object.ref), cs_match_lane_made(stream), ticks);
}

void cs_match_capture_joined(struct cs_stream *stream, cs_u64 ticks, const cs_u64 *cause)
{
    cs_ref from = (cs_ref)(cause[1] >> 32);
    struct cs_stream *recorded = cs_pool_get(&cs_streams, from);
    if (!recorded || cs_captures(stream, ticks)) return;
    const struct cs_capture_member *m = member_at(from, cs_match_lane_made(recorded), *cause);
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
    struct cs_match_lane *lane = lane_of(m->stream);
    member_closes(m);
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
    for (cs_u32 i = 0; i < member_count(); i++) {
        struct cs_capture_member *m = &cs_match.table.members[i];
        if (m->origin != origin || m->until != UINT64_MAX) continue;
        known = known || m->stream == origin;
        member_ends(m, ended);
    }
    if (!known) member_ends(member_add(origin, origin, began, ended), ended);
    if (known && cs_match.sink->open_since() <= began && state->muted < began) return;
    /* Some of it was not recorded, and so nobody knows which streams had joined it. */
    for (cs_u32 i = 1; i <= cs_match_lanes_high(); i++)
        if (cs_lane_get(i)) cs_queue_unsure(cs_lane_get(i), began, ended);
}

cs_u32 cs_capture_members(cs_ref origin, cs_u64 ended, cs_ref *streams, cs_u64 *from)
{
    cs_u32 found = 0;
    for (cs_u32 i = 0; i < member_count(); i++) {
        const struct cs_capture_member *m = &cs_match.table.members[i];
        if (m->origin != origin || m->until != ended) continue;
        streams[found] = m->stream;
        from[found++] = m->from;
    }
    return found;
}

void cs_match_captures_resume(cs_u64 closed)
{
    for (cs_u32 i = 0; i < member_count(); i++) {
        struct cs_capture_member *m = &cs_match.table.members[i];
        if (m->until != UINT64_MAX) continue;
        struct cs_stream *origin = cs_pool_get(&cs_streams, m->origin);
        cs_u64 began = origin && !cs_load(&origin->ended) ? cs_load(&origin->capture_began) : 0;
        if (began && began <= m->from) continue; /* it goes on */
        member_ends(m, closed);
    }
}
