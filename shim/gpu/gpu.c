#define _GNU_SOURCE
#include "shim/gpu/backend.h"

#include <pthread.h>

#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/worker.h"
#include "shim/gpu/mark.h"

enum { PAUSE_NS = 200000000, IDLE_ROUNDS = 10 };

static struct cs_worker worker;
static struct cs_lock start_lock = CS_LOCK_INIT(CS_RANK_GPU, "gpu");
static const struct cs_gpu_backend *const *candidates; /* tried in this order, to the NULL */
static const struct cs_gpu_backend *_Atomic backend = &cs_gpu_none;
static _Atomic bool expected, stepped_back;
static _Atomic cs_u64 flushes;

const char cs_gpu_taken[] = "another profiler is at work in this process";

static _Atomic cs_u64 missing_since;
static const char *_Atomic missing_why, *_Atomic second_best;

void cs_gpu_choose(void)
{
    static const struct cs_gpu_backend *const automatic[] = {&cs_gpu_cupti, &cs_gpu_events, NULL}, *const cupti[] = {&cs_gpu_cupti, NULL},
                                       *const events[] = {&cs_gpu_events, NULL}, *const off[] = {NULL};
    candidates = cs_option_is(CS_OPTION_GPU, "cupti")    ? cupti
                 : cs_option_is(CS_OPTION_GPU, "events") ? events
                 : cs_option_is(CS_OPTION_GPU, "off")    ? off
                                                         : automatic;
}

static void set_missing(const char *why)
{
    if (why) cs_store(&missing_since, cs_ticks());
    cs_store_rel(&missing_why, why);
}

const char *cs_gpu_missing(cs_u64 *since)
{
    const char *why = cs_load_acq(&missing_why);
    *since = cs_load(&missing_since);
    return why;
}

const char *cs_gpu_second_best(void) { return cs_load_acq(&second_best); }

/* Takes the first that can be had. False where none can; `taken`: one may be had later. */
static bool begin(bool *taken)
{
    *taken = false;
    for (size_t i = 0; candidates[i]; i++) {
        const char *why = candidates[i]->start();
        if (!why) {
            cs_store_rel(&backend, candidates[i]);
            second_best = i ? cs_load(&missing_why) : NULL;
            set_missing(NULL);
            return true;
        }
        *taken = *taken || why == cs_gpu_taken;
        if (!cs_load(&missing_why)) {
            set_missing(why);
            cs_log(cs_option_is(CS_OPTION_GPU, "auto") ? CS_LOG_INFO : CS_LOG_WARN, "no GPU times from %s: %s", candidates[i]->name, why);
        }
    }
    return false;
}

static void flush(bool all)
{
    cs_load(&backend)->flush(all);
    cs_add(&flushes, 1);
}

static void end(void)
{
    const struct cs_gpu_backend *b = cs_load(&backend);
    flush(true);
    b->stop();
}

/* One round: what was asked, and what is due. `away`: the backend has let go, or never had it. */
static void round_once(bool asked, bool *away)
{
    static int idle;
    bool back = cs_load_acq(&stepped_back);
    if (back && !*away) {
        end();
        *away = true;
    } else if (!back && *away) {
        bool taken;
        *away = !begin(&taken);
    }
    if (*away || !(asked || cs_load(&expected) || ++idle == IDLE_ROUNDS)) return;
    flush(false);
    idle = 0;
}

/* Until the next round is due, or something is asked. */
static void rest(bool away)
{
    cs_u64 (*poll)(void) = away ? NULL : cs_load(&backend)->poll;
    cs_u64 until = cs_monotonic_ns() + PAUSE_NS;
    do cs_worker_pause(&worker, poll ? poll() : PAUSE_NS);
    while (poll && cs_load_acq(&worker.state) == CS_WORKER_RUNNING && cs_monotonic_ns() < until);
}

static void *run(void *unused)
{
    (void)unused;
    bool taken, away = false;
    pthread_setname_np(pthread_self(), "custream-gpu");
    if (!begin(&taken)) {
        if (!taken) {
            cs_worker_set(&worker, CS_WORKER_FAILED);
            return NULL;
        }
        away = true;
    }
    cs_worker_move(&worker, CS_WORKER_STARTING, CS_WORKER_RUNNING);
    for (int now; (now = cs_load_acq(&worker.state)) != CS_WORKER_FINISHING;) {
        round_once(now == CS_WORKER_FLUSHING, &away);
        if (now == CS_WORKER_FLUSHING) cs_worker_move(&worker, CS_WORKER_FLUSHING, CS_WORKER_RUNNING);
        rest(away);
    }
    if (!away) end();
    cs_worker_set(&worker, CS_WORKER_FINISHED);
    return NULL;
}

void cs_gpu_step_back(const char *why, unsigned timeout_ms)
{
    if (atomic_exchange(&stepped_back, true)) return;
    set_missing(why);
    cs_worker_ask(&worker, CS_WORKER_FLUSHING, timeout_ms);
}

void cs_gpu_come_back(void) { cs_store_rel(&stepped_back, false); }

void cs_gpu_start(void)
{
    CS_KEEP_ERRNO;
    if (!candidates || !candidates[0] || cs_load_acq(&worker.state) != CS_WORKER_IDLE) return;
    cs_lock_take(&start_lock);
    if (cs_load(&worker.state) == CS_WORKER_IDLE && !cs_worker_start(&worker, run)) set_missing("its thread could not be started");
    cs_lock_drop(&start_lock);
}

void cs_gpu_flush(unsigned timeout_ms) { cs_worker_ask(&worker, CS_WORKER_FLUSHING, timeout_ms); }
void cs_gpu_wake(void) { cs_worker_wake(&worker); }
void cs_gpu_finish(unsigned timeout_ms) { cs_worker_ask(&worker, CS_WORKER_FINISHING, timeout_ms); }

void cs_gpu_drain(const struct cs_gpu_sink *to) { cs_load_acq(&backend)->drain(to); }
void cs_gpu_expect(bool work) { cs_store(&expected, work); }
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

void cs_gpu_after_fork_in_child(void)
{
    cs_lock_forget(&start_lock);
    if (cs_load(&worker.state) == CS_WORKER_IDLE) return;
    cs_store(&worker.state, CS_WORKER_FAILED); /* CUDA does not live on in a forked child, nor does a profiler */
    cs_store(&backend, &cs_gpu_none);
    cs_store(&cs_gpu_marking, false);
    set_missing("the process was forked from one that used CUDA");
}
