/*
 * Which stream each node of a captured graph was captured from.
 *
 * A profiler tells of a node with the number of the executable graph and the node's index: the nodes of a capture are numbered in the order of the calls
 * that made them. So the calls that make nodes are kept for a while, and when a capture has ended, and all of its calls have come, they are its list. The
 * list stands only if it is as long as the graph, and no two of its calls were made at once; whatever else is in the graph then has no say. Rings are read
 * one after the other, so that some of the calls may come after the end. All tables are rings: the oldest is forgotten.
 */
#include <string.h>

#include "shim/gpu/backend.h"
#include "shim/object/graph.h"
#include "shim/trace/gpu.h"

enum { CALLS = 1 << 16, NODES = 1 << 18, GRAPHS = 1 << 12, ROUNDS = 64, NAME_OTHERS = 1 };

/* Calls that make a node if their stream captures, in the order in which they were read. */
static struct node_call {
    cs_u64 begin, end; /* ticks */
    cs_ref stream;
    cs_name kernel;
    cs_u32 kind; /* enum cs_kind */
    cs_u64 before; /* its number, from 1, of the one on the same stream that was read before it; 0 none */
    cs_u64 newest; /* when the last of this one and those before it began */
} calls[CALLS];
static cs_u64 call_count; /* ever */

static struct node {
    cs_ref stream;
    cs_u32 kernel : 24, kind : 8;
} nodes[NODES];
static cs_u64 node_count; /* ever */

enum list_state { WAITS, STANDS, FAILED };

static struct list {
    cs_u64 serial; /* from 1 */
    enum list_state state;
    cs_u32 graph, length;
    cs_ref origin;
    cs_u64 from, until; /* ticks: of the capture */
    cs_u64 looked;      /* call_count when it was last looked for */
    int rounds;
    cs_u64 first; /* of `nodes` */
} lists[GRAPHS];
static cs_u64 list_count, waiting; /* ever; the oldest that may wait */

static struct exec {
    cs_u32 id;
    cs_u64 list; /* serial */
} execs[GRAPHS]; /* by the low bits of the number: it counts up */

void cs_gpu_graphs_begin(void)
{
    if (list_count) memset(lists, 0, sizeof lists), memset(execs, 0, sizeof execs);
    call_count = node_count = list_count = waiting = 0;
}

static struct list *list_get(cs_u64 serial) { return serial && lists[serial % GRAPHS].serial == serial ? &lists[serial % GRAPHS] : NULL; }

static struct list *list_of_graph(cs_u32 graph)
{
    for (cs_u64 serial = list_count; serial && serial + GRAPHS > list_count; serial--) {
        struct list *l = list_get(serial);
        if (l && l->graph == graph) return l;
    }
    return NULL;
}

/* Where the profiler has begun anew, its numbers may be those of other graphs. */
static void forget_old_numbers(void)
{
    static cs_u64 epoch;
    if (epoch == cs_load(&cs_graph_epoch)) return;
    epoch = cs_load(&cs_graph_epoch);
    for (cs_u32 i = 0; i < GRAPHS; i++) execs[i].list = lists[i].graph = 0;
}

/* --- what the rings tell --- */

static bool makes_node(const struct cs_record *r)
{
    switch (cs_call_info[r->call].kind) {
    case CS_KIND_LAUNCH:
    case CS_KIND_COPY:
    case CS_KIND_SET:
    case CS_KIND_HOSTFN:
    case CS_KIND_MEMOP:
    case CS_KIND_MEMORY:
    case CS_KIND_EXTERNAL: return true;
    case CS_KIND_GRAPH: return cs_call_enqueues((enum cs_call)r->call);
    case CS_KIND_WAIT: return (r->call == CS_CALL_cuStreamWaitEvent || r->call == CS_CALL_cuStreamWaitEvent_ptsz) && r->value[1] & CU_EVENT_WAIT_EXTERNAL;
    case CS_KIND_EVENT:
        return (r->call == CS_CALL_cuEventRecordWithFlags || r->call == CS_CALL_cuEventRecordWithFlags_ptsz) && r->value[1] & CU_EVENT_RECORD_EXTERNAL;
    default: return false;
    }
}

/* By its number, while it is kept. */
static const struct node_call *call_at(cs_u64 number) { return number && number + CALLS > call_count ? &calls[(number - 1) % CALLS] : NULL; }

static struct cs_gpu_lane *lane_at(cs_ref ref)
{
    struct cs_stream *stream = cs_pool_get(&cs_streams, ref);
    return stream ? cs_gpu_lane_get(cs_gpu_lane_of(stream)) : NULL;
}

void cs_gpu_graph_call(const struct cs_record *r)
{
    if (!r->stream || r->result != CUDA_SUCCESS || cs_gpu_marks() || !cs_gpu_is_on() || !makes_node(r)) return;
    const struct cs_call_info *info = &cs_call_info[r->call];
    struct cs_gpu_lane *lane = lane_at(r->stream);
    if (!lane) return;
    const struct node_call *before = call_at(lane->node_calls);
    calls[call_count++ % CALLS] = (struct node_call){.begin = r->begin, .end = r->end, .stream = r->stream, .kind = info->kind, .before = lane->node_calls,
                                                     .newest = before && before->newest > r->begin ? before->newest : r->begin,
                                                     .kernel = info->shown[0].format == CS_FORMAT_KERNEL ? (cs_name)r->value[0] : 0};
    lane->node_calls = call_count;
}

