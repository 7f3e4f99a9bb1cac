#include "shim/trace/annotation.h"

#include <stdio.h>
#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/cut.h"
#include "shim/base/memory.h"
#include "shim/base/no_room.h"
#include "shim/object/given.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"
#include "shim/trace/thread_row.h"
#include "shim/trace/totals.h"
#include "shim/trace/windows.h"

enum { TEXT_MAX = 2048, SHORT_TEXT_MAX = 512, NOTE_MAX = 128 }; /* an event has to fit CS_EVENT_MAX with each byte of its texts escaped */

/* A range that has begun and not ended. */
struct open_range {
    cs_u64 begin_ns;
    cs_u64 value[CS_VALUES]; /* of its record */
    cs_u32 id, tid;
    cs_u16 place;
    bool continued; /* began in an earlier part of the trace */
    bool crosses; /* it can't be a slice of its thread */
    bool early; /* the end of a process range came out of its thread's ring before the begin came out of another's; at begin_ns */
};

/* Of one thread, the outermost first. Mapped when the thread first pushes a range, and kept for threads that use its state later. */
struct cs_open_ranges {
    cs_u32 count;
    struct open_range at[CS_RANGES_OPEN];
};

/* Process ranges, each within WINDOW slots from the one that its id, a number that counts up, tells. Where too many are open at once, the oldest of these
 * gives its slot to the new one: the program hardly ends it any more. Its own end is not known then. */
enum { SLOTS = 1 << 14, WINDOW = 64 };
static struct open_range *started;
static bool any_started; /* else nothing in it was ever touched */
CS_TABLE(TRACE, started, SLOTS);
static cs_u64 next_span; /* id of async spans that are no process ranges: beyond those of all process ranges */

void cs_annotations_begin(void)
{
    if (any_started) cs_memory_forget(started, SLOTS * sizeof *started);
    any_started = false;
    next_span = (cs_u64)1 << 40;
}

/* --- events --- */

static struct cs_draft payload(struct cs_draft e, unsigned type, cs_u64 bits)
{
    double wide;
    float narrow;
    cs_u32 low = (cs_u32)bits;
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &low, sizeof narrow);
    switch (type) { /* nvtxPayloadType_t */
    case 1: return cs_value_uint(e, bits);
    case 2: return cs_value_int(e, (cs_i64)bits);
    case 3: return cs_value_double(e, wide);
    case 4: return cs_value_uint(e, low);
    case 5: return cs_value_int(e, (int32_t)low);
    default: return cs_value_double(e, (double)narrow);
    }
}

static struct cs_draft attributes(struct cs_draft e, const struct cs_annotation *what)
{
    char color[16];
    if (what->domain) e = cs_arg_text(e, "domain", cs_name_text(what->domain), SHORT_TEXT_MAX);
    if (what->category) {
        cs_name name = cs_given_category_name(what->domain, what->category);
        e = cs_arg_uint(e, "category", what->category);
        if (name) e = cs_arg_text(e, "category name", cs_name_text(name), SHORT_TEXT_MAX);
    }
    if (what->colored) {
        snprintf(color, sizeof color, "0x%08x", what->color); /* aarrggbb */
        e = cs_arg_word(e, "color", color);
    }
    if (what->payload_type >= 1 && what->payload_type <= 6) e = payload(cs_arg_key(e, "payload"), what->payload_type, what->payload);
    return e;
}

static const char category[] = "user_annotation";

/* The text stays until the next call. */
static struct cs_title title_of(const struct cs_annotation *what)
{
    static char cut[TEXT_MAX + 1];
    const char *text = cs_name_text(what->text);
    if (!what->text) return cs_title("(no text)");
    cs_name_cut(cut, sizeof cut, text, strlen(text));
    return cs_title_given(cut, TEXT_MAX);
}

static struct cs_draft cut_end(struct cs_draft e, enum cs_cut cut)
{
    if (cut) e = cs_arg_word(cs_arg_word(e, "cs.note", cs_cut_info[cut].text), "cs.cut", cs_cut_info[cut].key);
    return cs_args_end(e);
}

/* An event that stands for `count` records is in the file, or making room for it has ended the file. */
static void counted(cs_u64 count, cs_u64 begin_ns, cs_u64 end_ns)
{
    if (cs_output_full()) {
        cs_totals_cut(count, begin_ns, end_ns);
        return;
    }
    cs_totals_gathered(begin_ns, end_ns);
    cs_totals.sum.recorded += count;
}

