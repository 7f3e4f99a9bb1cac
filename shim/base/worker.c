#define _GNU_SOURCE
#include "shim/base/worker.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/base/realdl.h"

enum { STACK = 512 << 10, ROUND_NS = 100000000 }; /* for what the thread itself does; the longest that an asker sleeps */
static const cs_u64 PATIENCE_NS = 2000000000, LOADER_PATIENCE_NS = 250000000;

static long futex(struct cs_worker *worker, int op, int value, const struct timespec *timeout)
{
    CS_KEEP_ERRNO; /* the program's threads wait here too */
    return syscall(SYS_futex, &worker->state, op | FUTEX_PRIVATE_FLAG, value, timeout);
}

static void wait_while(struct cs_worker *worker, int state) { futex(worker, FUTEX_WAIT, state, &(struct timespec){0, ROUND_NS}); }

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

/* --- which threads are ours --- */

enum { WORKERS = 16 };
static struct cs_worker *_Atomic workers[WORKERS]; /* that were ever started; entries are never taken out */

static void enlist(struct cs_worker *worker)
{
    for (int i = 0; i < WORKERS; i++) {
        struct cs_worker *there = NULL;
        if (atomic_compare_exchange_strong(&workers[i], &there, worker) || there == worker) return;
    }
}

/* NULL: that thread is none of ours. */
static struct cs_worker *worker_of(int tid)
{
    for (int i = 0; i < WORKERS; i++) {
        struct cs_worker *worker = cs_load_acq(&workers[i]);
        if (worker && cs_load(&worker->tid) == tid) return worker;
    }
    return NULL;
}

bool cs_worker_is(int tid) { return worker_of(tid); }

int cs_workers_living(void)
{
    int living = 0;
    for (int i = 0; i < WORKERS; i++) {
        const struct cs_worker *worker = cs_load_acq(&workers[i]);
        living += worker && cs_load(&worker->tid) && !cs_worker_was_killed(worker);
    }
    return living;
}

bool cs_workers_killed(void)
{
    for (int i = 0; i < WORKERS; i++) {
        const struct cs_worker *worker = cs_load_acq(&workers[i]);
        if (worker && cs_worker_was_killed(worker)) return true;
    }
    return false;
}

void cs_workers_after_fork_in_child(void)
{
    for (int i = 0; i < WORKERS; i++)
        if (cs_load(&workers[i])) cs_store(&cs_load(&workers[i])->tid, 0), cs_store(&cs_load(&workers[i])->in_loader, false);
}

static int own_number(void)
{
    char link[64] = ""; /* "PID/task/TID" */
    const char *slash = readlink("/proc/thread-self", link, sizeof link - 1) > 0 ? strrchr(link, '/') : NULL;
    return slash ? atoi(slash + 1) : (int)syscall(SYS_gettid);
}

/* What we do is never as urgent as what a program has real-time threads for, and takes longer than those may wait. */
static void be_ordinary(void)
{
    const int policy = sched_getscheduler(0);
    if (policy == SCHED_FIFO || policy == SCHED_RR) sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
}

static void *begin(void *given)
{
    struct cs_worker *worker = given;
    pthread_mutex_lock(&worker->life);
    be_ordinary();
    cs_floats_default();
    cs_store(&worker->tid, own_number());
    worker->run(worker);
    cs_store(&worker->tid, 0);
    pthread_mutex_unlock(&worker->life);
    return NULL;
}

/* --- starting and asking --- */

/* glibc takes a thread's static thread-local storage from its stack, and a program may have megabytes of it. How much that is only glibc's own function tells. */
static size_t stack_size(const pthread_attr_t *attributes)
{
    size_t (*least)(const pthread_attr_t *) = (__typeof__(least))cs_glibc_symbol("__pthread_get_minstack");
    return STACK + (least ? least(attributes) : 0);
}

/* In a C library that cannot have it, no thread is known to have been killed. */
static void begin_life(pthread_mutex_t *life)
{
    pthread_mutexattr_t attributes;
    int (*init)(pthread_mutexattr_t *) = (__typeof__(init))cs_glibc_symbol("pthread_mutexattr_init");
    int (*robust)(pthread_mutexattr_t *, int) = (__typeof__(robust))cs_glibc_symbol("pthread_mutexattr_setrobust");
    const bool can = init && robust && !init(&attributes) && !robust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(life, can ? &attributes : NULL);
}

