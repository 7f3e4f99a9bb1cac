#define _GNU_SOURCE
#include "shim/gpu/backend.h"

#include <pthread.h>
#include <sys/prctl.h>

#include "shim/base/aide.h"
#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/settings.h"
#include "shim/base/worker.h"
#include "shim/gpu/mark.h"
#include "shim/gpu/share.h"

enum { PAUSE_NS = 200000000, POLLED_NS = 5000000, AWAY_PAUSE_NS = 2000000000, IDLE_ROUNDS = 10 };
enum { GRACE_NS = 100000000 }; /* calls that were on their way when the window closed are through by then */

static struct cs_worker worker = {.loads = true};
static struct cs_lock start_lock = CS_LOCK_INIT(CS_RANK_GPU, "gpu");
static const struct cs_gpu_backend *const *candidates; /* tried in this order, to the NULL */
static const struct cs_gpu_backend *_Atomic backend = &cs_gpu_none;
static _Atomic bool expected;
static _Atomic unsigned stepped_back; /* enum cs_gpu_away, bits */
static _Atomic cs_u64 closed_ns;      /* when the window closed */
static _Atomic cs_u64 flushes;
static _Atomic bool flush_asked;
static _Atomic bool resting;
static _Atomic bool in_vain; /* it was waited for at the end of the process */

CS_READ_MOSTLY _Atomic int cs_runtime_source;
struct cs_runtime_listener cs_runtime_listener;
_Atomic cs_u16 cs_runtime_turn = 1;

const char cs_gpu_taken[] = "another profiler is at work in this process";

static const char *_Atomic second_best;

void cs_gpu_choose(void)
{
    static const struct cs_gpu_backend *const automatic[] = {&cs_gpu_cupti, &cs_gpu_events, NULL}, *const cupti[] = {&cs_gpu_cupti, NULL},
                                       *const events[] = {&cs_gpu_events, NULL}, *const off[] = {NULL};
    static const struct cs_gpu_backend *const *const by_kind[] = {
        [CS_GPU_TIMES_AUTO] = automatic, [CS_GPU_TIMES_CUPTI] = cupti, [CS_GPU_TIMES_EVENTS] = events, [CS_GPU_TIMES_OFF] = off};
    struct cs_gpu_times times = {CS_GPU_TIMES_AUTO, 1};
    cs_gpu_times_read(cs_option_text(CS_OPTION_GPU), &times);
    candidates = by_kind[times.kind];
    cs_gpu_sample = times.sample;
    if (cs_option_is(CS_OPTION_RUNTIME, "cupti") && candidates[0] != &cs_gpu_cupti)
        cs_log(CS_LOG_WARN, "CUSTREAM_RUNTIME=cupti needs CUPTI, and CUSTREAM_GPU=%s does without: only a shared runtime's calls are shown", cs_option_text(CS_OPTION_GPU));
}

static void set_missing(const char *why) { cs_gpu_set_missing(CS_GPU_TIMES, why); }
static const char *times_missing(void) { return cs_gpu_missing(CS_GPU_TIMES, &(cs_u64){0}); }

/* Of a start that threads have stopped waiting for. */
static const char late[] = "GPU times were not ready";
static bool has_better_reason(void) { return times_missing() && times_missing() != late; }
static void late_no_more(void) { cs_gpu_change_missing(CS_GPU_TIMES, late, NULL); }

const char *cs_gpu_second_best(void) { return cs_load_acq(&second_best); }

/* Takes the first that can be had. False where none can; `taken`: one may be had later. */
static bool begin(bool *taken)
{
    const char *first = NULL;
    *taken = false;
    for (size_t i = 0; candidates[i]; i++) {
        const char *why = candidates[i]->start();
        if (!why) {
            cs_store_rel(&backend, candidates[i]);
            second_best = first;
            set_missing(NULL);
            return true;
        }
        *taken = *taken || why == cs_gpu_taken;
        if (!first && !has_better_reason())
            cs_log(cs_option_is(CS_OPTION_GPU, "auto") && !cs_option_is(CS_OPTION_RUNTIME, "cupti") ? CS_LOG_INFO : CS_LOG_WARN, "no GPU times from %s: %s", candidates[i]->name, why);
        if (!first) first = why;
    }
    if (first && !cs_gpu_change_missing(CS_GPU_TIMES, NULL, first)) cs_gpu_change_missing(CS_GPU_TIMES, late, first);
    return false;
}

static cs_u64 flushed_ns; /* the GPU thread's */
static _Atomic cs_u64 flushed; /* ticks: when the last flush that has ended began */

