/*
 * When calls are recorded: CUSTREAM_WINDOW, cuProfilerStart and cuProfilerStop, and what `custream ctl` asks for, which beats both from then on.
 * `custream record` and the trigger (trigger.c) hold the window open for a while, whatever the others say.
 *
 * While the window is closed wrappers keep objects and record nothing, and the GPU backend is held back. Whoever opens or closes it holds a lock of the
 * lowest rank (docs/locks.md): application threads in the two profiler calls, the control thread for the rest. The writer alone closes it without the lock,
 * once and for good, when the file takes no more (cs_writer_full). No recorded call takes the lock, nor does the end of the process. What comes of it
 * stands in the mode word alone; RECORD is set there only while it has CS_MODE_WATCH.
 */
#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/settings.h"
#include "shim/gpu/backend.h"
#include "shim/object/event.h"
#include "shim/process/inside.h"
#include "shim/trace/windows.h"
#include "shim/trace/writer.h"

enum { GPU_WAIT_MS = 3000, FILE_WAIT_MS = 5000 };
static const char NO_FILE[] = "the trace could not be opened"; /* which has been said */
static const char ENDING[] = "the process is ending";
static const char FULL[] = "the trace is full"; /* which has been said */

static struct cs_lock lock = CS_LOCK_INIT(CS_RANK_WINDOW, "window");

/* Written under the lock, or before there is a second thread; read under it, but for `option` and `trace_off`, which do not change after that. */
static struct cs_window option;
static bool trace_off;
static bool started, ever_started;          /* cuProfilerStart is in force; it ever was */
static cs_u64 from_ns, until_ns;            /* of a window of time; UINT64_MAX: not known yet, never. EVERY: from the first call on */

static _Atomic enum { NOTHING, ON, OFF } said; /* by custream ctl; the end of the process reads it without the lock */

static unsigned held[CS_HOLDERS];

static bool is_held(void) { return held[CS_HELD_BY_RECORD] || held[CS_HELD_BY_TRIGGER]; }

/* Whether the window is open says the mode word alone: a file that can't be had closes it on any thread, without the lock. */

static _Atomic bool met, ever_open, told_end;
static _Atomic bool full; /* the file takes no more, so nothing is recorded any more */
static const char *_Atomic why_not;

/* --- what is to be --- */

/* Why nothing is to be recorded now; NULL: calls are to be. */
static const char *closed_by(void)
{
    if (atomic_load(&full)) return FULL;
    if (is_held() || cs_load(&said) == ON) return NULL;
    if (cs_load(&said) == OFF) return "custream ctl off";
    if (trace_off) return "CUSTREAM_TRACE=off";
    if (option.kind == CS_WINDOW_PROFILER) return started ? NULL : ever_started ? "after cuProfilerStop" : "before cuProfilerStart";
    if (option.kind == CS_WINDOW_CTL) return "nobody has asked for it: CUSTREAM_WINDOW=ctl";
    if (option.kind == CS_WINDOW_ALL) return NULL;
    cs_u64 now = cs_monotonic_ns();
    if (option.kind == CS_WINDOW_EVERY) return !cs_load(&met) || (now - from_ns) % option.every_ns < option.for_ns ? NULL : "between two windows";
    return now < from_ns ? "before the delay was over" : now >= until_ns ? "the duration was over" : NULL;
}

static const char *opened_by(void)
{
    if (held[CS_HELD_BY_RECORD]) return "custream record";
    if (held[CS_HELD_BY_TRIGGER]) return "the trigger (CUSTREAM_TRIGGER)";
    if (cs_load(&said) == ON) return "custream ctl on";
    switch (option.kind) {
    case CS_WINDOW_PROFILER: return "cuProfilerStart";
    case CS_WINDOW_EVERY: return cs_load(&met) ? "CUSTREAM_WINDOW=every" : "the start";
    default: return option.delay_ns ? "the delay was over" : "the start";
    }
}

/* --- opening and closing --- */

/* By the writer, without the lock. A thread that is opening the window looks at `full` afterwards, and closes it again. Calls that are recorded meanwhile are
 * counted as not written. */
