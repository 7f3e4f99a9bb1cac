/* Plays a run's graph, in order of time. A node begins when all its ties allow it; work also needs
 * room on the device. */
#include "tools/custream/model/replay_inside.h"

#include <math.h>

#include "tools/custream/model/views.h"

/* The rate of copies from and to pinned memory if the run has none: PCIe 5.0 x16, in bytes a ns. */
static const double PINNED_RATE = 55;
/* Kernels may fill a device a little more than once: the last blocks of one leave room. */
static const double FULL = 1.05;
enum { LAUNCH_CALL_NS = 500, COPY_CALL_NS = 3000 };

/* --- room on the devices --- */

enum { RUNNING = 128 };
/* The room of one device. */
struct room {
    int64_t engine[CS_WAY_COUNT]; /* by direction: when the last copy ends */
    struct running {
        int64_t leaves; /* when the kernel's last blocks leave room */
        double fills;
    } running[RUNNING];
    size_t count;
    /* kernels that wait for room, in the order in which they came: waiting[first .. end) */
    uint32_t *waiting;
    size_t first, end, capacity;
};

/* Returns when the device has room for the work: `at`, or later. */
static int64_t room_at(
    struct room *room, const struct work *work, double fills, uint32_t at_once, int64_t at)
{
    if (work->kind == WORK_COPY)
        return fills > 0 && room->engine[work->way] > at ? room->engine[work->way] : at;
    if (work->kind != WORK_KERNEL || (fills <= 0 && !at_once)) return at;
    double filled = 0;
    int64_t first = INT64_MAX;
    size_t kept = 0;
    for (size_t i = 0; i < room->count; i++) {
        if (room->running[i].leaves <= at) continue;
        room->running[kept++] = room->running[i];
        filled += room->running[i].fills;
        if (room->running[i].leaves < first) first = room->running[i].leaves;
    }
    room->count = kept;
    const size_t most = at_once ?: RUNNING;
    return (kept && filled + fills > FULL) || kept >= most ? first : at;
}

static void room_take(
    struct room *room, const struct work *work, double fills, int64_t begin, int64_t end)
{
    const int64_t early = (end - begin) / 8 < SKEW_NS ? (end - begin) / 8 : SKEW_NS;
    if (work->kind == WORK_COPY) room->engine[work->way] = end;
    else if (work->kind == WORK_KERNEL && room->count < RUNNING)
        room->running[room->count++] = (struct running){end - early, fills};
}

/* --- what is changed --- */

static bool launches(const struct call *call)
{
    return call_kind(call) == CS_KIND_LAUNCH || call_kind(call) == CS_KIND_SET;
}

/* Whether a change is about this call. The call's thread or stream decides, and if the change has a
 * time, also the call's begin. */
static bool concerns(const struct change *c, const struct call *call)
{
    if (c->from != c->to && (call->begin < c->from || call->begin > c->to)) return false;
    return c->where == EVERYWHERE ||
           c->place == (c->where == OF_THREAD ? call->thread : call->stream);
}