/* One end of a span. */
static struct cs_draft span_end(struct cs_draft e, enum cs_end end, const struct cs_annotation *what, cs_u64 id, cs_u32 tid, cs_u64 ns, enum cs_cut cut)
{
    e = cs_span_end(e, end, category, title_of(what), cs_host_lane(tid), ns, id);
    if (end == CS_END_FIRST) e = attributes(e, what);
    return cut_end(e, cut);
}

static void span_begins(const struct cs_annotation *what, cs_u64 id, cs_u32 tid, cs_u64 ns, enum cs_cut cut)
{
    cs_commit(span_end(cs_draft(), CS_END_FIRST, what, id, tid, ns, cut));
}

static void span_ends(const struct cs_annotation *what, cs_u64 id, cs_u32 tid, cs_u64 ns, enum cs_cut cut)
{
    cs_commit(span_end(cs_draft(), CS_END_LAST, what, id, tid, ns, cut));
}

/* Both ends or neither are in the file. */
static void span(const struct cs_annotation *what, cs_u32 tid, cs_u64 begin_ns, cs_u64 end_ns, enum cs_cut cut, cs_u64 count)
{
    _Static_assert(6 * (2 * TEXT_MAX + 2 * SHORT_TEXT_MAX + NOTE_MAX) + 1024 <= CS_EVENT_MAX, "a span's two events in the room of one");
    cs_u64 id = next_span++;
    struct cs_draft e = span_end(cs_draft(), CS_END_FIRST, what, id, tid, begin_ns, cut);
    cs_commit(span_end(e, CS_END_LAST, what, id, tid, end_ns, CS_CUT_NONE));
    counted(count, begin_ns, end_ns);
}

/* --- pushed ranges --- */

/* The slice of a range that is over, or of as much of it as this part of the trace has (`count` 0 then). */
static void range_slice(const struct cs_thread *thread, const struct open_range *range, cs_u64 end_ns, enum cs_cut cut, cs_u64 count)
{
    struct cs_thread_row *row = cs_thread_row(thread);
    struct cs_annotation what;
    if (range->continued && !cut) cut = CS_CUT_CONTINUED;
    cs_annotation_unpack(range->value, &what);
    if (end_ns < row->last_end_ns) end_ns = row->last_end_ns; /* which lies behind the begin, since the range took that nanosecond */
    row->last_end_ns = end_ns;
    if (cs_output_full()) {
        cs_totals_cut(count, range->begin_ns, end_ns);
        return;
    }
    if (range->crosses) {
        span(&what, thread->tid, range->begin_ns, end_ns, cut, count);
        return;
    }
    struct cs_draft e = cs_slice(cs_draft(), category, title_of(&what), cs_host_lane(thread->tid), range->begin_ns, end_ns);
    cs_commit(cut_end(attributes(e, &what), cut));
    counted(count, range->begin_ns, end_ns);
}

/* The records that should have ended them are lost: those that stand where the thread says that no open range is. */
static void end_stale(const struct cs_thread *thread, cs_u32 places, cs_u32 but_id)
{
    struct cs_open_ranges *open = cs_thread_row(thread)->open;
    while (open->count && open->at[open->count - 1].place >= places && open->at[open->count - 1].id != but_id) {
        open->count--;
        range_slice(thread, &open->at[open->count], cs_thread_row(thread)->last_end_ns, CS_CUT_END_LOST, 1);
    }
}

static void range_pushed(const struct cs_thread *thread, const struct cs_record *r, struct cs_annotation_record more)
{
    struct cs_thread_row *row = cs_thread_row(thread);
    if (!row->open) row->open = cs_memory_map(sizeof *row->open, "the open NVTX ranges of a thread");
    struct cs_open_ranges *open = row->open;
    if (!open) return;
    end_stale(thread, more.place, 0);
    if (open->count == CS_RANGES_OPEN) return;
    cs_u64 begin = cs_clock_ns(r->begin);
    if (begin < row->last_end_ns) begin = row->last_end_ns;
    struct open_range *range = &open->at[open->count++];
    *range = (struct open_range){.begin_ns = begin, .id = more.id, .tid = thread->tid, .place = more.place};
    memcpy(range->value, r->value, sizeof range->value);
    row->last_end_ns = begin + 1; /* what comes in it begins later, and so is shorter */
}

