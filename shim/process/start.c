/*
 * The start in a process: the driver is met, then a thread makes its first call. Nothing happens before the program reaches for the CUDA driver.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/audit/audit.h"
#include "shim/base/aide.h"
#include "shim/base/clock.h"
#include "shim/base/environment.h"
#include "shim/base/keep.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/realdl.h"
#include "shim/base/watch.h"
#include "shim/base/worker.h"
#include "shim/calls/real.h"
#include "shim/gpu/backend.h"
#include "shim/object/creator.h"
#include "shim/object/event.h"
#include "shim/object/kernel.h"
#include "shim/object/stream.h"
#include "shim/policy/hooks.h"
#include "shim/policy/load.h"
#include "shim/process/inside.h"
#include "shim/trace/thread_clock.h"
#include "shim/trace/writer.h"

CS_READ_MOSTLY void (*cs_activated)(void);
static _Atomic pid_t activating; /* thread id; a mutex would deadlock where a look-up re-enters */
static _Atomic pid_t loading;    /* the thread that opens plug-ins, which others wait for that begin meanwhile; ASKED: there will be one. 0: none */
enum { ASKED = -1 };

void cs_start_after_fork_in_child(void)
{
    cs_store(&activating, 0);
    cs_store(&loading, 0);
}

static _Atomic bool watched; /* a call of the driver's */
static bool activated;       /* protected by the turn */

static bool objects_init(void)
{
    return cs_contexts_init() && cs_streams_init() && cs_events_init() && cs_kernels_init() && cs_creator_init() && cs_process_steps.keeps_objects();
}

/* From here on objects are kept. */
static bool begins_to_keep(void)
{
    if (!objects_init()) return false; /* which has been said */
    cs_threads_init();
    cs_clock_init();
    cs_thread_clock_begin();
    cs_gpu_choose();
    cs_end_begin();
    return true;
}

static void activate_locked(void)
{
    cs_options_read();
    cs_environment_read();
    cs_policy_load();
    cs_audit_listen();
    if (!cs_option_is(CS_OPTION_TRACE, "off")) cs_mode_guard();
    cs_thread_set_ring_size(cs_option_size(CS_OPTION_BUFFER));
    const unsigned steers = cs_mode_of_policy(cs_policy_reach(cs_load(&cs_policy_now))) | (cs_hooks_any() || *cs_option_text(CS_OPTION_PLUGIN) ? CS_MODE_HOOKS : 0);
    bool tracing = !cs_option_is(CS_OPTION_TRACE, "off"), listens = cs_option_is(CS_OPTION_CTL, "on");
    bool wanted = tracing || steers || listens, watches = wanted && begins_to_keep();
    if (!wanted) cs_end_unwanted();
    if (wanted) cs_log_look_for_terminal(), cs_watch_read();
    cs_process_steps.options_read();
    if (!tracing && cs_option_is(CS_OPTION_DEFAULT_STREAM, "audit"))
        cs_log(CS_LOG_WARN, "CUSTREAM_DEFAULT_STREAM=audit reads what is recorded: with CUSTREAM_TRACE=off nothing is");
    if (!tracing && *cs_option_text(CS_OPTION_METRICS)) cs_log(CS_LOG_WARN, "CUSTREAM_METRICS tells of what is recorded: with CUSTREAM_TRACE=off nothing is");
    if (!tracing && *cs_option_text(CS_OPTION_TRIGGER)) cs_log(CS_LOG_WARN, "CUSTREAM_TRIGGER says what is to be recorded: with CUSTREAM_TRACE=off nothing is");
    if (watches && cs_activated && *cs_option_text(CS_OPTION_PLUGIN)) cs_store(&loading, ASKED);
    if (watches) cs_mode_begin(cs_window_begin(), steers);
    else cs_mode_end();
    if (!*cs_option_text(CS_OPTION_PLUGIN)) cs_mode_hook_gone(); /* meanwhile */
}

/* One thread at a time. False: it is this thread's turn already; or, where `once`, somebody else has met the driver meanwhile. */
static bool takes_turn(bool once)
{
    pid_t self = (pid_t)syscall(SYS_gettid), nobody = 0;
    while (!atomic_compare_exchange_strong(&activating, &nobody, self)) {
        if (nobody == self || (once && cs_load_acq(&cs_mode) != CS_MODE_COLD)) return false;
        sched_yield();
        nobody = 0;
    }
    return true;
}

bool cs_activate_for_hooks(void)
{
    CS_KEEP_ERRNO;
    CS_KEEP_FLOATS;
    CS_KEEP_UNCANCELLED;
    if (!takes_turn(false)) return false;
    if (cs_end_wanted() && cs_load_acq(&cs_mode) == CS_MODE_PASS && begins_to_keep()) cs_mode_begin(cs_window_begin(), CS_MODE_HOOKS);
    cs_store_rel(&activating, 0);
    return cs_load_acq(&cs_mode) & CS_MODE_WATCH;
}

