/*
 * A thread of the shim's own: started by an application thread, asked to do things, and waited for, with a futex and nothing else.
 *
 * IDLE: none. STARTING: getting ready. RUNNING: goes its rounds. FLUSHING: asked to bring in all that there is, then RUNNING again. FINISHING: asked to do
 * that and end. FINISHED: has done so. FAILED: could not be started, for good. The worker moves from an asked state on; anybody may ask, from a
 * signal handler too.
 *
 * A filter of the kernel's (seccomp) may kill the thread alone, which then moves on from no state. Nobody waits for it, and it counts as none that lives.
 */
#ifndef CS_BASE_WORKER_H
#define CS_BASE_WORKER_H

#include <linux/futex.h>
#include <pthread.h>

#include "shim/base/compiler.h"

enum cs_worker_state {
    CS_WORKER_IDLE, CS_WORKER_STARTING, CS_WORKER_RUNNING, CS_WORKER_FLUSHING, CS_WORKER_FINISHING, CS_WORKER_FINISHED, CS_WORKER_FAILED
};

#define CS_WORKER_GPU_NAME "custream-gpu" /* of the thread that calls profilers (gpu/gpu.c) */

struct cs_worker {
    _Atomic int state;       /* enum cs_worker_state; also the futex */
    _Atomic int tid;         /* of the thread, as /proc has it; 0: there is none */
    void *(*run)(void *);    /* what it does; before it starts */
    bool loads;              /* it opens libraries before it is ready: constant */
    _Atomic bool met_loader; /* that one: the loader was free when it began */
    _Atomic bool in_loader;  /* the thread waits for the loader */
    cs_u64 begun_ns;         /* when it was last started */
    pthread_mutex_t life;    /* the thread holds it, and nobody else takes it; it is robust, so the kernel marks it when the thread is killed */
};

/* A look at memory: whoever asks may be bound by the same filter. */
static inline bool cs_worker_was_killed(const struct cs_worker *worker) { return __atomic_load_n(&worker->life.__data.__lock, __ATOMIC_ACQUIRE) & FUTEX_OWNER_DIED; }

static inline bool cs_worker_alive(const struct cs_worker *worker)
{
    int state = cs_load_acq(&worker->state);
    return state >= CS_WORKER_STARTING && state <= CS_WORKER_FLUSHING && !cs_worker_was_killed(worker);
}

/* IDLE to STARTING: makes the thread, detached and with all signals blocked, and awaits it. One caller at a time. False where it can't be made. */
bool cs_worker_start(struct cs_worker *worker, void *(*run)(void *));

/* While it is STARTING, waits until two seconds after its start, whoever comes when: not for ever, since it may have to wait for the loader, which the caller may
 * be inside of. Only a quarter of a second for one that loads and cannot begin to: a constructor that holds the loader's lock may wait for the caller. */
void cs_worker_await(struct cs_worker *worker);

/* The worker's, of one that loads, before it does: waits until the loader is free. */
void cs_worker_meet_loader(struct cs_worker *worker);

/* On a thread of ours, before it opens a library: until nobody is in the loader, or in a callback of dl_iterate_phdr. */
void cs_loader_await(void);

/* The worker's: a new state, told to whoever waits; the same only from `from`; a pause that an asker cuts short. */
void cs_worker_set(struct cs_worker *worker, enum cs_worker_state state);
void cs_worker_move(struct cs_worker *worker, enum cs_worker_state from, enum cs_worker_state to);
void cs_worker_pause(struct cs_worker *worker, cs_u64 ns);
void cs_worker_wake(struct cs_worker *worker); /* anybody's: cuts a pause short without asking for anything */

/* Asks a living worker for FLUSHING or FINISHING and waits, at most so long, until it is no longer asked. False: it still is. No lock, no allocation. */
bool cs_worker_ask(struct cs_worker *worker, enum cs_worker_state wanted, unsigned timeout_ms);

/* The same, and waits as long as the worker gets on: at most so long in which `progress` stays the same number. */
bool cs_worker_ask_for_long(struct cs_worker *worker, enum cs_worker_state wanted, unsigned standstill_ms, cs_u64 (*progress)(void));

/* Whether that thread of this process is one of ours, by its number in /proc, which may be that of another namespace's. Any thread. */
bool cs_worker_is(int tid);
int cs_workers_living(void);  /* how many there are */
bool cs_workers_killed(void); /* one of them was */
void cs_workers_after_fork_in_child(void);

#endif
