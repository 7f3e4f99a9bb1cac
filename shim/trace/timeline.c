#include "shim/trace/timeline.h"

#include <string.h>

#include "shim/base/clock.h"
#include "shim/gpu/mark.h"
#include "shim/object/event.h"
#include "shim/trace/annotation.h"
#include "shim/trace/arrow.h"
#include "shim/trace/call_slice.h"
#include "shim/trace/gpu.h"
#include "shim/trace/lanes.h"
#include "shim/trace/listener.h"
#include "shim/out/output.h"
#include "shim/trace/runtime.h"
#include "shim/trace/stream_life.h"
#include "shim/trace/thread_row.h"
#include "shim/trace/totals.h"
#include "shim/trace/windows.h"

CS_READ_MOSTLY const struct cs_listener *cs_listener;

static cs_u64 latest_ns; /* up to which the host's slices reach */

/* Whether a call says more than its slice shows, by its row in the table: next to none that is made often does. */
static bool tells[CS_CALL_COUNT];

/* What a call is summed up as, by its row: an enum cs_summed_call, or behind those an enum cs_blocking_call, + 1; 0: as nothing. */
static unsigned char summed_as[CS_CALL_COUNT];

static unsigned char sum_of(const struct cs_call_info *info, enum cs_call call)
{
    static const unsigned char work[CS_KIND_COUNT] = {
        [CS_KIND_LAUNCH] = CS_SUMMED_LAUNCH + 1, [CS_KIND_COPY] = CS_SUMMED_COPY + 1, [CS_KIND_SET] = CS_SUMMED_SET + 1, [CS_KIND_GRAPH] = CS_SUMMED_GRAPH + 1};
    enum cs_blocking_call waits = info->how & CS_HOW_WIDE ? CS_BLOCKED_BY_CONTEXT : CS_BLOCKED_BY_STREAM;
    if (cs_call_enqueues(call)) return work[info->kind];
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++)
        if (info->shown[i].format == CS_FORMAT_CAUSE) waits = CS_BLOCKED_BY_EVENT;
    return info->kind == CS_KIND_SYNC ? (unsigned char)(CS_SUMMED_CALLS + waits + 1) : 0;
}

static void tells_make(void)
{
    for (int call = 1; call < CS_CALL_COUNT; call++) {
        const struct cs_call_info *info = &cs_call_info[call];
        summed_as[call] = sum_of(info, (enum cs_call)call);
        tells[call] = info->kind == CS_KIND_SYNC || info->kind == CS_KIND_WAIT || info->how & CS_HOW_BEGINS;
        for (int i = 0; i < CS_VALUES && info->shown[i].label; i++) {
            const enum cs_format format = info->shown[i].format;
            tells[call] |= format == CS_FORMAT_CAUSE || format == CS_FORMAT_CAPTURE || format == CS_FORMAT_GRAPH_IDS;
        }
    }
}

void cs_timeline_begin(enum cs_begin why)
{
    if (why == CS_BEGIN_FILE) {
        latest_ns = 0;
        cs_arrows_begin();
        cs_annotations_begin();
    }
    cs_lanes_begin(why == CS_BEGIN_PART);
    cs_gpu_trace_begin(why == CS_BEGIN_FILE);
    cs_call_slices_begin();
    tells_make();
    cs_packets_choose();
    cs_output_commit(cs_totals_header(cs_output_room()));
    cs_lane_process();
    if (why == CS_BEGIN_FILE) return;
    cs_stream_lives_go_on();
    cs_annotations_part_begins(latest_ns);
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next) cs_thread_row(t)->part_first_ns = cs_thread_row(t)->last_end_ns;
}

/* --- what calls say of streams --- */

/* A capture stands on the row of waits of the stream that it began on, from the begin call's return to the end call. */
static void capture_slice(struct cs_stream *stream, const struct cs_record *r, cs_u64 began)
{
    cs_u64 from = cs_clock_ns(began), to = cs_clock_ns(r->begin);
    cs_u32 tid = cs_gpu_wait_tid(stream, &from, to > from ? to : from + 1);
    if (!tid) return;
    struct cs_draft e = cs_slice(cs_draft(), "cs_stream", cs_title("capture"), cs_lane_at((cs_u32)stream->device, tid), from, to);
    if (r->result != CUDA_SUCCESS) e = cs_arg_result(e, r->result);
    cs_commit(cs_args_end(cs_arg_stream(e, stream)));
}