static void flush(bool all)
{
    const cs_u64 began = cs_ticks();
    cs_load(&backend)->flush(all);
    cs_store_rel(&flushed, began);
    cs_add(&flushes, 1);
    flushed_ns = cs_monotonic_ns();
}

/* Each flush takes buffers away that are hardly filled. A program with very many threads, or one that opens windows faster than the writer reads, would soon have
 * none left, so only who asks for a flush gets one at once. */
static bool flush_is_due(void)
{
    bool (*is_behind)(void) = cs_load(&backend)->is_behind;
    return atomic_exchange(&flush_asked, false) || (cs_monotonic_ns() - flushed_ns >= PAUSE_NS / 2 && !(is_behind && is_behind()));
}

static bool paused; /* the GPU thread's */

static void end(bool lets_go)
{
    const struct cs_gpu_backend *b = cs_load(&backend);
    flush(true);
    b->stop(lets_go);
    paused = false;
}

/* It looks at new calls, or not. */
static void pause_or_go_on(void)
{
    const struct cs_gpu_backend *b = cs_load(&backend);
    bool pauses = cs_load_acq(&stepped_back) == CS_GPU_AWAY_WINDOW && !(b->serves && b->serves());
    if (!b->pause || pauses == paused || (pauses && cs_monotonic_ns() - cs_load(&closed_ns) < GRACE_NS)) return;
    b->pause(pauses);
    paused = pauses;
}

/* One round: what was asked, and what is due. `away`: the backend has let go, or never had it. */
static void round_once(bool *away)
{
    static int idle;
    if (!*away) pause_or_go_on();
    if (!*away && cs_load(&backend)->catch_up) cs_load(&backend)->catch_up();
    const unsigned reasons = cs_load_acq(&stepped_back);
    if (!*away && reasons & CS_GPU_AWAY_PROFILER) {
        end(true);
        *away = true;
    } else if (*away && !reasons) {
        *away = !begin(&(bool){false});
    }
    cs_store(&resting, *away || paused);
    if (*away) cs_add(&flushes, 1); /* nothing more comes: who waits for so many flushes need not wait for ever */
    if (*away || !(cs_load(&flush_asked) || cs_load(&expected) || (reasons && !paused) || ++idle == IDLE_ROUNDS)) return;
    if (flush_is_due()) flush(false);
    idle = 0;
}

/* Until the next round is due, or something is asked. */
static void rest(bool away)
{
    const bool rests = away || (paused && !cs_load(&expected));
    cs_u64 (*poll)(void) = rests ? NULL : cs_load(&backend)->poll;
    struct cs_deadline deadline = cs_deadline_in(PAUSE_NS, POLLED_NS);
    bool closed = cs_load(&stepped_back) == CS_GPU_AWAY_WINDOW;
    cs_u64 pause = !closed ? PAUSE_NS : !away && !paused ? GRACE_NS : rests && !cs_load(&expected) ? AWAY_PAUSE_NS : PAUSE_NS;
    do cs_worker_pause(&worker, poll ? poll() : pause);
    while (poll && cs_load_acq(&worker.state) == CS_WORKER_RUNNING && !cs_deadline_is_over(&deadline));
}

static void *run(void *unused)
{
    (void)unused;
    bool taken, away = false;
    prctl(PR_SET_NAME, CS_WORKER_GPU_NAME);
    cs_worker_meet_loader(&worker);
    if (!begin(&taken)) {
        if (!taken) {
            cs_worker_set(&worker, CS_WORKER_FAILED);
            return NULL;
        }
        away = true;
    }
    cs_worker_move(&worker, CS_WORKER_STARTING, CS_WORKER_RUNNING);
    late_no_more();
    for (int now; (now = cs_load_acq(&worker.state)) != CS_WORKER_FINISHING && !cs_aide_was_killed();) {
        round_once(&away);
        if (now == CS_WORKER_FLUSHING) cs_worker_move(&worker, CS_WORKER_FLUSHING, CS_WORKER_RUNNING);
        rest(away);
    }
    if (!away && !times_missing()) set_missing(cs_gpu_ended); /* before the last flush: what is enqueued later may be in it, or not */
    if (!away) end(false);
    cs_worker_set(&worker, CS_WORKER_FINISHED);
    return NULL;
}

void cs_gpu_step_back(enum cs_gpu_away reason, const char *why, unsigned timeout_ms)
{
    if (reason == CS_GPU_AWAY_WINDOW) cs_store_rel(&closed_ns, cs_monotonic_ns());
    if (atomic_fetch_or(&stepped_back, reason) & reason) return;
    if (why) set_missing(why);
    if (why && cs_load(&cs_runtime_source) == CS_RUNTIME_PROFILER) cs_gpu_set_missing(CS_GPU_RUNTIME_CALLS, why);
    if (timeout_ms) cs_worker_ask(&worker, CS_WORKER_FLUSHING, timeout_ms);
    else cs_worker_wake(&worker);
}