/* Whether the call is a small copy, or a synchronisation, which may wait for a small copy. */
static bool copies_little(const struct replay *r, const struct call *call)
{
    enum { LITTLE = 64 << 10 };
    if (call_kind(call) == CS_KIND_SYNC) return true;
    return call_kind(call) == CS_KIND_COPY && call->works &&
           r->run->works[r->run->works_of[call->work]].bytes <= LITTLE;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t call_takes(const struct replay *r, const struct node *node, const struct change *c)
{
    const struct call *call = &r->run->calls[node->subject];
    const int64_t takes = time_unpack(node->takes);
    if (!concerns(c, call)) return takes;
    if (c->host || (c->calls && c->calls[call->name])) return 0;
    if (c->free_calls && call_allocates(r->run, call)) return 0;
    if (c->one_launch && node->in_row && launches(call)) return least(takes, LAUNCH_CALL_NS);
    if (c->one_copy && copies_little(r, call)) return 0;
    if (c->pinned && node->pageable) return least(takes, COPY_CALL_NS);
    return takes;
}

static int64_t work_takes(const struct replay *r, const struct node *node, const struct change *c)
{
    const struct work *work = &r->run->works[node->subject];
    const int64_t length = work->end - work->begin,
                  takes = c->scale && work->kind == WORK_KERNEL
                              ? (int64_t)((double)length * c->scale[work->name])
                              : length;
    if (!c->pinned || !node->pageable || !concerns(c, &r->run->calls[work->call])) return takes;
    const double rate = r->pinned_rate > 0 ? r->pinned_rate : PINNED_RATE;
    return least(takes, (int64_t)((double)work->bytes / rate));
}

static int64_t function_takes(
    const struct replay *r, const struct node *node, const struct change *c)
{
    const struct callback *callback = &r->run->callbacks[node->subject];
    if (c->host_functions && (c->where != OF_STREAM || c->place == callback->stream)) return 0;
    return callback->end - callback->begin;
}

static int64_t node_takes(const struct replay *r, const struct node *node, const struct change *c)
{
    switch (node->kind) {
    case NODE_CALL: return call_takes(r, node, c);
    case NODE_WORK: return work_takes(r, node, c);
    case NODE_HOST_FUNCTION: return function_takes(r, node, c);
    default: return 0;
    }
}

/* Returns how much of the `ns` before a call a change leaves out, since all threads waited, or
 * waited for one that computed. */
static int64_t silence_of(
    const struct replay *r, const struct change *c, const struct call *call, int64_t ns)
{
    const int64_t from = call->begin - ns;
    if (!concerns(c, call)) return 0;
    return (c->silence ? silence_between(r->run, false, from, call->begin) : 0) +
           (c->own_code && c->where == EVERYWHERE ? silence_between(r->run, true, from, call->begin)
                                                  : 0);
}

/* Returns what a change leaves of the own code before a call. If another thread let the thread go
 * on, that is what it computed: the tie TIE_WAKE tells how long it waited. */
static int64_t gap_of(const struct replay *r, const struct node *node, const struct change *c)
{
    if (node->kind != NODE_CALL || !node->gap) return 0;
    const struct call *call = &r->run->calls[node->subject];
    const int64_t whole = time_unpack(node->gap), waited = whole * node->waited / 100,
                  gap = node->woken ? whole - waited : whole;
    if (!concerns(c, call) || (c->from != c->to && call->begin == c->from)) return gap;
    if (node->missing) return gap;
    if (c->host || (c->gaps && c->gaps[node->subject])) return 0;
    if (whole >= OWN_CODE_NS) {
        const int64_t left =
            (c->outside ? 0 : gap - (whole - waited)) + (c->own_code ? 0 : whole - waited);
        return node->woken ? left : least(left, whole - silence_of(r, c, call, whole));
    }
    if (c->one_launch && node->in_row && launches(call)) return 0;
    if (c->one_copy && copies_little(r, call)) return 0;
    return gap;
}

/* Returns a tie's delay. A thread that was woken computed behind the end of the waker's call for as
 * long as it then took to go on, and the rest before. All of that lies between its own calls. */
static int64_t delay_of(const struct replay *r, const struct tie *tie, const struct change *c)
{
    const struct node *to = &r->nodes[tie->to];
    if (to->kind != NODE_CALL || !to->woken) return tie->delay;
    const int64_t left = gap_of(r, to, c), recorded = r->ties[to->ties + 1].delay,
                  woken = recorded - silence_of(r, c, &r->run->calls[to->subject], recorded),
                  behind = least(gap_of(r, to, &(struct change){0}), woken),
                  goes_on = woken - behind + least(behind, left);
    return tie->kind == TIE_WAKE || left < goes_on ? goes_on : left;
}

/* Whether a change lets a piece of work begin as soon as nothing holds it. */
static bool hurries(const struct node *node, const struct change *c)
{
    return (c->pinned && node->pageable) || (c->queues && node->late);
}

/* Returns how long a node takes to begin once its ties allow it. */
static int64_t before_of(const struct replay *r, const struct node *node, const struct change *c)
{
    if (node->kind == NODE_CALL) return node->woken ? 0 : gap_of(r, node, c);
    if (node->kind != NODE_WORK && node->kind != NODE_HOST_FUNCTION) return 0;
    return hurries(node, c) ? least(node->rest, LAUNCH_NS) : node->rest;
}

/* Whether the change drops any tie. */
static bool drops(const struct change *c)
{
    return c->without || c->calls || c->pinned || c->free_calls;
}

static bool is_dropped(const struct replay *r, const struct tie *tie, const struct change *c)
{
    const bool without = c->without >> tie->kind & 1;
    const struct node *to = &r->nodes[tie->to];
    if (to->kind == NODE_RETURN && !concerns(c, &r->run->calls[to->subject])) return false;
    if (without) return !to->last;
    if (c->calls && to->kind == NODE_RETURN && tie->kind != TIE_THREAD && !to->last)
        return c->calls[r->run->calls[to->subject].name];
    if (c->pinned && tie->kind == TIE_WAIT_COPY) return to->pageable;
    return c->free_calls && tie->kind == TIE_WAIT_MEMORY;
}

/* --- playing --- */

static void node_ends(
    struct replay *r, uint32_t node, int64_t begin, int64_t end, const struct change *change)
{
    for (uint32_t t = r->first[node]; t != NONE; t = r->ties[t].next) {
        const struct tie *tie = &r->ties[t];
        if (drops(change) && is_dropped(r, tie, change)) continue;
        const struct node *to = &r->nodes[tie->to];
        const int64_t most = change->pinned && to->pageable ? STAGED_NS - BEHIND_NS : LAUNCH_NS,
                      delay = delay_of(r, tie, change),
                      at = (tie->kind == TIE_ENQUEUE ? begin : end) +
                           (hurries(to, change) ? least(delay, most) : delay);
        if (at > r->ready[tie->to]) {
            r->ready[tie->to] = at;
            if (r->by) r->by[tie->to] = t;
        }
        if (--r->left[tie->to]) continue;
        due_push(&r->dues, r->ready[tie->to] + before_of(r, &r->nodes[tie->to], change), tie->to);
    }
}

static bool counts(const struct replay *r, const struct node *node)
{
    const struct run *run = r->run;
    switch (node->kind) {
    case NODE_CALL:
    case NODE_RETURN: return r->counts[run->calls[node->subject].thread];
    case NODE_WORK: return r->counts[run->calls[run->works[node->subject].call].thread];
    default: return node->kind == NODE_HOST_FUNCTION;
    }
}

/* A run while it is played. */
struct play {
    struct room *rooms; /* by device */
    const struct change *change;
    int64_t last; /* the latest end so far */
};

/* Begins a node, if the device has room. False: there is no room for this kernel yet. Then a due of
 * the device is pushed, for the time at which there is. */
static bool node_begins(struct replay *r, struct play *play, uint32_t number, int64_t at)
{
    const struct node *node = &r->nodes[number];
    int64_t end = at + node_takes(r, node, play->change);
    if (node->kind == NODE_WORK) {
        const struct work *work = &r->run->works[node->subject];
        const double fills = isnan(node->fills) ? !play->change->unknown_fits : node->fills;
        const uint32_t device = work_device(r->run, work);
        const int64_t free = room_at(&play->rooms[device], work, fills, play->change->at_once, at);
        if (free > at && work->kind == WORK_KERNEL) {
            due_push(&r->dues, free, (uint32_t)r->node_count + device);
            return false;
        }
        end += free - at; /* copies take their turn as they come */
        at = free;
        room_take(&play->rooms[device], work, fills, at, end);
    }
    if (end > play->last && counts(r, node)) play->last = end, r->last = number;
    r->ready[number] = at;
    node_ends(r, number, at, end, play->change);
    return true;
}

/* Begins a node that nothing holds any more, or puts a kernel behind those that wait for room. */
static void node_comes(struct replay *r, struct play *play, uint32_t number, int64_t at)
{
    const struct node *node = &r->nodes[number];
    const struct work *work = node->kind == NODE_WORK ? &r->run->works[node->subject] : NULL;
    if (!work || work->kind != WORK_KERNEL) {
        node_begins(r, play, number, at);
        return;
    }
    struct room *room = &play->rooms[work_device(r->run, work)];
    if (room->first == room->end && node_begins(r, play, number, at)) return;
    if (room->first == room->end) room->first = room->end = 0;
    array_add(room->waiting, room->end, room->capacity, number);
}

int64_t replay_length(struct replay *r, const struct change *change)
{
    const struct run *run = r->run;
    struct room *rooms = array_zeros(run->device_count, sizeof *rooms);
    struct play play = {rooms, change, INT64_MIN};
    const bool any = drops(change);
    for (size_t d = 0; d < run->device_count; d++)
        for (size_t w = 0; w < CS_WAY_COUNT; w++) rooms[d].engine[w] = INT64_MIN;
    if (!r->ready) r->ready = array_zeros(r->node_count, sizeof *r->ready);
    if (!r->left) r->left = array_zeros(r->node_count, sizeof *r->left);
    for (uint32_t i = 0; i < r->node_count; i++) {
        const uint32_t end = i + 1 < r->node_count ? r->nodes[i + 1].ties : (uint32_t)r->tie_count;
        r->left[i] = end - r->nodes[i].ties;
        for (uint32_t t = r->nodes[i].ties; any && t < end; t++)
            r->left[i] -= is_dropped(r, &r->ties[t], change);
        r->ready[i] = r->begin;
        if (!r->left[i])
            due_push(&r->dues,
                r->nodes[i].kind == NODE_CALL ? run->calls[r->nodes[i].subject].begin : r->begin,
                i);
    }
    while (r->dues.count) {
        const struct due due = due_pop(&r->dues);
        if (due.number >= r->node_count) {
            struct room *room = &rooms[due.number - r->node_count];
            while (room->first < room->end &&
                   node_begins(r, &play, room->waiting[room->first], due.at))
                room->first++;
        } else node_comes(r, &play, due.number, due.at);
    }
    for (size_t d = 0; d < run->device_count; d++) free(rooms[d].waiting);
    free(rooms);
    return play.last - r->begin;
}

static enum path_part part_of_gap(const struct replay *r, const struct node *node)
{
    switch (pause_doing(pause_before(r->run, node->subject))) {
    case DOING_OUTSIDE: return PATH_OUTSIDE;
    case DOING_NOTHING_KNOWN: return PATH_UNKNOWN;
    default: return PATH_OWN_CODE;
    }
}

void replay_path(struct replay *r, path_step *step, void *of)
{
    const struct change nothing = {0};
    r->by = array_none(r->node_count);
    int64_t left = replay_length(r, &nothing) + r->begin; /* when the path leaves the node */
    for (uint32_t n = r->last, by; n != NONE; n = by == NONE ? NONE : r->ties[by].from) {
        const struct node *node = &r->nodes[n];
        const int64_t begin = r->ready[n];
        by = r->by[n];
        const struct tie *tie = by == NONE ? NULL : &r->ties[by];
        const int64_t from =
            !tie ? begin
            : tie->kind == TIE_ENQUEUE
                ? r->ready[tie->from]
                : r->ready[tie->from] + node_takes(r, &r->nodes[tie->from], &nothing);
        const int64_t before = begin - from, rest = before_of(r, node, &nothing);
        const enum path_part part = node->kind == NODE_CALL     ? PATH_CALL
                                    : node->kind == NODE_RETURN ? PATH_RETURN
                                    : node->kind == NODE_WORK   ? PATH_WORK
                                                                : PATH_HOST_FUNCTION;
        if (left > begin && node->kind != NODE_JOIN) step(of, part, node->subject, left - begin);
        if (before > 0 && node->kind != NODE_JOIN)
            step(of,
                node->kind == NODE_CALL                                ? part_of_gap(r, node)
                : node->kind == NODE_RETURN                            ? PATH_RETURN
                : node->kind == NODE_HOST_FUNCTION                     ? PATH_HOST_FUNCTION
                : node->kind == NODE_WORK && before > rest + LAUNCH_NS ? PATH_FULL
                                                                       : PATH_LAUNCH,
                node->subject, before);
        left = from;
    }
    free(r->by);
    r->by = NULL;
}

int64_t replay_unchanged(struct replay *r, bool unknown_fits)
{
    int64_t *length = &r->unchanged[unknown_fits];
    if (!*length) *length = replay_length(r, &(struct change){.unknown_fits = unknown_fits});
    return *length;
}
double replay_scale(const struct replay *r) { return r->scale; }
int64_t replay_recorded(const struct replay *r) { return r->end - r->begin; }
bool replay_has_unknown(const struct replay *r)
{
    for (size_t i = 0; i < r->node_count; i++)
        if (r->nodes[i].kind == NODE_WORK && isnan(r->nodes[i].fills) &&
            r->run->works[r->nodes[i].subject].kind == WORK_KERNEL)
            return true;
    return false;
}
bool replay_is_late(const struct replay *r, uint32_t work)
{
    return r->node_of[work] != NONE && r->nodes[r->node_of[work]].late;
}
int64_t replay_unexplained(const struct replay *r) { return r->unexplained; }

void replay_free(struct replay *r)
{
    if (!r) return;
    free(r->nodes);
    free(r->ties);
    free(r->counts);
    free(r->node_of);
    free(r->first);
    free(r->ready);
    free(r->left);
    free(r->dues.rows);
    free(r);
}