void cs_worker_await(struct cs_worker *worker)
{
    struct cs_deadline soon = cs_deadline_from(worker->begun_ns, LOADER_PATIENCE_NS, ROUND_NS), late = cs_deadline_from(worker->begun_ns, PATIENCE_NS, ROUND_NS);
    while (cs_load_acq(&worker->state) == CS_WORKER_STARTING && !cs_worker_was_killed(worker)) {
        const bool loads = worker->loads && !cs_load_acq(&worker->met_loader), is_soon = cs_deadline_is_over(&soon), is_late = cs_deadline_is_over(&late);
        if (loads ? is_soon : is_late) break;
        wait_while(worker, CS_WORKER_STARTING);
    }
}

bool cs_worker_start(struct cs_worker *worker, void *(*run)(void *))
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the application's signals go to its own threads */
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, stack_size(&attributes));
    worker->run = run;
    worker->begun_ns = cs_monotonic_ns();
    begin_life(&worker->life);
    enlist(worker);
    cs_store_rel(&worker->state, CS_WORKER_STARTING);
    bool made = !pthread_create(&thread, &attributes, begin, worker);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!made) cs_store_rel(&worker->state, CS_WORKER_FAILED);
    cs_worker_await(worker);
    return made;
}

static int first(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)info, (void)size, (void)data;
    return 1;
}

/* Takes the loader's two locks, and gives them back. The list's own comes first: dlopen waits for it with the other one held, and who is in a callback of
 * dl_iterate_phdr may be in the call that has us open something. */
void cs_loader_await(void)
{
    Dl_info info;
    struct cs_worker *own = worker_of(own_number());
    if (own) cs_store(&own->in_loader, true);
    cs_objects_each(first, NULL);
    dladdr((const void *)&cs_loader_await, &info);
    if (own) cs_store(&own->in_loader, false);
}

void cs_worker_meet_loader(struct cs_worker *worker)
{
    cs_loader_await();
    cs_store_rel(&worker->met_loader, true);
}

/* How long an asker waits: so long in all, or since `progress` last was another number. Not long for one that waits for the loader: whoever has its lock may wait for
 * the thread that asks. */
struct patience {
    struct cs_deadline all, loader;
    cs_u64 ns, (*progress)(void), seen;
};

static bool may_wait(const struct cs_worker *worker, struct patience *patience)
{
    const cs_u64 now = patience->progress ? patience->progress() : 0;
    if (now != patience->seen) patience->seen = now, patience->all = cs_deadline_in(patience->ns, ROUND_NS);
    const bool all = cs_deadline_is_over(&patience->all), loader = cs_deadline_is_over(&patience->loader);
    return !all && !cs_worker_was_killed(worker) && (!loader || !cs_load(&worker->in_loader));
}

static bool ask(struct cs_worker *worker, enum cs_worker_state wanted, struct patience *patience)
{
    const bool flushes = wanted == CS_WORKER_FLUSHING;
    int now = cs_load_acq(&worker->state);
    if (cs_worker_was_killed(worker)) return false;
    do {
        /* What another asker has it do may have begun before our reason to ask: first that, then once more. */
        for (; flushes && (now == (int)wanted || now == CS_WORKER_STARTING) && may_wait(worker, patience); now = cs_load_acq(&worker->state)) wait_while(worker, now);
        if (now < CS_WORKER_STARTING || now > CS_WORKER_FLUSHING || (flushes && now == CS_WORKER_STARTING)) break; /* whoever awaits the start is to go on doing so */
    } while (!atomic_compare_exchange_weak(&worker->state, &now, (int)wanted));
    if (cs_load_acq(&worker->state) != (int)wanted) return true;
    futex(worker, FUTEX_WAKE, INT_MAX, NULL);
    while ((now = cs_load_acq(&worker->state)) == (int)wanted && may_wait(worker, patience)) wait_while(worker, (int)wanted);
    return now != (int)wanted;
}

bool cs_worker_ask(struct cs_worker *worker, enum cs_worker_state wanted, unsigned timeout_ms)
{
    const cs_u64 ns = (cs_u64)timeout_ms * 1000000;
    return ask(worker, wanted, &(struct patience){.all = cs_deadline_in(ns, ROUND_NS), .loader = cs_deadline_in(LOADER_PATIENCE_NS, ROUND_NS)});
}

bool cs_worker_ask_for_long(struct cs_worker *worker, enum cs_worker_state wanted, unsigned standstill_ms, cs_u64 (*progress)(void))
{
    const cs_u64 ns = (cs_u64)standstill_ms * 1000000;
    return ask(worker, wanted, &(struct patience){cs_deadline_in(ns, ROUND_NS), cs_deadline_in(LOADER_PATIENCE_NS, ROUND_NS), ns, progress, progress()});
}