static void close_for_good(void)
{
    atomic_store(&full, true);
    cs_store(&why_not, FULL);
    cs_mode_rest();
    cs_gpu_step_back(CS_GPU_AWAY_WINDOW, NULL, 0);
}

/* The backend first, so that the file says where times come from. */
static const char *open_now(void)
{
    cs_gpu_come_back(CS_GPU_AWAY_WINDOW, GPU_WAIT_MS);
    if (!cs_writer_file(FILE_WAIT_MS)) {
        if (!cs_writer_alive()) return ENDING;
        cs_window_failed();
        return NO_FILE;
    }
    cs_gpu_is_ready();
    cs_u64 now = cs_ticks();
    cs_store(&cs_events_known_since, now);
    cs_windows_tell(CS_WINDOW_OPENED, now, opened_by());
    cs_store(&ever_open, true);
    cs_store(&why_not, NULL);
    if (!cs_mode_record()) return ENDING;
    if (atomic_load(&full)) close_for_good();
    cs_process_steps.window_opened(now);
    return atomic_load(&full) ? FULL : NULL;
}

static void close_now(const char *why)
{
    cs_store(&why_not, why);
    cs_mode_rest();
    cs_windows_tell(CS_WINDOW_CLOSED, cs_ticks(), why);
    cs_gpu_step_back(CS_GPU_AWAY_WINDOW, NULL, 0);
}

/* Under the lock. NULL, or why it can't be as it should. */
static const char *apply(void)
{
    const char *why = closed_by();
    const unsigned mode = cs_load_acq(&cs_mode);
    if (!(mode & CS_MODE_WATCH)) return why ? NULL : ENDING;
    if (why == FULL && (is_held() || cs_load(&said) == ON)) return FULL;
    if (!why && !(mode & CS_MODE_RECORD)) return open_now();
    if (why && mode & CS_MODE_RECORD) close_now(why);
    if (why) cs_store(&why_not, why);
    return NULL;
}

/* --- who asks --- */

bool cs_window_begin(void)
{
    cs_writer_full = close_for_good;
    trace_off = cs_option_is(CS_OPTION_TRACE, "off");
    cs_window_read(cs_option_text(CS_OPTION_WINDOW), &option);
    /* Whole graphs need a kind of CUPTI's that can't be let go between windows (gpu/cupti_asked.c). */
    if (option.kind == CS_WINDOW_EVERY) cs_option_give(CS_OPTION_GRAPH, "node");
    from_ns = option.delay_ns ? UINT64_MAX : 0;
    until_ns = UINT64_MAX;
    const char *why = closed_by();
    cs_store(&why_not, why);
    if (why) cs_gpu_step_back(CS_GPU_AWAY_WINDOW, NULL, 0);
    cs_windows_tell(why ? CS_WINDOW_CLOSED : CS_WINDOW_OPENED, cs_ticks(), why ? why : opened_by());
    cs_store(&ever_open, !why);
    return !why;
}

void cs_window_after_fork_in_child(void)
{
    cs_lock_forget(&lock);
    started = ever_started = false;
    memset(held, 0, sizeof held);
    cs_store(&full, false);
    cs_store(&said, NOTHING);
    cs_store(&met, false);
    cs_store(&ever_open, false);
    cs_store(&cs_events_known_since, 0);
}

/* Whoever comes through finds the times known: of two first calls at once one starts the thread that waits for them. */
void cs_window_first_call(void)
{
    if (cs_load_acq(&met)) return;
    CS_KEEP_ERRNO;
    cs_lock_take(&lock);
    if (!cs_load(&met)) {
        from_ns = cs_monotonic_ns() + option.delay_ns;
        until_ns = option.duration_ns ? from_ns + option.duration_ns : UINT64_MAX;
        cs_store_rel(&met, true);
    }
    cs_lock_drop(&lock);
}

void cs_window_profiler(bool starts)
{
    CS_KEEP_ERRNO;
    cs_lock_take(&lock);
    started = starts;
    ever_started = ever_started || starts;
    apply();
    cs_lock_drop(&lock);
}

/* Under the lock, of what was asked for just now. */
static const char *asked(void)
{
    const char *error = apply();
    return error || cs_mode_records() ? error : ENDING; /* which has begun meanwhile */
}

