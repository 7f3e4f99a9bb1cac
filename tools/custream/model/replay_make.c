/* Makes the graph of a run. One pass, like that of order.c, goes over the calls in the order in
 * which the host made them. It keeps the last node so far of each stream, event and thread. */
#include <math.h>

#include "tools/custream/model/replay_graph.h"
#include "tools/custream/model/views.h"

enum {
    LAUNCHES_IN_A_ROW = 20, /* so many launches are worth a graph */
    LANES_EACH = 32,        /* with more lanes, a wait is tied to device_tail, not to each lane */
    HELD_NS = 20000,        /* an allocation that takes longer waited for the device */
    MOST_CALLS = 100000,    /* of a longer run, so many calls in its middle are played */
    PINNED_BYTES = 1 << 20, /* copies of so many bytes show the rate of pinned memory */
};

/* --- work --- */

struct earlier {
    uint32_t node;
    enum tie_kind kind;
};

/* Ties `node`, work or a host function, to its call and to `before`, but not to what ended after
 * `begin`. Of the delay before `begin`, the tie to the call gets the launch's way to the GPU, and
 * the node's `rest` gets what comes behind other work. */
static void work_ties(struct making *m, uint32_t node, uint32_t call_node, int64_t begin,
    const struct earlier *before, size_t count)
{
    const int64_t called = m->run->calls[m->replay->nodes[call_node].subject].begin,
                  returned = node_ended(m, call_node),
                  launched = begin < returned ? called : returned,
                  usual = begin < returned ? STAGED_NS : LAUNCH_NS;
    int64_t last = launched;
    for (size_t i = 0; i < count; i++) {
        if (before[i].node == NONE || node_ended(m, before[i].node) > begin + SKEW_NS) continue;
        if (node_ended(m, before[i].node) > last) last = node_ended(m, before[i].node);
        tie_add(m, before[i].node, before[i].kind, 0);
    }
    const int64_t rest = begin - last,
                  behind =
                      begin - launched <= (last == launched ? INT64_MAX : usual) && rest > BEHIND_NS
                          ? BEHIND_NS
                          : rest,
                  way = last == launched || begin - launched < usual ? begin - launched : usual;
    tie_add(m, call_node, begin < returned ? TIE_ENQUEUE : TIE_LAUNCH, way - behind);
    m->replay->nodes[node].rest = behind > INT32_MAX ? INT32_MAX : (int32_t)behind;
}

static void work_add(struct making *m, uint32_t index, uint32_t call_node,
    const struct earlier *before, size_t count)
{
    const struct work *work = &m->run->works[index];
    const uint32_t node = node_add(m, NODE_WORK, index);
    m->replay->nodes[node].pageable = m->replay->nodes[call_node].pageable =
        work_is_pageable(m->run, work);
    m->replay->node_of[index] = node;
    work_ties(m, node, call_node, work->begin, before, count);
    if (m->whole) { /* a split of streams changes none of these */
        const struct node *was = &m->whole->nodes[m->whole->node_of[index]];
        m->replay->nodes[node].fills = was->fills;
        m->replay->nodes[node].rest = was->rest;
        m->replay->nodes[node].late = was->late;
        way_of(m->replay, node)->delay = way_of(m->whole, m->whole->node_of[index])->delay;
        return;
    }
    m->replay->nodes[node].fills = work->kind == WORK_COPY ? 1 : (float)kernel_fills(m->run, work);
    if (work->kind == WORK_COPY && strstr(text_in(m->run, work->name), "Pinned") &&
        work->bytes >= PINNED_BYTES) {
        m->pinned_bytes += (double)work->bytes;
        m->pinned_ns += (double)(work->end - work->begin);
    }
}

