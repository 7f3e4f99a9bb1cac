#include "tools/custream/model/replay_graph.h"

/* --- nodes and ties --- */

uint32_t node_add(struct making *m, enum node_kind kind, uint32_t subject)
{
    struct replay *r = m->replay;
    const uint32_t node = (uint32_t)r->node_count;
    array_add(r->nodes, r->node_count, r->node_capacity,
        (struct node){.subject = subject, .ties = (uint32_t)r->tie_count, .kind = kind});
    return node;
}

int64_t node_ended(const struct making *m, uint32_t number)
{
    const struct node *node = &m->replay->nodes[number];
    const struct run *run = m->run;
    switch (node->kind) {
    case NODE_CALL: return run->calls[node->subject].begin + time_unpack(node->takes);
    case NODE_RETURN: return run->calls[node->subject].end;
    case NODE_WORK: return run->works[node->subject].end;
    case NODE_HOST_FUNCTION: return run->callbacks[node->subject].end;
    default: return m->joins[node->subject];
    }
}

static uint32_t join_add(struct making *m)
{
    array_add(m->joins, m->join_count, m->join_capacity, INT64_MIN);
    return node_add(m, NODE_JOIN, (uint32_t)m->join_count - 1);
}

void tie_add(struct making *m, uint32_t from, enum tie_kind kind, int64_t delay)
{
    struct replay *r = m->replay;
    if (from == NONE) return;
    if (delay > INT32_MAX) delay = INT32_MAX;
    if (delay < INT32_MIN) delay = INT32_MIN;
    array_add(r->ties, r->tie_count, r->tie_capacity,
        (struct tie){from, (int32_t)delay, NONE, (uint32_t)r->node_count - 1, kind});
}

static void join_tie(struct making *m, uint32_t node, uint32_t from, enum tie_kind kind)
{
    int64_t *end = &m->joins[m->replay->nodes[node].subject];
    tie_add(m, from, kind, 0);
    if (from != NONE && node_ended(m, from) > *end) *end = node_ended(m, from);
}

uint32_t join_of(struct making *m, uint32_t a, uint32_t b, enum tie_kind kind)
{
    if (b == NONE || a == b) return a;
    if (a == NONE && kind == TIE_STREAM) return b;
    const uint32_t node = join_add(m);
    if (a != NONE) join_tie(m, node, a, TIE_STREAM);
    join_tie(m, node, b, kind);
    return node;
}

/* --- lanes --- */

struct lane *lane_get(struct making *m, uint32_t stream, uint32_t key)
{
    uint32_t at = m->lane_of[stream];
    while (at != NONE && m->lanes[at].key != key) at = m->lanes[at].next;
    if (at == NONE) {
        at = (uint32_t)m->lane_count;
        array_add(m->lanes, m->lane_count, m->lane_capacity,
            (struct lane){NONE, NONE, m->lane_of[stream], key, stream, NONE, true});
        m->lane_of[stream] = at;
    }
    return &m->lanes[at];
}

/* The lanes of a stream under SPLIT_COPIES: KEY_IN for copies to the device, KEY_OUT for copies
 * from it, KEY_WORK for the rest. Kernels wait for copies in, and copies out wait for kernels, as
 * in a program with two buffers. */
enum { KEY_WORK, KEY_IN, KEY_OUT };

uint32_t lane_key(const struct making *m, const struct call *call, const struct work *work)
{
    if (m->split == SPLIT_THREADS) return call->thread;
    if (m->split != SPLIT_COPIES || !work || work->kind != WORK_COPY) return KEY_WORK;
    return work->way == CS_WAY_HtoD ? KEY_IN : work->way == CS_WAY_DtoH ? KEY_OUT : KEY_WORK;
}

uint32_t lane_needed(struct making *m, uint32_t stream, uint32_t key)
{
    if (m->split != SPLIT_COPIES || key == KEY_IN) return NONE;
    return lane_get(m, stream, key == KEY_OUT ? KEY_WORK : KEY_IN)->tail;
}

bool is_legacy(const struct making *m, uint32_t stream)
{
    return m->run->streams[stream].origin == ORIGIN_LEGACY;
}

uint32_t stream_tail(struct making *m, uint32_t stream)
{
    uint32_t all = NONE;
    if (m->split == SPLIT_THREADS) all = lane_get(m, stream, m->calling)->tail;
    if (all != NONE || (m->split == SPLIT_THREADS && is_legacy(m, stream))) return all;
    for (uint32_t at = m->lane_of[stream]; at != NONE; at = m->lanes[at].next)
        all = join_of(m, all, m->lanes[at].tail, TIE_STREAM);
    return all;
}

uint32_t side_of(const struct making *m, uint32_t stream)
{
    const uint32_t side = m->run->streams[stream].side;
    return side != NONE && m->used[side] ? side : NONE;
}

uint32_t barrier_of(const struct making *m, uint32_t stream)
{
    const uint32_t side = side_of(m, stream);
    return side == NONE ? NONE : m->sides[side ^ 1];
}

void lane_enqueue(struct making *m, uint32_t stream, struct lane *lane, uint32_t node)
{
    const uint32_t side = side_of(m, stream);
    lane->tail = node;
    lane->joined = false;
    lane->thread = m->calling;
    if (side != NONE) m->sides[side] = join_of(m, m->sides[side], node, TIE_STREAM);
}

void devices_join(struct making *m)
{
    for (size_t i = 0; i < m->lane_count; i++) {
        if (m->lanes[i].joined) continue;
        uint32_t *all = &m->device_tail[m->run->streams[m->lanes[i].stream].device];
        *all = join_of(m, *all, m->lanes[i].tail, TIE_STREAM);
        m->lanes[i].joined = true;
    }
}

/* --- loops that wait --- */

static bool asks_same(const struct call *a, const struct call *b)
{
    return a->call == b->call && a->stream == b->stream && a->what == b->what;
}

void polls_find(struct making *m)
{
    enum { POLL_NS = 1000000 }; /* queries that come faster than this are a loop that waits */
    const struct run *run = m->run;
    for (size_t t = 0; t < run->thread_count; t++)
        for (uint32_t i = run->thread_calls.begins[t]; i + 1 < run->thread_calls.begins[t + 1];
            i++) {
            const uint32_t number = run->thread_calls.members[i];
            const struct call *call = &run->calls[number],
                              *after = &run->calls[run->thread_calls.members[i + 1]];
            if (call_kind(call) == CS_KIND_QUERY && call->result == m->not_ready && m->not_ready &&
                asks_same(call, after) && after->begin - call->end < POLL_NS)
                *numbers_at(&m->polled, number, 1) = 1;
        }
}