bool cs_window_hold(enum cs_held_by who, const char **error)
{
    cs_lock_take(&lock);
    held[who]++;
    *error = asked();
    if (*error) held[who]--;
    cs_lock_drop(&lock);
    return !*error;
}

void cs_window_release(enum cs_held_by who)
{
    cs_lock_take(&lock);
    held[who]--;
    apply();
    cs_lock_drop(&lock);
}

/* Calls are not recorded yet, so what the profiler tells meanwhile is of none. */
void cs_window_ready(void)
{
    cs_lock_take(&lock);
    const bool closed = (cs_load_acq(&cs_mode) & CS_MODE_RECORDING) == CS_MODE_WATCH;
    if (closed && !atomic_load(&full)) cs_gpu_come_back(CS_GPU_AWAY_WINDOW, GPU_WAIT_MS), cs_writer_file(FILE_WAIT_MS);
    cs_lock_drop(&lock);
}

void cs_window_unready(void)
{
    cs_lock_take(&lock);
    if (!cs_mode_records()) cs_gpu_step_back(CS_GPU_AWAY_WINDOW, NULL, 0);
    cs_lock_drop(&lock);
}

bool cs_window_say(bool on, const char **error)
{
    cs_lock_take(&lock);
    cs_store(&said, on ? ON : OFF);
    *error = on ? asked() : apply();
    if (*error == FULL) cs_store(&said, NOTHING);
    cs_lock_drop(&lock);
    return !*error;
}

void cs_window_policy(const char *text)
{
    cs_lock_take(&lock);
    cs_windows_tell(CS_WINDOW_POLICY, cs_ticks(), text);
    cs_lock_drop(&lock);
}

/* Where the next window opens or closes: counted from the first call on, so that no wait makes the next one late. */
static cs_u64 next_step(cs_u64 now)
{
    const cs_u64 into = (now - from_ns) % option.every_ns;
    return now - into + (into < option.for_ns ? option.for_ns : option.every_ns);
}

cs_u64 cs_window_due(void)
{
    cs_u64 now = cs_monotonic_ns(), next = UINT64_MAX;
    if (!cs_window_has_time()) return next;
    cs_lock_take(&lock);
    if (cs_load(&said) == NOTHING) {
        apply();
        next = option.kind == CS_WINDOW_EVERY ? next_step(now) : now < from_ns ? from_ns : now < until_ns ? until_ns : UINT64_MAX;
    }
    cs_lock_drop(&lock);
    if (next == UINT64_MAX) return next;
    now = cs_monotonic_ns(); /* opening takes its time */
    return next > now ? next - now : 0;
}

bool cs_window_is_full(void) { return atomic_load(&full); }

void cs_window_failed(void) { cs_store(&why_not, NO_FILE); }

bool cs_window_may_open(void) { return !trace_off && option.kind != CS_WINDOW_CTL && !atomic_load(&full) && cs_load(&why_not) != NO_FILE; }

bool cs_window_has_time(void) { return option.kind >= CS_WINDOW_TIME && !trace_off; }
const char *cs_window_why_not(void) { return cs_load(&why_not); }

void cs_window_end(void)
{
    const char *why = cs_load(&why_not);
    const bool idle = trace_off || option.kind == CS_WINDOW_CTL; /* it was started to be asked, and need not be */
    if (cs_load(&ever_open) || !why || why == NO_FILE || !cs_load(&met) || idle || atomic_exchange(&told_end, true)) return;
    if (cs_load(&said) == NOTHING && option.kind == CS_WINDOW_PROFILER)
        cs_log(CS_LOG_WARN, "nothing was recorded: CUSTREAM_WINDOW=profiler, and cuProfilerStart (cudaProfilerStart) was never called");
    else if (cs_load(&said) == NOTHING)
        cs_log(CS_LOG_WARN, "nothing was recorded: CUSTREAM_WINDOW=%s, and the program ended before the delay was over", cs_option_text(CS_OPTION_WINDOW));
    else
        cs_log(CS_LOG_WARN, "nothing was recorded: %s", why);
}