/* Adds the work of a call. Nodes of a graph are tied as their times show. */
static void call_works(struct making *m, const struct call *call, uint32_t call_node)
{
    const struct run *run = m->run;
    uint32_t all = NONE;
    const struct work *first = &run->works[run->works_of[call->work]];
    const uint32_t key = lane_key(m, call, first), other = lane_needed(m, call->stream, key);
    struct lane *lane = lane_get(m, call->stream, key);
    const bool alone = m->split == SPLIT_WORKS && first->kind == WORK_KERNEL && !first->graph;
    struct earlier before[] = {{alone ? lane->gate : lane->tail, TIE_STREAM},
        {barrier_of(m, call->stream), TIE_LEGACY}, {other, TIE_STREAM}};
    const size_t lane_at = (size_t)(lane - m->lanes);
    for (uint32_t i = 0; i < call->works; i++) {
        const uint32_t index = run->works_of[call->work + i];
        const struct hold *hold = &m->replay->of->holds[index];
        const bool inner = call->works > 1 && hold->cause == CAUSE_GRAPH_EDGE &&
                           hold->blocker != NONE && m->replay->node_of[hold->blocker] != NONE;
        const struct earlier edge = {inner ? m->replay->node_of[hold->blocker] : NONE, TIE_GRAPH};
        work_add(m, index, call_node, inner ? &edge : before, inner ? 1 : 3);
        all = join_of(m, all, m->replay->node_of[index], TIE_STREAM);
    }
    if (alone) all = join_of(m, m->lanes[lane_at].tail, all, TIE_STREAM);
    else m->lanes[lane_at].gate = all;
    lane_enqueue(m, call->stream, &m->lanes[lane_at], all);
}

/* --- calls --- */

/* Shortens a call to at most `most`, the time that the call takes without its wait. */
static void call_shorten(struct making *m, uint32_t call_node, int64_t most)
{
    struct node *is = &m->replay->nodes[call_node];
    if (time_unpack(is->takes) > most) is->takes = time_pack(most);
}

/* Adds the return of a call that waits, tied to the call and to the nodes for which it waited. The
 * delay of the ties to these nodes is the time that the call then took to return. */
static void return_add(struct making *m, uint32_t index, uint32_t call_node,
    const struct earlier *before, size_t count)
{
    const struct call *call = &m->run->calls[index];
    int64_t last = call->begin; /* the last end of the nodes for which the call waited */
    for (size_t i = 0; i < count; i++) {
        const int64_t end = before[i].node == NONE ? INT64_MIN : node_ended(m, before[i].node);
        if (end > last && end <= call->end + SKEW_NS) last = end;
    }
    if (last > call->begin) call_shorten(m, call_node, WAIT_NS);
    const uint32_t node = node_add(m, NODE_RETURN, index);
    m->replay->nodes[node].last = index > m->enqueues_last[call->thread];
    tie_add(m, call_node, TIE_THREAD, 0);
    for (size_t i = 0; i < count; i++) {
        if (before[i].node == NONE || node_ended(m, before[i].node) > call->end + SKEW_NS) continue;
        tie_add(m, before[i].node, before[i].kind, last > call->begin ? call->end - last : WAIT_NS);
    }
    m->thread_last[call->thread] = node;
}

/* Returns the node at which the record is reached that the call waits for; NONE: not known. */
static uint32_t event_node(const struct making *m, const struct call *call)
{
    return call->record == NONE || m->run->calls[call->record].stream == NONE
               ? NONE
               : numbers_get(&m->events, call->what, NONE);
}

/* Adds the wait for a whole context. The trace does not tell which context. So the call is not tied
 * to what other threads enqueued and what had ended when the call began. */
static void device_waits(struct making *m, uint32_t index, uint32_t call_node)
{
    const struct call *call = &m->run->calls[index];
    struct earlier *before = array_zeros(m->lane_count + m->run->device_count, sizeof *before);
    size_t count = 0;
    if (m->lane_count <= LANES_EACH) {
        for (size_t i = 0; i < m->lane_count; i++) {
            const struct lane *lane = &m->lanes[i];
            if (lane->tail == NONE) continue;
            const bool done = node_ended(m, lane->tail) <= call->begin;
            if (!done || lane->thread == call->thread)
                before[count++] = (struct earlier){lane->tail, TIE_WAIT_DEVICE};
        }
    } else {
        devices_join(m);
        for (size_t d = 0; d < m->run->device_count; d++)
            before[count++] = (struct earlier){m->device_tail[d], TIE_WAIT_DEVICE};
    }
    return_add(m, index, call_node, before, count);
    free(before);
}

