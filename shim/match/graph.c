/*
 * Which stream each node of a captured graph was captured from.
 *
 * A profiler tells of a node with the number of the executable graph and the node's index: the nodes of a capture are numbered in the order of the calls
 * that made them. So the calls that make nodes are kept for a while, and when a capture has ended they are its list. The list stands only if it is as long as
 * the graph, and no two of its calls were made at once; whatever else is in the graph then has no say. All tables are rings: the oldest is forgotten. A node of
 * which nothing is known any more stands on the lane of its launch, and is counted.
 */
#include "shim/base/no_room.h"
#include "shim/gpu/backend.h"
#include "shim/match/state.h"
#include "shim/object/graph.h"

enum { NAME_OTHERS = 1 };

static struct cs_match_tables *const table = &cs_match.table;
static struct cs_graphs *const state = &cs_match.graphs;

static struct cs_node_list *list_get(cs_u64 serial)
{
    struct cs_node_list *l = &table->lists[serial % CS_GRAPHS];
    return serial && l->serial == serial ? l : NULL;
}

static struct cs_node_list *list_of_graph(cs_u32 graph)
{
    for (cs_u64 serial = state->lists; serial && serial + CS_GRAPHS > state->lists; serial--) {
        struct cs_node_list *l = list_get(serial);
        if (l && l->graph == graph) return l;
    }
    return NULL;
}

/* Where the profiler has begun anew, its numbers may be those of other graphs. */
static void forget_old_numbers(void)
{
    if (state->epoch == cs_load(&cs_graph_epoch)) return;
    state->epoch = cs_load(&cs_graph_epoch);
    for (cs_u32 i = 0; i < CS_GRAPHS; i++) table->execs[i].list = table->execs[i].forgotten = table->lists[i].graph = 0;
}

/* --- what the rings tell --- */

static bool makes_node(const struct cs_record *r)
{
    if (cs_call_implies((enum cs_call)r->call, CS_NODE)) return true;
    switch (cs_call_info[r->call].kind) {
    case CS_KIND_GRAPH: return cs_call_enqueues((enum cs_call)r->call);
    case CS_KIND_WAIT: return (r->call == CS_CALL_cuStreamWaitEvent || r->call == CS_CALL_cuStreamWaitEvent_ptsz) && r->value[1] & CU_EVENT_WAIT_EXTERNAL;
    case CS_KIND_EVENT:
        return (r->call == CS_CALL_cuEventRecordWithFlags || r->call == CS_CALL_cuEventRecordWithFlags_ptsz) && r->value[1] & CU_EVENT_RECORD_EXTERNAL;
    default: return false;
    }
}

/* By its number, while it is kept. */
static const struct cs_node_call *call_at(cs_u64 number)
{
    return number && number + CS_NODE_CALLS > state->calls ? &table->node_calls[(number - 1) % CS_NODE_CALLS] : NULL;
}

static struct cs_match_lane *lane_at(cs_ref ref)
{
    struct cs_stream *stream = cs_pool_get(&cs_streams, ref);
    return stream ? cs_match_lane_of(stream) : NULL;
}

void cs_match_graph_call(const struct cs_record *r, const struct cs_stream *stream)
{
    if (!stream || r->result != CUDA_SUCCESS || !makes_node(r) || cs_gpu_marks() || !cs_gpu_is_on()) return;
    const struct cs_call_info *info = &cs_call_info[r->call];
    struct cs_match_lane *lane = cs_lane_made(stream) ?: cs_match_lane_of(stream);
    if (!lane) return;
    table->node_calls[state->calls++ % CS_NODE_CALLS] = (struct cs_node_call){
        .begin = r->begin, .end = r->end, .stream = r->stream, .kind = info->kind, .before = lane->node_calls,
        .kernel = info->shown[0].format == CS_FORMAT_KERNEL ? (cs_name)r->value[0] : 0};
    lane->node_calls = state->calls;
}

void cs_match_graph_instantiated(cs_u32 graph, cs_u32 exec, cs_u32 length)
{
    forget_old_numbers();
    const struct cs_node_list *l = graph && exec ? list_of_graph(graph) : NULL;
    struct cs_graph_exec *e = &table->execs[exec % CS_GRAPHS];
    if (!exec) return;
    if (e->list && e->id != exec) e->forgotten = e->id;
    e->id = exec;
    e->list = l && l->length == length && (l->stands || l->forgotten) ? l->serial : 0;
}

void cs_match_graph_updated(cs_u32 exec)
{
    if (table->execs[exec % CS_GRAPHS].id == exec) table->execs[exec % CS_GRAPHS].list = 0;
}