void cs_gpu_come_back(enum cs_gpu_away reason, unsigned timeout_ms)
{
    unsigned before = atomic_fetch_and(&stepped_back, ~(unsigned)reason);
    if (!(before & reason)) return;
    if (reason == CS_GPU_AWAY_PROFILER && before != reason) set_missing(NULL); /* what is not recorded lacks no times */
    if (timeout_ms) cs_worker_ask(&worker, CS_WORKER_FLUSHING, timeout_ms);
}

bool cs_gpu_to_start(void) { return candidates && candidates[0] && cs_load_acq(&worker.state) == CS_WORKER_IDLE; }

void cs_gpu_start(void)
{
    CS_KEEP_ERRNO;
    if (cs_gpu_to_start()) {
        cs_lock_take(&start_lock);
        if (cs_load(&worker.state) == CS_WORKER_IDLE && !cs_aide_start_worker(&worker, run)) set_missing("its thread could not be started");
        cs_lock_drop(&start_lock);
    } else { /* another thread is at it, or was: what this one enqueues has times too */
        cs_worker_await(&worker);
    }
    if (cs_load_acq(&worker.state) != CS_WORKER_STARTING || !cs_gpu_change_missing(CS_GPU_TIMES, NULL, late)) return;
    if (cs_load_acq(&worker.state) != CS_WORKER_STARTING) late_no_more(); /* it has come up at this very moment */
}

void cs_gpu_flush(unsigned timeout_ms)
{
    cs_store(&flush_asked, true);
    cs_worker_ask(&worker, CS_WORKER_FLUSHING, timeout_ms);
}
void cs_gpu_wake(void) { cs_worker_wake(&worker); }

/* A process may end in several steps, each of which asks: one that was waited for in vain is not waited for again. */
void cs_gpu_finish(unsigned timeout_ms)
{
    const bool asked = cs_load_acq(&worker.state) == CS_WORKER_FINISHING;
    cs_worker_ask(&worker, CS_WORKER_FINISHING, asked && cs_load(&in_vain) ? 0 : timeout_ms);
    cs_store(&in_vain, timeout_ms && cs_load_acq(&worker.state) == CS_WORKER_FINISHING);
}

void cs_gpu_drain(const struct cs_gpu_sink *to) { cs_load_acq(&backend)->drain(to); }

static void no_work(const struct cs_gpu_work *work) { (void)work; }
static void no_call(const struct cs_gpu_call *call) { (void)call; }
static void no_pool(const struct cs_gpu_pool *pool) { (void)pool; }
static void no_loss(cs_u64 count, enum cs_loss why) { (void)count, (void)why; }
void cs_gpu_discard(void) { cs_gpu_drain(&(struct cs_gpu_sink){.work = no_work, .call = no_call, .pool = no_pool, .lost = no_loss}); }

void cs_gpu_expect(bool work) { cs_store(&expected, work); }
bool cs_gpu_rests(void) { return cs_load(&resting); }
bool cs_gpu_is_on(void) { return cs_load(&backend) != &cs_gpu_none; }
bool cs_gpu_calls_missing(bool now)
{
    static _Atomic bool missing;
    if (!now) return atomic_exchange(&missing, false);
    cs_store(&missing, true);
    return true;
}

const char *cs_gpu_source(void) { return cs_load_acq(&backend)->name; }
bool cs_gpu_marks(void) { return cs_load_acq(&backend)->marks; }
cs_u64 cs_gpu_flushes(void) { return cs_load_acq(&flushes); }
cs_u64 cs_gpu_flushed(void) { return cs_load_acq(&flushed); }
void cs_gpu_flushes_pass(void) { cs_add(&flushes, 1); }

void cs_gpu_after_fork_in_child(void)
{
    int profiler = CS_RUNTIME_PROFILER;
    cs_lock_forget(&start_lock);
    cs_gpu_missing_after_fork_in_child();
    cs_gpu_hold_after_fork_in_child();
    cs_share_after_fork_in_child();
    cs_store(&stepped_back, 0);
    atomic_compare_exchange_strong(&cs_runtime_source, &profiler, CS_RUNTIME_SYMBOLS);
    if (cs_load(&worker.state) == CS_WORKER_IDLE) return;
    cs_store(&flushed, 0);
    cs_store(&in_vain, false);
    cs_store(&worker.state, CS_WORKER_FAILED); /* CUDA does not live on in a forked child, nor does a profiler */
    cs_store(&backend, &cs_gpu_none);
    cs_gpu_mark(false);
    set_missing("the process was forked from one that used CUDA");
}
