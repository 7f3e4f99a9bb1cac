/*
 * How long operations stood waiting for others through the default stream alone, and the slices and arrows that show it.
 *
 * An operation could have started when it had been called for, and what was before it on its own stream, and the events that it waits for, had ended.
 * From then until the end of what it waited for is the time that the switch would give back. It is known when the GPU's times have come. Of several that
 * it waited for, the one that ended last has the time: those that matter first, since whoever mends the program has it wait for them all the same.
 */
#include <stdio.h>
#include <string.h>

#include "shim/audit/audit_model.h"
#include "shim/base/append.h"
#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/base/no_room.h"
#include "shim/trace/gpu.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"
#include "shim/trace/totals.h"

enum { WAITS = 1 << 16, ON = 4, BEFORE = 5, SHOWN = 1000, TITLE_MOST = 160 };

struct cs_audit_times cs_audit_times;

static struct wait {
    struct cs_audit_op second;
    cs_u32 number, device; /* of the lane that it stands beside */
    struct on {
        struct cs_audit_op first;
        bool matters;
        struct cs_audit_pair *pair;
        cs_u32 number;
    } on[ON];
    int ons, befores;
    cs_u64 before[BEFORE];
    struct cs_since since;
} *waits;
static size_t wait_count;
static cs_u32 unneeded_shown;
static cs_u64 arrows;

/* A row beside each stream's lane. */
enum { ROWS = 2048 };
static struct row {
    cs_u32 number, device, file, announced; /* number 0: never used; announced: bit a level */
    cs_u64 filled[CS_LANE_LEVELS];          /* ns */
} *rows;
CS_TABLE(AUDIT, waits, WAITS);
CS_TABLE(AUDIT, rows, ROWS);

void cs_audit_waits_begin(void)
{
    cs_memory_forget(rows, ROWS * sizeof *rows);
    wait_count = 0;
    unneeded_shown = 0;
    cs_audit_times = (struct cs_audit_times){0};
}

/* --- the timeline --- */

static cs_u32 place(struct row *row, cs_u64 *start, cs_u64 end)
{
    char name[80];
    cs_u32 level = 0;
    while (level < CS_LANE_LEVELS - 1 && row->filled[level] > *start) level++;
    if (row->filled[level] > *start) *start = row->filled[level] < end ? row->filled[level] : end - 1;
    if (end > row->filled[level]) row->filled[level] = end;
    cs_u32 tid = cs_lane_tid(row->number, CS_LANE_AUDIT, level);
    if (row->file != cs_lanes_file()) row->file = cs_lanes_file(), row->announced = 0;
    if (row->announced >> level & 1) return tid;
    row->announced |= 1u << level;
    const size_t n = cs_append(name, sizeof name, 0, "stream %u (audit)", row->number);
    if (level) cs_append(name, sizeof name, n, " (overlap %u)", level);
    cs_lane_named_of_gpu(row->device, tid, name, false);
    return tid;
}

/* NULL: there are too many. */
static struct row *row_of(cs_u32 device, cs_u32 number)
{
    cs_u32 at = (number * 31 + device) % ROWS;
    for (cs_u32 i = 0; rows && number && i < ROWS; i++, at = (at + 1) % ROWS) {
        if (!rows[at].number) rows[at] = (struct row){.number = number, .device = device};
        if (rows[at].number == number && rows[at].device == device) return &rows[at];
    }
    return NULL;
}

static struct cs_draft op_args(struct cs_draft e, const char *key, const struct cs_audit_op *op, const struct cs_audit_side *side)
{
    char where[64];
    e = cs_arg_named(e, key);
    if (!side) return cs_value_word(e, cs_call_info[op->call].name ?: "");
    e = cs_value_text(e, side->name, sizeof side->name);
    if (!*side->place) return e;
    snprintf(where, sizeof where, "%s at", key);
    return cs_value_text(cs_arg_named(e, where), side->place, sizeof side->place);
}

/* What an operation is called: by its kernel, else by its call. A side's name is both, the call first. */
static const char *name_of(const struct cs_audit_op *op, const struct cs_audit_side *side)
{
    const char *call = cs_call_info[op->call].name ?: "";
    if (!side) return op->kernel ? cs_name_text(op->kernel) : call;
    return side->name + (op->kernel && *call ? strlen(call) + 1 : 0);
}

/* "HAZARD first -> second". */
static struct cs_title title_of(const struct on *on, const struct cs_audit_op *second, char text[TITLE_MOST])
{
    const struct cs_audit_pair *pair = on->pair;
    snprintf(text, TITLE_MOST, "HAZARD %.60s -> %.60s", name_of(&on->first, pair ? &pair->first : NULL), name_of(second, pair ? &pair->second : NULL));
    return cs_title_given(text, TITLE_MOST);
}

/* From the end of the work that was waited for to the end of the wait. */
static void arrow_write(const struct cs_audit_op *first, const struct row *row, cs_u32 tid, cs_u64 start, cs_u64 end)
{
    const struct cs_op *op = cs_match_op(first->work);
    if (!op || !op->works || op->work_file != cs_lanes_file() || op->work_end_ns > end || op->work_end_ns <= start || cs_output_full()) return;
    cs_gpu_wake_write(CS_FLOW_AUDIT + ++arrows, op, cs_lane_at(row->device, tid), end);
}