/* What becomes of the nodes of a graph. */
static void tell_graphs(const struct cs_record *r, struct cs_stream *stream)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    const cs_u64 *ids = NULL;
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++)
        if (info->shown[i].format == CS_FORMAT_GRAPH_IDS) ids = &r->value[i];
    if (!ids || r->result != CUDA_SUCCESS) return;
    cs_u32 graph = (cs_u32)ids[0], exec = (cs_u32)(ids[0] >> 32), nodes = (cs_u32)ids[1];
    if (info->kind == CS_KIND_CAPTURE && stream) cs_match_graph_captured(stream, r->value[0], r->begin, graph, nodes);
    else if (info->how & CS_HOW_UPDATES) cs_match_graph_updated(exec);
    else if (info->kind == CS_KIND_GRAPH) cs_match_graph_instantiated(graph, exec, nodes);
}

/* Which of its values are the record that a wait waits for; -1: the call is no such wait. */
static int cause_at(const struct cs_record *r)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++)
        if (info->shown[i].format == CS_FORMAT_CAUSE) return i;
    return -1;
}

/* A stream joins a capture by its wait, before the slice that says so. An event that is recorded elsewhere too was last recorded by the call that we know of if
 * the wait joins or is in a capture: the driver takes no other one there. */
static void settle_wait(struct cs_record *r, struct cs_stream *stream)
{
    cs_u64 *cause = &r->value[cause_at(r)];
    const bool unsure = *cause & CS_CAUSE_UNSURE, by_stream = stream && cs_call_info[r->call].kind == CS_KIND_WAIT;
    *cause &= ~CS_CAUSE_UNSURE;
    if (by_stream) cs_match_capture_joined(stream, r->begin, cause);
    if (unsure && !(by_stream && cs_match_captured(stream, r))) cause[0] = 0, cause[1] = CS_CAUSE_ELSEWHERE;
}

/* When the capture began that the call has ended; 0: it has ended none. */
static cs_u64 capture_of(const struct cs_record *r)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++)
        if (info->shown[i].format == CS_FORMAT_CAPTURE) return r->value[i];
    return 0;
}

static void tell_causes(const struct cs_thread *thread, const struct cs_record *r, struct cs_stream *stream, cs_u64 begin)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    if (info->how & CS_HOW_BEGINS && stream && r->result == CUDA_SUCCESS) cs_match_capture_began(stream, r->end);
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++)
        if (info->shown[i].format == CS_FORMAT_CAUSE && r->value[i] && r->result == CUDA_SUCCESS) cs_arrow_write(r->value[i], (cs_u32)r->value[i + 1], begin, thread->tid);
    const cs_u64 began = stream ? capture_of(r) : 0;
    if (!began) return;
    capture_slice(stream, r, began);
    cs_match_capture_ended(stream, began, r->begin);
}

static void sum_up_copy(struct cs_call_sums *sums, const struct cs_record *r, cs_u64 ns)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    const enum cs_way way = cs_call_way(r->call);
    if (info->how & CS_HOW_BLOCKS) sums->blocked_ns[CS_BLOCKED_BY_COPY] += ns;
    sums->copies[way]++;
    if (info->shown[0].format == CS_FORMAT_SIZE) sums->bytes[way] += r->value[0];
}

static inline void sum_up(const struct cs_record *r, const struct cs_stream *stream, cs_u64 ns)
{
    const unsigned as = summed_as[r->call];
    struct cs_call_sums *sums = &cs_totals.sum.call;
    if (as > CS_SUMMED_CALLS) sums->blocked_ns[as - CS_SUMMED_CALLS - 1] += ns;
    if (!as || as > CS_SUMMED_CALLS || r->result != CUDA_SUCCESS) return;
    sums->made[as - 1]++;
    if (stream && cs_load(&stream->origin) >= CS_STREAM_LEGACY) sums->on_default[cs_load(&stream->origin) - CS_STREAM_LEGACY]++;
    if (CS_UNLIKELY(as - 1 == CS_SUMMED_COPY)) sum_up_copy(sums, r, ns);
}

