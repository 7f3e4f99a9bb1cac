#include "shim/trace/windows.h"

#include <time.h>

#include "shim/base/clock.h"
#include "shim/base/json.h"
#include "shim/base/keep.h"
#include "shim/trace/lanes.h"
#include "shim/out/output.h"

enum { STEPS = 1024, SPANS = 1024, LISTED = 64, WAIT_MS = 200, UNSURE_NS = 200000000 };

/* From whoever opens and closes to the writer: one producer at a time, one consumer. */
static struct step {
    cs_u64 ticks;
    const char *text;
    enum cs_window_step what;
} steps[STEPS];
static _Atomic cs_u64 head, tail, untold;

void cs_windows_tell(enum cs_window_step step, cs_u64 ticks, const char *text)
{
    cs_u64 at = cs_load(&head);
    CS_KEEP_UNCANCELLED;
    for (int ms = 0; at - cs_load_acq(&tail) == STEPS && ms < WAIT_MS; ms++) nanosleep(&(struct timespec){0, 1000000}, NULL);
    if (at - cs_load_acq(&tail) == STEPS) {
        cs_add(&untold, 1);
        return;
    }
    steps[at % STEPS] = (struct step){ticks, text, step};
    cs_store_rel(&head, at + 1);
}

/* --- the writer's --- */

static struct {
    bool told, closed, ever_closed; /* the first step has come; nothing is recorded; that has been so */
    cs_u64 since, shown;            /* ticks: of the last step; where what is not in the file yet of a closed span begins */
    const char *why;                /* it is closed, or who opened it */
    cs_u64 opened, open_ns;         /* how often; for how long, those that are over */
} now;

/* The last spans in which nothing was recorded, and the last in which something was. */
static struct span {
    cs_u64 from, until; /* ticks */
} spans[SPANS];
static cs_u64 span_count;
static struct listed {
    cs_u64 from, until;
    const char *by, *why;
} list[LISTED];
static cs_u64 list_count;

void cs_windows_after_fork_in_child(void)
{
    cs_store(&tail, cs_load(&head));
    cs_store(&untold, 0);
    now = (__typeof__(now)){0};
    span_count = list_count = 0;
}

static cs_u64 span_ns(cs_u64 from, cs_u64 until)
{
    cs_u64 a = cs_clock_ns(from), b = cs_clock_ns(until);
    return b > a ? b - a : 0;
}

/* --- in the file --- */

static cs_u32 lane(void)
{
    static cs_u32 file;
    cs_u32 tid = cs_host_pid() ^ 1u << 27; /* no thread has a number with that bit */
    if (file != cs_lanes_file()) cs_lane_named(tid, "custream: not recorded"), file = cs_lanes_file();
    return tid;
}

/* `by`: who opens the window that ends it; NULL: it goes on, or nobody. */
static void gap_write(cs_u64 until, const char *by)
{
    cs_u64 from_ns = cs_clock_ns(now.shown), to_ns = cs_clock_ns(until);
    if (cs_output_full()) return;
    const struct cs_lane on = cs_host_lane(lane());
    struct cs_draft e = cs_slice(cs_draft(), "cs_window", cs_title("not recorded"), on, from_ns, to_ns);
    e = cs_arg_text(e, "cause", now.why, 256);
    cs_commit(cs_args_end(by ? cs_arg_text(e, "opened_by", by, 256) : e));
    now.shown = to_ns > from_ns ? until : until + 1;
}

static void policy_write(const struct step *step)
{
    if (cs_output_full()) return;
    const struct cs_lane on = cs_host_lane(lane());
    struct cs_draft e = cs_instant(cs_draft(), CS_INSTANT_PROCESS, "cs_policy", cs_title("policy"), on, cs_clock_ns(step->ticks));
    cs_commit(cs_args_end(cs_arg_text(e, "policy", step->text, 2048)));
}

/* --- steps --- */

static void closed(const struct step *step)
{
    if (now.told && now.closed) return;
    if (now.told) {
        struct listed *last = &list[(list_count - 1) % LISTED];
        last->until = step->ticks;
        last->why = step->text;
        now.open_ns += span_ns(now.since, step->ticks);
    }
    now.closed = now.ever_closed = true;
    now.since = now.shown = step->ticks;
    now.why = step->text;
}

static void opened(const struct step *step, bool file)
{
    if (now.told && !now.closed) return;
    if (now.closed && file) gap_write(step->ticks, step->text), cs_match_captures_resume(now.since);
    if (now.closed) spans[span_count++ % SPANS] = (struct span){now.since, step->ticks};
    now.closed = false;
    now.since = step->ticks;
    now.why = step->text;
    now.opened++;
    list[list_count++ % LISTED] = (struct listed){.from = step->ticks, .by = step->text};
}