static void host_waits(struct making *m, uint32_t index, uint32_t call_node)
{
    const struct run *run = m->run;
    const struct call *call = &run->calls[index];
    if (call->what && call->stream == NONE) {
        return_add(m, index, call_node, &(struct earlier){event_node(m, call), TIE_WAIT_STREAM}, 1);
        return;
    }
    if (call->stream != NONE) {
        uint32_t all = stream_tail(m, call->stream);
        if (is_legacy(m, call->stream))
            all = join_of(m, all, barrier_of(m, call->stream), TIE_LEGACY);
        return_add(m, index, call_node, &(struct earlier){all, TIE_WAIT_STREAM}, 1);
        return;
    }
    device_waits(m, index, call_node);
}

/* Returns when everything to which the newest work is tied, except its call, had ended: from then
 * on the call did not wait for other work. */
static int64_t held_until(const struct making *m, uint32_t node, int64_t called)
{
    const struct replay *r = m->replay;
    for (size_t t = r->nodes[node].ties; t < r->tie_count && r->ties[t].to == node; t++)
        if (r->nodes[r->ties[t].from].kind != NODE_CALL && node_ended(m, r->ties[t].from) > called)
            called = node_ended(m, r->ties[t].from);
    return called;
}

/* Adds a wait that is not its call's purpose: in a copy that blocks, an allocation or a free. */
static void other_waits(struct making *m, uint32_t index, uint32_t call_node)
{
    const struct run *run = m->run;
    const struct call *call = &run->calls[index];
    const int64_t took = call->end - call->begin;
    if (call->works == 1) {
        const uint32_t work = run->works_of[call->work];
        const struct work *is = &run->works[work];
        if (is->kind != WORK_COPY || call->end <= is->begin || 2 * took <= is->end - is->begin)
            return;
        const uint32_t node = m->replay->node_of[work];
        const int64_t own = is->begin - held_until(m, node, call->begin) - LAUNCH_NS;
        call_shorten(m, call_node, own > WAIT_NS ? own : WAIT_NS);
        const uint32_t back = node_add(m, NODE_RETURN, index);
        m->replay->nodes[back].pageable = m->replay->nodes[node].pageable;
        tie_add(m, call_node, TIE_THREAD, 0);
        tie_add(m, node, TIE_WAIT_COPY, call->end - is->end);
        m->thread_last[call->thread] = back;
        return;
    }
    if (!call_frees(run, call) || took < HELD_NS) return;
    devices_join(m);
    for (size_t d = 0; d < run->device_count; d++) {
        const uint32_t tail = m->device_tail[d];
        if (tail == NONE || node_ended(m, tail) <= call->begin + WAIT_NS ||
            node_ended(m, tail) > call->end + SKEW_NS)
            continue;
        return_add(m, index, call_node, &(struct earlier){tail, TIE_WAIT_MEMORY}, 1);
        return;
    }
}

/* Whether a call ends a row of launches, as one graph of the row could not contain the call. */
static bool ends_row(const struct run *run, const struct call *call)
{
    const enum cs_kind kind = call_kind(call);
    const struct work *work = call->works ? &run->works[run->works_of[call->work]] : NULL;
    return call_allocates(run, call) || kind == CS_KIND_SYNC ||
           (work && work->kind == WORK_COPY &&
               (work->way == CS_WAY_HtoD || work->way == CS_WAY_DtoH));
}

static void rows_find(struct making *m)
{
    const struct run *run = m->run;
    m->in_row = array_zeros(run->call_count, sizeof *m->in_row);
    for (size_t t = 0; t < run->thread_count; t++) {
        const uint32_t *calls = run->thread_calls.members, end = run->thread_calls.begins[t + 1];
        uint32_t launches = 0;
        for (uint32_t i = run->thread_calls.begins[t], from = i; i <= end; i++) {
            if (i < end && !ends_row(run, &run->calls[calls[i]])) {
                launches += call_kind(&run->calls[calls[i]]) == CS_KIND_LAUNCH;
                continue;
            }
            for (uint32_t c = from; launches >= LAUNCHES_IN_A_ROW && c < i; c++)
                m->in_row[calls[c]] = true;
            from = i + 1;
            launches = 0;
        }
    }
}

/* Ties a call behind time that was not recorded to the GPU work before that time, which still ran
 * when the thread's last call before it had ended, at `before`. So the call keeps its distance from
 * that work, too, and nothing before that time gains by it. */