/* --- the list of a capture --- */

/* The calls gathered, by the time at which they began. */
static void sort(cs_u32 n)
{
    const struct cs_node_call *calls = table->node_calls;
    cs_u32 *order = table->node_order;
    for (cs_u32 gap = n / 2; gap; gap /= 2) {
        for (cs_u32 i = gap; i < n; i++) {
            cs_u32 at = i, moved = order[i];
            for (; at >= gap && calls[order[at - gap]].begin > calls[moved].begin; at -= gap) order[at] = order[at - gap];
            order[at] = moved;
        }
    }
}

/* Of each stream of the capture the calls that began in it, back to where all ended before it. *forgotten: or to where they are kept no more. */
static cs_u32 gather(cs_ref origin, cs_u64 began, cs_u64 ended, bool *forgotten)
{
    cs_ref members[CS_MEMBERS];
    cs_u64 from[CS_MEMBERS];
    cs_u32 found = 0, streams = cs_capture_members(origin, ended, members, from);
    for (cs_u32 k = 0; k < streams; k++) {
        const struct cs_match_lane *lane = lane_at(members[k]);
        const cs_u64 since = from[k] > began ? from[k] : began;
        const struct cs_node_call *c;
        cs_u64 n = lane ? lane->node_calls : 0;
        for (; (c = call_at(n)) && c->stream == members[k] && c->end >= since; n = c->before)
            if (c->begin >= since && c->begin < ended && found < CS_NODE_CALLS) table->node_order[found++] = (cs_u32)(c - table->node_calls);
        *forgotten |= n && !c;
    }
    return found;
}

static const struct cs_node_call *nth(cs_u32 i) { return &table->node_calls[table->node_order[i]]; }

/* By two threads at once: which was first? */
static bool were_at_once(cs_u32 n)
{
    bool at_once = false;
    for (cs_u32 i = 1; i < n; i++) at_once |= nth(i)->begin < nth(i - 1)->end;
    return at_once;
}

void cs_match_graph_captured(struct cs_stream *origin, cs_u64 began, cs_u64 ended, cs_u32 graph, cs_u32 length)
{
    if (!graph) return;
    forget_old_numbers();
    bool forgotten = cs_match.captures.forgotten >= began;
    const cs_u32 found = gather(cs_load(&origin->object.ref), began, ended, &forgotten);
    sort(found);
    const bool stands = found == length && !were_at_once(found);
    const cs_u64 serial = ++state->lists;
    table->lists[serial % CS_GRAPHS] = (struct cs_node_list){.serial = serial, .graph = graph, .length = length, .first = state->nodes, .stands = stands,
                                                                .forgotten = forgotten && found < length};
    for (cs_u32 i = 0; i < found && stands; i++)
        table->nodes[state->nodes++ % CS_NODES] = (struct cs_node){.stream = nth(i)->stream, .kernel = nth(i)->kernel, .kind = nth(i)->kind};
}

/* --- where a node stands --- */

/* NULL: it is not known. */
static const struct cs_node *node_of(cs_u32 exec, cs_u32 index)
{
    const struct cs_graph_exec *e = &table->execs[exec % CS_GRAPHS];
    const struct cs_node_list *l = e->id == exec ? list_get(e->list) : NULL;
    const bool kept = l && !l->forgotten && l->first + CS_NODES >= state->nodes;
    if (!kept && (e->id == exec ? e->list != 0 : exec <= e->forgotten)) cs_no_room(CS_NO_ROOM_FOR_NODES, 1);
    return kept && index < l->length ? &table->nodes[(l->first + index) % CS_NODES] : NULL;
}

static bool agrees(const struct cs_node *node, const struct cs_gpu_work *w)
{
    if (w->kind == CS_GPU_GRAPH || w->kind != cs_gpu_kind_of(node->kind)) return false;
    return w->kind != CS_GPU_KERNEL || (node->kernel == w->kernel.name && node->kernel > NAME_OTHERS);
}

struct cs_stream *cs_graph_stream(const struct cs_gpu_work *w)
{
    cs_u32 exec = (cs_u32)(w->node >> 32), index = (cs_u32)w->node;
    forget_old_numbers();
    const struct cs_node *node = exec && exec == w->graph ? node_of(exec, index) : NULL;
    if (!node || !agrees(node, w)) return NULL;
    struct cs_stream *stream = cs_pool_get(&cs_streams, node->stream);
    if (!stream || (cs_u32)stream->device != w->device) return NULL;
    cs_u64 ended = cs_load(&stream->ended);
    return ended && ended < w->end ? NULL : stream;
}