static bool has_file;

void cs_windows_collect(bool file)
{
    cs_u64 at = cs_load(&tail), until = cs_load_acq(&head);
    has_file = file;
    for (; at < until; at++) {
        const struct step *step = &steps[at % STEPS];
        if (step->what == CS_WINDOW_POLICY) {
            if (file) policy_write(step);
            continue;
        }
        if (step->what == CS_WINDOW_CLOSED) closed(step);
        else opened(step, file);
        now.told = true;
    }
    cs_store_rel(&tail, at);
}

void cs_windows_part_ends(void)
{
    const cs_u64 until = cs_ticks(); /* a window that opens from here on is the next part's */
    if (cs_windows_closed()) gap_write(until, NULL);
}

void cs_windows_end(void) { cs_windows_part_ends(); }

/* --- what it is asked --- */

/* The last closed span that began by then; until 0: there is none, UINT64_MAX: it goes on. */
static struct span span_at(cs_u64 ticks)
{
    if (now.closed && ticks >= now.since) return (struct span){now.since, UINT64_MAX};
    for (cs_u64 i = 0; i < span_count && i < SPANS; i++)
        if (ticks >= spans[(span_count - 1 - i) % SPANS].from) return spans[(span_count - 1 - i) % SPANS];
    return (struct span){0, 0};
}

/* What is asked about came after steps that may not have been taken over yet. */
static void catch_up(void)
{
    if (CS_UNLIKELY(cs_load_acq(&head) != cs_load(&tail))) cs_windows_collect(has_file);
}

bool cs_windows_closed(void) { return catch_up(), now.closed; }
bool cs_windows_ever_closed(void) { return now.ever_closed; }
bool cs_windows_open(void) { return now.told && !now.closed; }
bool cs_windows_within(cs_u64 from, cs_u64 to) { return catch_up(), to < span_at(from).until; }
bool cs_windows_covers(cs_u64 ticks) { return cs_windows_within(ticks, ticks); }

cs_u64 cs_windows_open_since(void)
{
    catch_up();
    return now.closed ? UINT64_MAX : span_count ? spans[(span_count - 1) % SPANS].until : 0;
}

enum cs_outside cs_windows_outside(cs_u64 ticks)
{
    catch_up();
    struct span s = span_at(ticks);
    if (!s.until) return CS_INSIDE;
    if (ticks < s.until) return span_ns(s.from, ticks) < UNSURE_NS ? CS_MAY_BE_OUTSIDE : CS_OUTSIDE;
    return span_ns(s.until, ticks) < UNSURE_NS ? CS_MAY_BE_OUTSIDE : CS_INSIDE;
}

/* --- trailer --- */

static char *put_listed(char *at, const struct listed *window)
{
    at = cs_put_literal(at, "\n{\"from_us\":");
    at = cs_put_us(at, cs_clock_ns(window->from));
    if (window->until) {
        at = cs_put_literal(at, ",\"to_us\":");
        at = cs_put_us(at, cs_clock_ns(window->until));
    }
    at = cs_put_literal(at, ",\"opened_by\":");
    at = cs_put_string(at, window->by, 64);
    if (window->until) {
        at = cs_put_literal(at, ",\"cause\":");
        at = cs_put_string(at, window->why, 64);
    }
    *at++ = '}';
    return at;
}

char *cs_windows_put_totals(char *at, bool brief)
{
    if (!now.ever_closed) return at;
    at = cs_put_literal(at, ",\"windows\":{\"opened\":");
    at = cs_put_uint(at, now.opened);
    at = cs_put_literal(at, ",\"open\":");
    at = cs_put_text(at, now.closed ? "false" : "true");
    if (now.closed) {
        at = cs_put_literal(at, ",\"cause\":");
        at = cs_put_string(at, now.why, 64);
    }
    at = cs_put_literal(at, ",\"recorded_us\":");
    at = cs_put_us(at, now.open_ns + (now.closed ? 0 : span_ns(now.since, cs_ticks())));
    if (cs_load(&untold)) {
        at = cs_put_literal(at, ",\"untold\":");
        at = cs_put_uint(at, cs_load(&untold));
    }
    at = cs_put_literal(at, ",\"last\":[");
    for (cs_u64 i = list_count > LISTED ? list_count - LISTED : 0; i < list_count && !brief; i++) {
        at = put_listed(at, &list[i % LISTED]);
        *at++ = ',';
    }
    if (at[-1] == ',') at--;
    return cs_put_literal(at, "]}");
}