static void missing_ties(struct making *m, const struct call *call, int64_t before)
{
    const bool each = m->lane_count <= LANES_EACH;
    for (size_t i = 0; i < (each ? m->lane_count : m->run->device_count); i++) {
        const uint32_t tail = each ? m->lanes[i].tail : m->device_tail[i];
        if (tail != NONE && node_ended(m, tail) > before && node_ended(m, tail) <= call->begin)
            tie_add(m, tail, TIE_THREAD, before - node_ended(m, tail));
    }
}

static uint32_t call_add(struct making *m, uint32_t index)
{
    const struct call *call = &m->run->calls[index];
    const uint32_t last = m->thread_last[call->thread];
    const bool first = last == NONE;
    const int64_t before = m->thread_ended[call->thread],
                  gap = first || call->begin < before ? 0 : call->begin - before;
    const struct pause *pause = first || gap >= OWN_CODE_NS ? pause_before(m->run, index) : NULL;
    const bool missing = gap && pause && pause->missing;
    const uint32_t waker = pause && pause->waker != NONE && pause->waker >= m->replay->call_begin
                               ? m->call_nodes[pause->waker - m->replay->call_begin]
                               : NONE;
    if (missing && m->lane_count > LANES_EACH) devices_join(m);
    const uint32_t number = node_add(m, NODE_CALL, index);
    struct node *node = &m->replay->nodes[number];
    node->takes = time_pack(call->end - (first || call->begin > before ? call->begin : before));
    node->gap = time_pack(gap);
    node->in_row = m->in_row[index];
    node->woken = waker != NONE && !first;
    node->waited =
        node->woken && !pause->measured ? 100 : (unsigned)(100 * pause_waited(pause)) & 127;
    node->missing = missing;
    if (gap >= OWN_CODE_NS && waker == NONE && (m->run->clock_count || missing))
        m->replay->unexplained +=
            pause && pause->measured && !missing ? pause->high - pause->low : gap;
    tie_add(m, last, TIE_THREAD, 0);
    if (waker != NONE)
        tie_add(m, waker, first ? TIE_THREAD : TIE_WAKE, call->begin - node_ended(m, waker));
    if (missing) missing_ties(m, call, before);
    m->thread_last[call->thread] = number;
    return number;
}

/* A record is a barrier on the legacy default stream, and on blocking streams, as work is. */
static void record(struct making *m, const struct call *call, uint32_t call_node)
{
    if (!call->what || call->external || call->stream == NONE) return;
    const uint32_t tail =
        join_of(m, stream_tail(m, call->stream), barrier_of(m, call->stream), TIE_LEGACY);
    const uint32_t node = join_of(m, tail, call_node, TIE_RECORD);
    *numbers_at(&m->events, call->what, NONE) = node;
    if (side_of(m, call->stream) == NONE) return;
    struct lane *lane = lane_get(m, call->stream, lane_key(m, call, NULL));
    lane_enqueue(m, call->stream, lane, node);
}

/* Takes a wait for an event. On the legacy default stream the wait is a barrier. On a blocking
 * stream it does not wait for the legacy default stream itself; only what is behind it does. */
static void wait(struct making *m, const struct call *call)
{
    uint32_t event = event_node(m, call);
    if (event == NONE || call->stream == NONE) return;
    struct lane *lane = lane_get(m, call->stream, lane_key(m, call, NULL));
    const size_t at = (size_t)(lane - m->lanes);
    if (is_legacy(m, call->stream))
        event = join_of(m, event, barrier_of(m, call->stream), TIE_LEGACY);
    if (m->split == SPLIT_WORKS) lane->gate = join_of(m, lane->gate, event, TIE_EVENT);
    lane_enqueue(m, call->stream, &m->lanes[at], join_of(m, m->lanes[at].tail, event, TIE_EVENT));
}

static void host_function(struct making *m, uint32_t index, uint32_t call_node, uint32_t callback)
{
    const struct call *call = &m->run->calls[index];
    struct lane *lane = lane_get(m, call->stream, lane_key(m, call, NULL));
    const size_t at = (size_t)(lane - m->lanes);
    const struct earlier before[] = {
        {lane->tail, TIE_STREAM}, {barrier_of(m, call->stream), TIE_LEGACY}};
    const uint32_t node = node_add(m, NODE_HOST_FUNCTION, callback);
    work_ties(m, node, call_node, m->run->callbacks[callback].begin, before, 2);
    if (m->run->callbacks[callback].end > m->replay->end)
        m->replay->end = m->run->callbacks[callback].end;
    m->lanes[at].gate = node;
    lane_enqueue(m, call->stream, &m->lanes[at], node);
}