static void range_popped(const struct cs_thread *thread, const struct cs_record *r, const struct cs_annotation *what, struct cs_annotation_record more)
{
    struct cs_open_ranges *open = cs_thread_row(thread)->open;
    cs_u64 end = cs_clock_ns(r->end);
    if (open) end_stale(thread, more.place, more.id);
    cs_u32 i = open ? open->count : 0;
    while (i && open->at[i - 1].id != more.id) i--;
    if (!i) { /* the record of its push is lost: where it began among the calls that are there is not known */
        cs_u64 begin = cs_clock_ns(r->begin);
        span(what, thread->tid, begin, end > begin ? end : begin + 1, cs_windows_covers(r->begin) ? CS_CUT_BEGAN_UNRECORDED : CS_CUT_BEGIN_LOST, 1);
        return;
    }
    struct open_range range = open->at[--i];
    memmove(&open->at[i], &open->at[i + 1], (open->count - i - 1) * sizeof range);
    open->count--;
    range.crosses |= i < open->count; /* those above it go on */
    range_slice(thread, &range, end, !r->begin ? CS_CUT_BEGAN_BEFORE : cs_windows_covers(r->begin) ? CS_CUT_BEGAN_UNRECORDED : CS_CUT_NONE, 1);
}

void cs_annotations_crossed(const struct cs_thread *thread, cs_u64 begin_ns)
{
    struct cs_open_ranges *open = cs_thread_row(thread)->open;
    for (cs_u32 i = 0; open && i < open->count; i++)
        if (open->at[i].begin_ns >= begin_ns) open->at[i].crosses = true;
}

void cs_annotations_thread_ends(const struct cs_thread *thread, cs_u64 ended)
{
    struct cs_open_ranges *open = cs_thread_row(thread)->open;
    cs_u64 now = open && open->count ? cs_clock_ns(ended ? ended : cs_ticks()) : 0;
    while (open && open->count) {
        open->count--;
        range_slice(thread, &open->at[open->count], now, ended ? CS_CUT_OPEN_IN_THREAD : CS_CUT_OPEN_IN_PROCESS, 1);
    }
}

/* --- marks --- */

static void mark(const struct cs_thread *thread, const struct cs_record *r, const struct cs_annotation *what)
{
    struct cs_thread_row *row = cs_thread_row(thread);
    cs_u64 ns = cs_clock_ns(r->begin);
    if (ns < row->last_end_ns) ns = row->last_end_ns;
    row->last_end_ns = ns + 1;
    struct cs_draft e = cs_instant(cs_draft(), CS_INSTANT_THREAD, category, title_of(what), cs_host_lane(thread->tid), ns);
    cs_commit(cs_args_end(attributes(e, what)));
    counted(1, ns, ns);
}

/* --- process ranges --- */

/* The slot of an id; where it has none an empty one, that of an end whose begin has not come, or that of the oldest range. */
static struct open_range *started_slot(cs_u32 id)
{
    struct open_range *best = NULL;
    any_started = true;
    for (cs_u32 i = 0; i < WINDOW; i++) {
        struct open_range *slot = &started[(id + i) % SLOTS];
        if (slot->id == id) return slot;
        if (!best || (best->id && (!slot->id || slot->early > best->early || (slot->early == best->early && id - slot->id > id - best->id)))) best = slot;
    }
    return best;
}

static void give_up(struct open_range *slot, cs_u64 now_ns)
{
    struct cs_annotation what;
    if (!slot->id || slot->early) return;
    cs_annotation_unpack(slot->value, &what);
    span_ends(&what, slot->id, slot->tid, now_ns > slot->begin_ns ? now_ns : slot->begin_ns + 1, CS_CUT_END_UNKNOWN);
    cs_no_room(CS_NO_ROOM_FOR_RANGE_ENDS, 1);
}

static void range_started(const struct cs_thread *thread, const struct cs_record *r, const struct cs_annotation *what, cs_u32 id)
{
    cs_u64 begin = cs_clock_ns(r->begin);
    struct open_range *slot = started_slot(id);
    span_begins(what, id, thread->tid, begin, CS_CUT_NONE);
    counted(1, begin, begin);
    if (slot->id == id) { /* its end has been here already */
        span_ends(what, id, slot->tid, slot->begin_ns > begin ? slot->begin_ns : begin + 1, CS_CUT_NONE);
        slot->id = 0;
    } else {
        give_up(slot, begin);
        *slot = (struct open_range){.begin_ns = begin, .id = id, .tid = thread->tid};
        memcpy(slot->value, r->value, sizeof slot->value);
    }
}