/* A wait whose time is known is a slice that lasts as long; others are instants at the call. A host's stands beside the stream that it waited for. */
static void show(const struct wait *wait, const struct on *on, cs_u64 start, cs_u64 end)
{
    cs_u32 *shown = on->pair ? &on->pair->shown : &unneeded_shown;
    if (*shown >= SHOWN || !cs_lanes_file() || cs_output_full() || !wait->number) return;
    struct row *row = row_of(wait->device, wait->number);
    if (!row) {
        cs_no_room(CS_NO_ROOM_FOR_AUDIT, 1);
        return;
    }
    ++*shown;
    bool timed = end > start;
    cs_u64 ns = timed ? start : wait->second.begin_ns, none = ns;
    cs_u32 tid = place(row, timed ? &ns : &none, timed ? end : ns);
    const struct cs_lane lane = cs_lane_at(row->device, tid);
    char text[TITLE_MOST];
    const struct cs_title title = on->matters ? title_of(on, &wait->second, text) : cs_title("implicit wait");
    struct cs_draft e = timed ? cs_slice(cs_draft(), "cs_audit", title, lane, ns, end) : cs_instant(cs_draft(), CS_INSTANT_THREAD, "cs_audit", title, lane, ns);
    e = cs_arg_uint(e, "cs.stream", row->number);
    e = cs_arg_word(e, "verdict", on->matters ? "hazard" : "nobody needed it");
    e = op_args(e, "operation", &wait->second, on->pair ? &on->pair->second : NULL);
    e = op_args(e, "waited for", &on->first, on->pair ? &on->pair->first : NULL);
    e = cs_arg_uint(e, "of stream", on->number);
    if (timed) e = cs_arg_us(e, "waited_us", end - start);
    cs_commit(cs_args_end(e));
    if (timed) arrow_write(&on->first, row, tid, ns, end);
}

/* --- times --- */

/* Whether it is settled when the work of a call ended: at *end; 0: nobody knows. */
static bool end_of(cs_u64 work, const struct wait *wait, bool all, cs_u64 *end)
{
    const struct cs_op *op = cs_match_op(work);
    *end = op && op->works ? op->work_end_ns : 0;
    return all || cs_op_come(work, &wait->since) != CS_AWAITED;
}

static void waited(struct on *on, cs_u64 ns)
{
    if (on->matters) cs_audit_times.hazards_ns += ns;
    else cs_audit_times.unneeded_ns += ns;
    if (on->pair) on->pair->waited_ns += ns;
}

/* Gives the time from `from` on to the one of that sort that ended last; from when on it goes to others. */
static cs_u64 share(struct wait *wait, const cs_u64 end[ON], bool matters, cs_u64 from)
{
    int last = -1;
    for (int i = 0; i < wait->ons; i++)
        if (wait->on[i].matters == matters && (last < 0 || end[i] > end[last])) last = i;
    for (int i = 0; i < wait->ons; i++)
        if (wait->on[i].matters == matters) show(wait, &wait->on[i], from, i == last ? end[i] : 0);
    if (last < 0 || end[last] <= from) return from;
    waited(&wait->on[last], end[last] - from);
    return end[last];
}

/* False: not all times that it takes have come. */
static bool settle(struct wait *wait, bool all)
{
    cs_u64 end[ON], before, from = wait->second.begin_ns;
    bool there = true, known = true;
    for (int i = 0; i < wait->ons; i++) {
        there &= end_of(wait->on[i].first.work, wait, all, &end[i]);
        known &= end[i] != 0;
    }
    for (int i = 0; i < wait->befores; i++) {
        there &= end_of(wait->before[i], wait, all, &before);
        known &= before || !cs_match_op(wait->before[i]); /* one so long ago that it is forgotten held nobody up */
        if (before > from) from = before;
    }
    if (!there) return false;
    for (int i = 0; i < wait->ons && known; i++)
        if (wait->on[i].pair) wait->on[i].pair->timed++;
    cs_audit_times.timed += known ? (cs_u64)wait->ons : 0;
    cs_audit_times.untimed += known ? 0 : (cs_u64)wait->ons;
    if (!known) memset(end, 0, sizeof end);
    share(wait, end, false, share(wait, end, true, from));
    return true;
}

void cs_audit_wait_note(const struct cs_audit_op *second, const struct cs_audit_found *found, int n, const cs_u64 *before, int m)
{
    if (!waits || wait_count == WAITS) { /* times come between the rounds, so that it would be in vain to look for room now */
        cs_audit_times.untimed += (cs_u64)n;
        return;
    }
    struct wait *wait = &waits[wait_count++];
    const struct cs_audit_lane *beside = cs_audit_lane_at(second->stream ? second->stream : found->first->stream);
    *wait = (struct wait){.second = *second, .number = beside->number, .device = beside->device, .since = cs_since_now()};
    for (int i = 0; i < n && wait->ons < ON; i++)
        wait->on[wait->ons++] = (struct on){*found[i].first, found[i].matters, found[i].pair, cs_audit_lane_at(found[i].first->stream)->number};
    for (int i = 0; i < m && wait->befores < BEFORE; i++) wait->before[wait->befores++] = before[i];
    cs_audit_times.untimed += n > ON ? (cs_u64)(n - ON) : 0;
    if (settle(wait, false)) wait_count--; /* there are no times to wait for */
}

void cs_audit_waits_write(bool all)
{
    size_t kept = 0;
    for (size_t i = 0; i < wait_count; i++)
        if (!settle(&waits[i], all)) waits[kept++] = waits[i];
    wait_count = kept;
}