static void call_take(struct making *m, uint32_t index, const uint32_t *callback_of)
{
    const struct call *call = &m->run->calls[index];
    m->calling = call->thread;
    if (numbers_get(&m->polled, index, 0) &&
        call->begin - m->thread_ended[call->thread] < OWN_CODE_NS)
        return;
    const uint32_t node = call_add(m, index);
    m->call_nodes[index - m->replay->call_begin] = node;
    if (call->result || call->captured) return;
    if (call->works && call->stream != NONE) call_works(m, call, node);
    switch (call_kind(call)) {
    case CS_KIND_EVENT:
        if (call_how(call, CS_HOW_RECORDS)) record(m, call, node);
        break;
    case CS_KIND_WAIT: wait(m, call); break;
    case CS_KIND_HOSTFN:
        if (call->stream != NONE && callback_of && callback_of[index] != NONE)
            host_function(m, index, node, callback_of[index]);
        break;
    case CS_KIND_SYNC:
    case CS_KIND_QUERY: host_waits(m, index, node); break;
    default: other_waits(m, index, node); break;
    }
    m->call_nodes[index - m->replay->call_begin] = m->thread_last[call->thread];
}

/* --- the whole graph --- */

/* Makes the list of each node's ties that go out from it. */
static void ties_sort(struct replay *r)
{
    r->first = array_none(r->node_count);
    for (size_t i = r->tie_count; i-- > 0;) {
        r->ties[i].next = r->first[r->ties[i].from];
        r->first[r->ties[i].from] = (uint32_t)i;
    }
}

static void making_begin(struct making *m)
{
    const struct run *run = m->run;
    m->lane_of = array_none(run->stream_count);
    m->sides = array_none(run->side_count);
    m->used = array_zeros(run->side_count, sizeof *m->used);
    for (size_t i = 0; i < run->call_count; i++) {
        const uint32_t stream = run->calls[i].stream;
        if (stream == NONE || run->streams[stream].side == NONE || !is_legacy(m, stream)) continue;
        m->used[run->streams[stream].side] = m->used[run->streams[stream].side ^ 1] = true;
    }
    m->device_tail = array_none(run->device_count);
    m->thread_last = array_none(run->thread_count);
    m->thread_ended = array_zeros(run->thread_count, sizeof *m->thread_ended);
    m->call_nodes = array_none(m->replay->call_end - m->replay->call_begin);
    m->not_ready = text_find(&run->texts, "CUDA_ERROR_NOT_READY");
    m->enqueues_last = array_zeros(run->thread_count, sizeof *m->enqueues_last);
    for (uint32_t i = m->replay->call_begin; i < m->replay->call_end; i++)
        if (run->calls[i].works) m->enqueues_last[run->calls[i].thread] = i;
    polls_find(m);
    rows_find(m);
}

static void making_end(struct making *m)
{
    free(m->joins);
    free(m->lane_of);
    free(m->lanes);
    free(m->sides);
    free(m->used);
    free(m->device_tail);
    free(m->thread_last);
    free(m->in_row);
    free(m->call_nodes);
    free(m->enqueues_last);
    free(m->thread_ended);
    numbers_free(&m->events);
    numbers_free(&m->polled);
}

/* Chooses the calls to play: all, or those in the middle of a long run's steady part. */
static void window_choose(struct replay *r)
{
    const struct run *run = r->run;
    const struct steady steady = r->of->steady;
    r->call_end = (uint32_t)run->call_count;
    r->scale = 1;
    if (run->call_count <= MOST_CALLS) return;
    const int64_t middle = steady.begin + (steady.end - steady.begin) / 2;
    const size_t at = FIRST_NOT(i, 0, run->call_count, run->calls[i].begin < middle),
                 most = run->call_count - MOST_CALLS,
                 from = at < MOST_CALLS / 2 ? 0 : at - MOST_CALLS / 2;
    r->call_begin = (uint32_t)(from < most ? from : most);
    r->call_end = r->call_begin + MOST_CALLS;
    const double played =
        (double)(run->calls[r->call_end - 1].begin - run->calls[r->call_begin].begin);
    if (played > 0) r->scale = (double)(steady.end - steady.begin) / played;
    if (r->scale < 1) r->scale = 1;
}