/* Where the host or a stream waits: the record that an event stood for, if it waits for one. */
static void tell_wait(const struct cs_thread *thread, const struct cs_record *r, struct cs_stream *stream, cs_u64 begin, cs_u64 end)
{
    const struct cs_call_info *info = &cs_call_info[r->call];
    const int at = cause_at(r);
    if (info->kind == CS_KIND_SYNC || info->kind == CS_KIND_WAIT) cs_gpu_trace_sync(thread, r, stream, at < 0 ? NULL : &r->value[at], begin, end);
}

/* Where a callback's slice begins. A gap may have begun before the callback, in one whose record is lost, and ended in it: the slice then begins behind it,
 * and behind any other gap since, so that it holds nothing in part. */
static cs_u64 callback_begin(struct cs_thread_row *row, cs_u64 begin)
{
    if (row->loss_begin_ns && row->loss_begin_ns < begin && begin < row->loss_end_ns) begin = row->loss_end_ns;
    row->loss_begin_ns = row->loss_end_ns = 0;
    return begin;
}

/* A policy leaves it out: what it puts on the GPU is known by it, and left out too. Other streams may have been in a capture on that one. Between windows only the
 * end of a capture has such a record. */
static void record_muted(struct cs_thread *thread, struct cs_record r)
{
    struct cs_stream *stream = cs_pool_get(&cs_streams, r.stream);
    r.call &= (cs_u16)~CS_CALL_MUTED;
    memset(cs_thread_row(thread)->cpu_ns, 0, sizeof cs_thread_row(thread)->cpu_ns);
    cs_match_muted(thread, &r);
    CS_TELL(call, thread, &r, stream, 0, cs_clock_ns(r.begin));
    const cs_u64 began = stream && tells[r.call] ? capture_of(&r) : 0;
    if (began) cs_match_capture_ended(stream, began, r.begin);
    if (!cs_windows_covers(r.begin)) cs_totals.muted++;
}

