#define _GNU_SOURCE
#include "shim/base/worker.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/clock.h"

enum { STACK = 512 << 10 };

static long futex(struct cs_worker *worker, int op, int value, const struct timespec *timeout)
{
    return syscall(SYS_futex, &worker->state, op | FUTEX_PRIVATE_FLAG, value, timeout);
}

static void wait_while(struct cs_worker *worker, int state) { futex(worker, FUTEX_WAIT, state, &(struct timespec){0, 100000000}); }

void cs_worker_set(struct cs_worker *worker, enum cs_worker_state state)
{
    cs_store_rel(&worker->state, (int)state);
    futex(worker, FUTEX_WAKE, INT_MAX, NULL);
}

void cs_worker_move(struct cs_worker *worker, enum cs_worker_state from, enum cs_worker_state to)
{
    int now = from;
    if (atomic_compare_exchange_strong(&worker->state, &now, (int)to)) futex(worker, FUTEX_WAKE, INT_MAX, NULL);
}

void cs_worker_pause(struct cs_worker *worker, cs_u64 ns)
{
    struct timespec pause = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    futex(worker, FUTEX_WAIT, CS_WORKER_RUNNING, &pause);
}

void cs_worker_wake(struct cs_worker *worker) { futex(worker, FUTEX_WAKE, INT_MAX, NULL); }

bool cs_worker_start(struct cs_worker *worker, void *(*run)(void *))
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the application's signals go to its own threads */
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    cs_store_rel(&worker->state, CS_WORKER_STARTING);
    bool made = !pthread_create(&thread, &attributes, run, worker);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!made) cs_store_rel(&worker->state, CS_WORKER_FAILED);
    for (int tries = 0; tries < 20 && cs_load_acq(&worker->state) == CS_WORKER_STARTING; tries++) wait_while(worker, CS_WORKER_STARTING);
    return made;
}

void cs_worker_ask(struct cs_worker *worker, enum cs_worker_state wanted, unsigned timeout_ms)
{
    cs_u64 until = cs_monotonic_ns() + (cs_u64)timeout_ms * 1000000;
    int now = cs_load_acq(&worker->state);
    do {
        /* What another asker has it do may have begun before our reason to ask: first that, then once more. */
        for (; wanted == CS_WORKER_FLUSHING && now == (int)wanted && cs_monotonic_ns() < until; now = cs_load_acq(&worker->state)) wait_while(worker, now);
        if (now < CS_WORKER_STARTING || now > CS_WORKER_FLUSHING) break;
    } while (!atomic_compare_exchange_weak(&worker->state, &now, (int)wanted));
    if (cs_load_acq(&worker->state) != (int)wanted) return;
    futex(worker, FUTEX_WAKE, INT_MAX, NULL);
    while (cs_load_acq(&worker->state) == (int)wanted && cs_monotonic_ns() < until) wait_while(worker, (int)wanted);
}