void cs_gpu_graph_captured(struct cs_stream *origin, cs_u64 began, cs_u64 ended, cs_u32 graph, cs_u32 length)
{
    if (!graph) return;
    forget_old_numbers();
    cs_u64 serial = ++list_count;
    lists[serial % GRAPHS] = (struct list){.serial = serial, .state = length <= CALLS ? WAITS : FAILED, .graph = graph, .length = length,
                                           .origin = cs_load(&origin->object.ref), .from = began, .until = ended, .looked = UINT64_MAX};
    if (waiting + GRAPHS <= serial) waiting = serial - GRAPHS + 1;
}

void cs_gpu_graph_instantiated(cs_u32 graph, cs_u32 exec, cs_u32 length)
{
    forget_old_numbers();
    const struct list *l = graph && exec ? list_of_graph(graph) : NULL;
    if (exec) execs[exec % GRAPHS] = (struct exec){exec, l && l->length == length ? l->serial : 0};
}

void cs_gpu_graph_updated(cs_u32 exec)
{
    if (execs[exec % GRAPHS].id == exec) execs[exec % GRAPHS].list = 0;
}

/* --- lists of captures that have ended --- */

static cs_u32 order[CALLS]; /* places in `calls` */

/* By the time at which they began. */
static void sort(cs_u32 n)
{
    for (cs_u32 gap = n / 2; gap; gap /= 2) {
        for (cs_u32 i = gap; i < n; i++) {
            cs_u32 at = i, moved = order[i];
            for (; at >= gap && calls[order[at - gap]].begin > calls[moved].begin; at -= gap) order[at] = order[at - gap];
            order[at] = moved;
        }
    }
}

/* Of each stream of the capture the calls that began in it, back to where all are older. */
static cs_u32 gather(const struct list *l)
{
    cs_ref members[CS_CAPTURE_MEMBERS];
    cs_u64 from[CS_CAPTURE_MEMBERS];
    cs_u32 found = 0, streams = cs_gpu_capture_members(l->origin, l->until, members, from);
    for (cs_u32 k = 0; k < streams; k++) {
        const struct cs_gpu_lane *lane = lane_at(members[k]);
        const cs_u64 since = from[k] > l->from ? from[k] : l->from;
        const struct node_call *c;
        for (cs_u64 n = lane ? lane->node_calls : 0; (c = call_at(n)) && c->stream == members[k] && c->newest >= since; n = c->before)
            if (c->begin >= since && c->begin < l->until && found < CALLS) order[found++] = (cs_u32)(c - calls);
    }
    return found;
}

static enum list_state list_make(struct list *l)
{
    if (l->looked == call_count) return WAITS;
    l->looked = call_count;
    cs_u32 found = gather(l);
    if (found != l->length) return found < l->length ? WAITS : FAILED;
    sort(found);
    for (cs_u32 i = 1; i < found; i++)
        if (calls[order[i]].begin < calls[order[i - 1]].end) return FAILED; /* by two threads at once: which was first? */
    l->first = node_count;
    for (cs_u32 i = 0; i < found; i++) {
        const struct node_call *c = &calls[order[i]];
        nodes[node_count++ % NODES] = (struct node){.stream = c->stream, .kernel = c->kernel, .kind = c->kind};
    }
    return STANDS;
}

void cs_gpu_graphs_settle(void)
{
    bool none = true;
    forget_old_numbers();
    for (cs_u64 serial = waiting; serial <= list_count; serial++) {
        struct list *l = list_get(serial);
        if (l && l->state == WAITS && (l->state = list_make(l)) == WAITS && ++l->rounds > ROUNDS) l->state = FAILED;
        if (none && l && l->state == WAITS) none = false;
        if (none) waiting = serial + 1;
    }
}

/* --- where a node stands --- */

static bool agrees(const struct node *node, const struct cs_gpu_work *w)
{
    switch (w->kind) {
    case CS_GPU_KERNEL: return node->kind == CS_KIND_LAUNCH && node->kernel == w->kernel.name && node->kernel > NAME_OTHERS;
    case CS_GPU_COPY: return node->kind == CS_KIND_COPY;
    case CS_GPU_SET: return node->kind == CS_KIND_SET;
    default: return false;
    }
}

struct cs_stream *cs_gpu_graph_stream(const struct cs_gpu_work *w)
{
    cs_u32 exec = (cs_u32)(w->node >> 32), index = (cs_u32)w->node;
    if (!exec || exec != w->graph || execs[exec % GRAPHS].id != exec) return NULL;
    const struct list *l = list_get(execs[exec % GRAPHS].list);
    if (!l || l->state != STANDS || index >= l->length || l->first + NODES < node_count) return NULL;
    const struct node *node = &nodes[(l->first + index) % NODES];
    if (!agrees(node, w)) return NULL;
    struct cs_stream *stream = cs_pool_get(&cs_streams, node->stream);
    if (!stream || (cs_u32)stream->device != w->device) return NULL;
    cs_u64 ended = cs_load(&stream->ended);
    return ended && ended < w->end ? NULL : stream;
}
