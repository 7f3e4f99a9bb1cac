#include "shim/gpu/backend.h"
#include "shim/match/state.h"

static struct cs_match_tables *const table = &cs_match.table;
static struct cs_lanes *const state = &cs_match.lanes;

struct cs_match_lane *cs_match_lane_get(cs_u32 lane) { return cs_lane_get(lane); }
cs_u32 cs_match_lanes_high(void) { return state->high; }

static cs_u32 *bucket_of(cs_u32 device, cs_u32 gpu_id) { return &table->lane_buckets[(gpu_id + device * 0x9e3779b9u) % CS_LANE_BUCKETS]; }

static struct cs_match_lane *lane_new(cs_u32 device, cs_u32 tid)
{
    cs_u32 number = state->free;
    if (!number && state->high == CS_MATCH_LANES) return NULL;
    if (number) state->free = table->lanes[number - 1].next;
    else number = ++state->high;
    struct cs_match_lane *lane = &table->lanes[number - 1];
    *lane = (struct cs_match_lane){.used = true, .number = number, .serial = ++state->serial, .device = device, .tid = tid};
    return lane;
}

/* Which number is that stream's, where it was not known. */
static void learn(struct cs_match_lane *lane, cs_u32 gpu_id)
{
    if (lane->gpu_id || !gpu_id) return;
    cs_u32 *bucket = bucket_of(lane->device, gpu_id);
    lane->gpu_id = gpu_id;
    lane->next = *bucket;
    *bucket = lane->number;
}

/* --- of a stream object --- */

static cs_u32 *place_of(const struct cs_stream *stream) { return &table->lane_of_stream[cs_load(&stream->object.ref) % CS_STREAMS]; }

struct cs_match_lane *cs_match_lane_made(const struct cs_stream *stream) { return cs_lane_made(stream); }

struct cs_match_lane *cs_match_lane_of(const struct cs_stream *stream)
{
    struct cs_match_lane *lane = cs_lane_made(stream);
    if (CS_LIKELY(lane) || !(lane = lane_new((cs_u32)stream->device, stream->lane))) return lane;
    lane->stream = cs_load(&stream->object.ref);
    lane->priority = cs_load(&stream->priority);
    learn(lane, stream->gpu_id);
    *place_of(stream) = lane->number;
    return lane;
}

void cs_lane_ends(const struct cs_match_lane *lane)
{
    cs_u64 ended;
    if (cs_gpu_missing(CS_GPU_TIMES, &ended) != cs_gpu_ended) ended = UINT64_MAX;
    if (lane->last) cs_queue_ends(lane, ended);
}

void cs_match_lane_free(const struct cs_stream *stream)
{
    struct cs_match_lane *lane = cs_match_lane_made(stream);
    if (!lane) return;
    cs_lane_ends(lane);
    cs_u32 *at = lane->gpu_id ? bucket_of(lane->device, lane->gpu_id) : NULL;
    while (at && *at && *at != lane->number) at = &table->lanes[*at - 1].next;
    if (at && *at) *at = lane->next;
    lane->used = false;
    lane->next = state->free;
    state->free = lane->number;
    *place_of(stream) = 0;
}

/* --- of a piece of work --- */

static struct cs_match_lane *known(cs_u32 device, cs_u32 context, cs_u32 gpu_id)
{
    struct cs_match_lane *unsure = NULL;
    for (cs_u32 number = gpu_id ? *bucket_of(device, gpu_id) : 0; number; number = table->lanes[number - 1].next) {
        struct cs_match_lane *lane = &table->lanes[number - 1];
        if (lane->device != device || lane->gpu_id != gpu_id) continue;
        if (lane->context == context) return lane;
        if (!lane->context) unsure = lane; /* the oldest: the last of the bucket */
    }
    return unsure;
}

/* A stream that no program made: named after what is known of it. */
static struct cs_match_lane *internal(cs_u32 device, cs_u32 context, cs_u32 gpu_id)
{
    struct cs_match_lane *lane = lane_new(device, cs_stream_lane((int)device, gpu_id, false));
    if (!lane) return NULL;
    lane->context = context;
    learn(lane, gpu_id);
    return lane;
}

struct cs_match_lane *cs_match_lane_of_work(const struct cs_gpu_work *w, const struct cs_op *op)
{
    const struct cs_stream *stream = cs_pool_get(&cs_streams, w->vstream);
    if (stream || (w->node && (stream = cs_graph_stream(w)))) return cs_match_lane_of(stream);
    struct cs_match_lane *of_call = op ? cs_lane_get(op->lane) : NULL;
    const bool may_be = of_call && of_call->device == w->device && (!of_call->context || of_call->context == w->context);
    const bool is_it = may_be && of_call->gpu_id == w->stream;
    struct cs_match_lane *of_number = is_it ? NULL : known(w->device, w->context, w->stream);
    if (is_it || (may_be && !of_call->gpu_id && !op->graph && !of_number)) {
        of_call->context = w->context;
        learn(of_call, w->stream);
        return of_call;
    }
    return of_number ? of_number : internal(w->device, w->context, w->stream);
}

/* --- placing slices --- */

cs_u32 cs_row_level(const struct cs_row *row, cs_u64 start_ns)
{
    cs_u32 level = 0;
    while (level < CS_LANE_LEVELS && row->filled[level] > start_ns) level++;
    return level;
}

cs_u32 cs_row_place(struct cs_row *row, cs_u64 *start_ns, cs_u64 end_ns)
{
    cs_u32 level = cs_row_level(row, *start_ns);
    if (level == CS_LANE_LEVELS) level--, *start_ns = row->filled[level] < end_ns ? row->filled[level] : end_ns - 1; /* more at once than lanes */
    if (end_ns > row->filled[level]) row->filled[level] = end_ns;
    return level;
}