void cs_timeline_record(struct cs_thread *thread, const struct cs_record *r)
{
    if (CS_UNLIKELY(r->call & CS_CALL_MUTED)) {
        record_muted(thread, *r);
        return;
    }
    if (r->call == CS_CALL_SITE) {
        CS_TELL(place, thread, r);
        return;
    }
    if (r->call == CS_CALL_CLOCK) {
        cs_thread_row(thread)->cpu_ns[r->value[1]] = r->value[0];
        return;
    }
    if (cs_output_full()) {
        cs_totals_cut(r->call == CS_CALL_LOSS ? r->value[0] : cs_annotation_count(r), cs_clock_ns(r->begin), cs_clock_ns(r->end));
        return;
    }
    struct cs_thread_row *row = cs_thread_row(thread);
    if (!row->announced) {
        if (!row->last_end_ns) row->is_driver = r->call == CS_CALL_CALLBACK || (r->call == CS_CALL_DELAY && r->value[2]);
        cs_lane_thread(thread, false);
    }
    if (cs_call_is_runtime(r->call)) {
        if (r->value[1]) cs_match_runtime(thread, r);
        const cs_u64 ended = cs_runtime_slice(thread, r);
        if (ended > latest_ns) latest_ns = ended;
        return;
    }
    if (r->call >= CS_CALL_RANGE_PUSH) {
        cs_annotation_record(thread, r);
        return;
    }
    struct cs_stream *stream = cs_pool_get(&cs_streams, r->stream);
    if (stream) cs_stream_life_begins(stream), row->device = (cs_u32)stream->device;
    struct cs_record settled;
    if (tells[r->call] && r->result == CUDA_SUCCESS && cause_at(r) >= 0) settled = *r, settle_wait(&settled, stream), r = &settled;
    cs_u64 begin = cs_clock_ns(r->begin), end = cs_clock_ns(r->end);
    /* Slices of a thread follow each other; a callback's may hold others. Two that round to the same nanosecond are kept apart. */
    if (r->call == CS_CALL_CALLBACK) begin = callback_begin(row, begin);
    else if (begin < row->last_end_ns) begin = row->last_end_ns;
    if (r->call == CS_CALL_CALLBACK && end < row->last_end_ns) end = row->last_end_ns;
    if (end <= begin) end = begin + 1;
    if (end > row->last_end_ns) row->last_end_ns = end;
    if (end > latest_ns) latest_ns = end;
    if (r->call == CS_CALL_LOSS) {
        if (!row->loss_begin_ns) row->loss_begin_ns = begin;
        row->loss_end_ns = end;
        row->last_end_ns = end + 1; /* what begins at its end is to hold what comes then */
        memset(row->cpu_ns, 0, sizeof row->cpu_ns); /* of a call that is lost */
        cs_loss_slice(thread->tid, begin, end, r->value[0]);
        CS_TELL(lost, thread, r->value[0]);
        return;
    }
    if (r->call == CS_CALL_CALLBACK) {
        cs_callback_slice(thread->tid, r, stream, begin, end);
        cs_annotations_crossed(thread, begin);
    } else if (r->call == CS_CALL_DELAY) {
        cs_call_slice(thread->tid, r, stream, 0, NULL, begin, end);
    } else {
        if (stream) cs_stream_life_works(stream, r);
        cs_u64 work = cs_match_call(thread, r, stream, begin);
        CS_TELL(call, thread, r, stream, cs_gpu_samples() ? 0 : work, begin); /* of a sample nobody can say what waited for what */
        cs_call_slice(thread->tid, r, stream, work, row->cpu_ns, begin, end);
        row->cpu_ns[CS_CLOCK_AT_BEGIN] = row->cpu_ns[CS_CLOCK_AT_END] = 0;
    }
    if (cs_output_full()) { /* making room for it ended the file */
        cs_totals_cut(1, begin, end);
        return;
    }
    cs_totals_gathered(begin, end);
    cs_totals.sum.recorded++;
    if (r->call == CS_CALL_CALLBACK || r->call == CS_CALL_DELAY) return;
    cs_totals.sum.calls++;
    sum_up(r, stream, end - begin);
    cs_match_graph_call(r, stream);
    if (!tells[r->call]) return;
    tell_causes(thread, r, stream, begin);
    tell_wait(thread, r, stream, begin, end);
    tell_graphs(r, stream);
}

void cs_timeline_stream_end(struct cs_stream *stream, cs_u64 ended)
{
    cs_stream_life_ended(stream, ended);
    cs_match_lane_free(stream);
}

/* --- parts --- */

size_t cs_timeline_pending(void) { return cs_stream_lives_shown() * (size_t)320; }

void cs_timeline_part_end(void)
{
    cs_arrows_part_ends(latest_ns);
    cs_annotations_part_ends(latest_ns);
    cs_windows_part_ends();
    cs_stream_lives_part_end(latest_ns);
}

void cs_timeline_thread_end(struct cs_thread *thread)
{
    const struct cs_thread_row *row = cs_thread_row(thread);
    cs_annotations_thread_ends(thread, thread->ended);
    cs_u64 lost = cs_load_acq(&thread->lost);
    if (lost && cs_output_full()) cs_totals_cut(lost, cs_clock_ns(cs_load(&thread->lost_begin)), cs_clock_ns(cs_load(&thread->lost_end)));
    if (cs_output_full()) return;
    if (lost) {
        cs_u64 begin = cs_clock_ns(cs_load(&thread->lost_begin)), end = cs_clock_ns(cs_load(&thread->lost_end));
        cs_lane_thread(thread, false);
        cs_loss_slice(thread->tid, begin < row->last_end_ns ? row->last_end_ns : begin, end, lost);
        CS_TELL(lost, thread, lost);
    }
    if (row->announced) cs_lane_thread(thread, true);
}