/* The aide's: opening a library takes the loader's lock, which a thread of the program must not wait for. */
static void open_plugins(void)
{
    pid_t asked = ASKED, self = (pid_t)syscall(SYS_gettid);
    atomic_compare_exchange_strong(&loading, &asked, self); /* unless nobody waits any more */
    cs_loader_await();
    cs_activated();
    cs_store_rel(&loading, 0);
}

/* Plug-ins have their hooks before a thread's first call goes on. Not for ever: one that comes up may wait for that thread, or for the loader's lock, which
 * it holds. The thread that has them opened waits longest, so that it has them where another one was waited for. */
enum { PATIENCE_MS = 2000, FIRST_PATIENCE_MS = 3000 };

static void plugins_are_late(void)
{
    if (atomic_exchange(&loading, 0))
        cs_log(CS_LOG_WARN, "CUSTREAM_PLUGIN: plug-ins have not come up in %d s; threads go on, and what they do is not told to hooks yet", PATIENCE_MS / 1000);
}

static void have_plugins_opened(void)
{
    cs_aide_start();
    if (cs_aide_run(open_plugins, FIRST_PATIENCE_MS)) return;
    pid_t asked = ASKED;
    if (atomic_compare_exchange_strong(&loading, &asked, 0)) cs_log(CS_LOG_WARN, "CUSTREAM_PLUGIN: no thread could be made that opens plug-ins; the program goes on without them");
    else plugins_are_late();
}

static CS_COLD void await_plugins(void)
{
    CS_KEEP_ERRNO;
    CS_KEEP_UNCANCELLED;
    const pid_t self = (pid_t)syscall(SYS_gettid);
    struct cs_deadline deadline = cs_deadline_in(PATIENCE_MS * 1000000ull, 1000000);
    for (pid_t loader; (loader = cs_load_acq(&loading)) && loader != self; nanosleep(&(struct timespec){0, 1000000}, NULL)) {
        if (!cs_deadline_is_over(&deadline)) continue;
        plugins_are_late();
        return;
    }
}

bool cs_activate(void)
{
    CS_KEEP_ERRNO;
    CS_KEEP_FLOATS;
    CS_KEEP_UNCANCELLED;
    if (!takes_turn(true)) return cs_load_acq(&cs_mode) != CS_MODE_COLD;
    const bool meets = cs_load_acq(&cs_mode) == CS_MODE_COLD && cs_realdl_init() && cs_real_init(), first = meets && !activated;
    if (meets) cs_process_steps.driver_met();
    if (first) activated = true, activate_locked();
    else if (meets) cs_mode_warm_up();
    cs_store_rel(&activating, 0);
    if (first && cs_load(&loading)) have_plugins_opened();
    return cs_load_acq(&cs_mode) != CS_MODE_COLD;
}

void cs_driver_closing(void)
{
    static _Atomic bool stays;
    CS_KEEP_ERRNO;
    if (cs_load(&watched) && !cs_load(&stays) && cs_real_stays()) cs_store(&stays, true);
}

void cs_driver_closed(void)
{
    CS_KEEP_ERRNO;
    CS_KEEP_UNCANCELLED;
    if (cs_load_acq(&cs_mode) == CS_MODE_COLD || cs_load(&watched) || cs_real_is_there() || !takes_turn(false)) return;
    if (cs_load_acq(&cs_mode) != CS_MODE_COLD && !cs_load(&watched) && !cs_real_is_there()) {
        cs_mode_cool();
        cs_real_forget();
        cs_process_steps.driver_met();
    }
    cs_store_rel(&activating, 0);
}

CS_COLD struct cs_thread *cs_enter_slowly(void)
{
    if (cs_load_acq(&cs_mode) == CS_MODE_COLD) cs_activate();
    unsigned mode = cs_load_acq(&cs_mode);
    if (!(mode & CS_MODE_WATCH)) return NULL;
    cs_store(&watched, true);
    if (cs_thread_own()) return cs_load(&cs_self->inside) ? NULL : cs_self; /* inside a driver call already, or a plug-in that was opened just now has begun this thread */
    if (cs_locks_interrupted()) return NULL; /* a signal handler's call in the middle of this thread's first */
    if (cs_hook_inside()) return NULL; /* in the child of a hook that has forked, which has no thread of its parent's any more */
    CS_KEEP_UNCANCELLED;
    if (cs_load_acq(&loading)) await_plugins();
    const bool writes = cs_writer_start(mode & CS_MODE_RECORD, cs_mode_ever_steered());
    if (!writes) {
        cs_gpu_finish(0); /* nobody reads what it would find */
        if (!cs_mode_ever_steered() || !cs_writer_failed()) {
            cs_mode_end();
            return NULL;
        }
        cs_store(&cs_objects_alone, true);
    }
    if (mode & CS_MODE_RECORD && !cs_writer_file(2000)) {
        cs_mode_rest();
        cs_window_failed();
    }
    /* Before the first call makes a context. The writer has had it started, unless the aide was busy. */
    if (cs_mode_records() || (writes && cs_window_may_open())) cs_gpu_start(), cs_gpu_is_ready();
    cs_window_first_call();
    cs_ctl_start();
    struct cs_thread *thread = cs_thread_start();
    if (thread) cs_process_steps.thread_starts(thread);
    return thread;
}