static void range_ended(const struct cs_thread *thread, const struct cs_record *r, const struct cs_annotation *what, cs_u32 id)
{
    cs_u64 end = cs_clock_ns(r->end);
    struct open_range *slot = started_slot(id);
    if (slot->id == id && !slot->early) {
        span_ends(what, id, thread->tid, end > slot->begin_ns ? end : slot->begin_ns + 1, CS_CUT_NONE);
        slot->id = 0;
    } else if (!slot->id || slot->early) { /* else it was given up */
        *slot = (struct open_range){.begin_ns = end, .id = id, .tid = thread->tid, .early = true};
    }
}

/* --- parts of the trace --- */

/* Each part names a lane before its first event, and the thread may have been idle in this one. */
static void announce(cs_u32 tid)
{
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next)
        if (t->tid == tid && cs_load(&t->state) != CS_THREAD_FREE) cs_lane_thread(t, false);
}

void cs_annotations_part_ends(cs_u64 now_ns)
{
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next) {
        struct cs_open_ranges *open = cs_thread_row(t)->open;
        bool live = open && open->count && cs_load(&t->state) != CS_THREAD_FREE;
        if (live) cs_lane_thread(t, false);
        for (cs_u32 i = live ? open->count : 0; i-- > 0;)
            range_slice(t, &open->at[i], cs_thread_row(t)->last_end_ns, open->at[i].continued ? CS_CUT_CONTINUED_GOES_ON : CS_CUT_GOES_ON, 0);
    }
    for (cs_u32 i = 0; any_started && i < SLOTS && !cs_output_full(); i++) {
        struct cs_annotation what;
        if (!started[i].id || started[i].early) continue;
        cs_annotation_unpack(started[i].value, &what);
        span_ends(&what, started[i].id, started[i].tid, now_ns > started[i].begin_ns ? now_ns : started[i].begin_ns + 1, CS_CUT_GOES_ON);
    }
}

void cs_annotations_part_begins(cs_u64 now_ns)
{
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next) {
        struct cs_thread_row *row = cs_thread_row(t);
        bool live = row->open && cs_load(&t->state) != CS_THREAD_FREE;
        for (cs_u32 i = 0; live && i < row->open->count; i++) {
            row->open->at[i].begin_ns = row->last_end_ns++; /* each shorter than the one around it */
            row->open->at[i].continued = true;
        }
    }
    for (cs_u32 i = 0; any_started && i < SLOTS && !cs_output_full(); i++) {
        struct cs_annotation what;
        if (!started[i].id || started[i].early) continue;
        cs_annotation_unpack(started[i].value, &what);
        if (now_ns > started[i].begin_ns) started[i].begin_ns = now_ns;
        announce(started[i].tid);
        span_begins(&what, started[i].id, started[i].tid, started[i].begin_ns, CS_CUT_CONTINUED);
    }
}

void cs_annotations_end(void)
{
    cs_u64 now = any_started ? cs_clock_ns(cs_ticks()) : 0;
    for (cs_u32 i = 0; any_started && i < SLOTS && !cs_output_full(); i++) {
        struct cs_annotation what;
        if (!started[i].id || started[i].early) continue;
        cs_annotation_unpack(started[i].value, &what);
        span_ends(&what, started[i].id, started[i].tid, now > started[i].begin_ns ? now : started[i].begin_ns + 1, CS_CUT_OPEN_IN_PROCESS);
        started[i].id = 0;
    }
}

/* --- all of them --- */

cs_u64 cs_annotation_count(const struct cs_record *r) { return r->call != CS_CALL_RANGE_PUSH && r->call != CS_CALL_RANGE_END; }

void cs_annotation_record(const struct cs_thread *thread, const struct cs_record *r)
{
    struct cs_annotation what;
    struct cs_annotation_record more = cs_annotation_unpack(r->value, &what);
    switch (r->call) {
    case CS_CALL_RANGE_PUSH: range_pushed(thread, r, more); break;
    case CS_CALL_RANGE_POP: range_popped(thread, r, &what, more); break;
    case CS_CALL_RANGE_START: range_started(thread, r, &what, more.id); break;
    case CS_CALL_RANGE_END: range_ended(thread, r, &what, more.id); break;
    default: mark(thread, r, &what); break;
    }
}