/* Adds all calls that are played. Returns how many pieces of work have no call. */
static size_t calls_take(struct making *m)
{
    struct replay *r = m->replay;
    const struct run *run = r->run;
    struct active active = {.count = 0};
    size_t without_call = 0;
    uint32_t *callback_of = host_functions_of(run);
    for (uint32_t i = r->call_begin; i < r->call_end; i++) {
        const struct call *call = &run->calls[i];
        if (call->begin < r->begin) r->begin = call->begin;
        if (call->end > r->end) r->end = call->end;
        call_take(m, i, callback_of);
        if (call->end > m->thread_ended[call->thread]) m->thread_ended[call->thread] = call->end;
    }
    free(callback_of);
    for (uint32_t i = 0; i < run->work_count; i++) {
        without_call += run->works[i].call == NONE;
        if (r->node_of[i] == NONE) continue;
        if (run->works[i].end > r->end) r->end = run->works[i].end;
        if (!m->whole) room_judge(m, &active, i);
    }
    return without_call;
}

/* Tells which threads count: those with a fifth or more of the GPU time of the one with most, and
 * those that wake one that counts. */
static void threads_count(struct replay *r)
{
    enum { PART = 5 };
    const struct run *run = r->run;
    int64_t *took = array_zeros(run->thread_count, sizeof *took), most = 0;
    for (size_t i = 0; i < run->work_count; i++) {
        const struct work *work = &run->works[i];
        if (r->node_of[i] == NONE) continue;
        int64_t *of = &took[run->calls[work->call].thread];
        *of += work->end - work->begin;
        if (*of > most) most = *of;
    }
    r->counts = array_zeros(run->thread_count, sizeof *r->counts);
    int64_t counted = INT64_MIN; /* the last end of a call of a thread that counts */
    for (size_t t = 0; t < run->thread_count; t++) r->counts[t] = took[t] * PART >= most;
    for (uint32_t i = r->call_begin; i < r->call_end; i++)
        if (r->counts[run->calls[i].thread] && run->calls[i].end > counted)
            counted = run->calls[i].end;
    /* a thread that goes on long after all these threads have ended counts, too */
    for (uint32_t i = r->call_begin; i < r->call_end; i++)
        if (run->calls[i].end > counted + (r->end - r->begin) / (4 * PART))
            r->counts[run->calls[i].thread] = true;
    for (bool more = true; more;) {
        more = false;
        for (size_t t = 0; t < r->tie_count; t++) {
            if (r->ties[t].kind != TIE_WAKE) continue;
            const uint32_t to = run->calls[r->nodes[r->ties[t].to].subject].thread,
                           from = run->calls[r->nodes[r->ties[t].from].subject].thread;
            more |= r->counts[to] && !r->counts[from];
            r->counts[from] |= r->counts[to];
        }
    }
    free(took);
}

/* Makes the graph. `whole`: the run's graph without a split; NULL: this graph has no split. */
static struct replay *make(const struct model *of, const struct replay *whole, enum split split)
{
    const struct run *run = &of->run;
    struct replay *r = array_zeros(1, sizeof *r);
    struct making m = {.replay = r, .whole = whole, .run = run, .split = split};
    *r = (struct replay){.of = of, .run = run, .begin = INT64_MAX, .end = INT64_MIN};
    window_choose(r);
    const size_t calls = r->call_end - r->call_begin, room = calls * 9 / 4 + 64;
    r->node_of = array_none(run->work_count);
    r->nodes = array_zeros(r->node_capacity = room, sizeof *r->nodes);
    r->ties = array_zeros(r->tie_capacity = room * 3 / 2, sizeof *r->ties);
    making_begin(&m);
    const size_t without_call = calls_take(&m);
    ties_sort(r);
    threads_count(r);
    r->pinned_rate = whole             ? whole->pinned_rate
                     : m.pinned_ns > 0 ? m.pinned_bytes / m.pinned_ns
                                       : 0;
    making_end(&m);
    if (r->node_count && without_call * 100 <= run->work_count) return r;
    replay_free(r);
    return NULL;
}

struct replay *replay_make(const struct model *of)
{
    return run_has_times(&of->run) ? make(of, NULL, SPLIT_NONE) : NULL;
}

struct replay *replay_split(const struct replay *whole, enum split split)
{
    return make(whole->of, whole, split);
}
