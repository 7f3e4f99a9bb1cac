#define _GNU_SOURCE
#include "shim/base/aide.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/memory.h"
#include "shim/base/over.h"
#include "shim/base/scarce.h"

typedef void task_fn(void);
enum { LOOK_NS = 100000000, BELL_NS = 100000000, KILLED_S = 1 };

static struct cs_worker aide;
static _Atomic bool begun;
static _Atomic cs_u32 bell; /* rises whenever there may be something to do, and when it has been done: the futex of all who wait */
static task_fn *_Atomic asked;
static _Atomic bool watches;
static pid_t process; /* asked for at the start: a filter may kill whoever asks */
static sigset_t mask; /* of the thread that started it: what runs while the process ends gets signals as there */

static void ring(void)
{
    cs_add(&bell, 1);
    syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
}

static void wait_for_bell(cs_u32 heard, const struct timespec *timeout) { syscall(SYS_futex, &bell, FUTEX_WAIT_PRIVATE, heard, timeout); }

static void *run(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "custream-aide");
    cs_worker_move(&aide, CS_WORKER_STARTING, CS_WORKER_RUNNING);
    for (;;) {
        const cs_u32 heard = cs_load_acq(&bell);
        cs_log_relay();
        task_fn *task = cs_load_acq(&asked);
        if (task) {
            task();
            cs_store_rel(&asked, NULL);
            ring();
        } else {
            wait_for_bell(heard, cs_load(&watches) ? &(struct timespec){0, LOOK_NS} : &(struct timespec){KILLED_S, 0});
            if (cs_workers_killed()) cs_store(&watches, true); /* the writer does not look any more */
            if (cs_load(&watches) && cs_process_is_over(false)) cs_store(&watches, false), cs_aide_exit();
        }
    }
    return NULL;
}

void cs_aide_start(void)
{
    if (CS_LIKELY(cs_load_acq(&aide.state) != CS_WORKER_IDLE)) return;
    CS_KEEP_ERRNO;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a handler that calls CUDA would wait for what it interrupts */
    if (!atomic_exchange(&begun, true)) {
        mask = before;
        process = getpid();
        if (cs_threads_are_scarce()) cs_worker_set(&aide, CS_WORKER_FAILED), cs_refused("threads of the library: few are left, which the program may need; nothing is recorded");
        else if (cs_worker_start(&aide, run)) cs_log_left = ring;
        else cs_refused("the aide, which all threads of the library need; nothing is recorded");
    }
    while (cs_load_acq(&aide.state) == CS_WORKER_IDLE) nanosleep(&(struct timespec){0, 100000}, NULL); /* another thread is at it */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool cs_aide_start_worker(struct cs_worker *worker, void *(*run)(void *))
{
    cs_aide_start();
    if (cs_worker_alive(&aide)) return cs_worker_start(worker, run);
    cs_worker_set(worker, CS_WORKER_FAILED);
    return false;
}

bool cs_aide_was_killed(void) { return cs_worker_was_killed(&aide); }

bool cs_aide_lives(void) { return cs_worker_alive(&aide); }
bool cs_aide_is_free(void) { return cs_aide_lives() && !cs_load_acq(&asked); }

bool cs_aide_run(void (*task)(void), unsigned timeout_ms)
{
    struct cs_deadline deadline = cs_deadline_in((cs_u64)timeout_ms * 1000000, BELL_NS);
    bool given = false;
    while (cs_worker_alive(&aide)) {
        const cs_u32 heard = cs_load_acq(&bell);
        task_fn *nobody = NULL;
        if (!given && (given = atomic_compare_exchange_strong(&asked, &nobody, task))) {
            ring();
            if (!timeout_ms) return true;
            continue;
        }
        if (given && cs_load_acq(&asked) != task) return true;
        if (cs_deadline_is_over(&deadline)) {
            if (!given) ring(); /* whoever asks again and again, as for the end, is heard although a bell was lost */
            return false;
        }
        wait_for_bell(heard, &(struct timespec){0, BELL_NS});
    }
    return false;
}

void cs_aide_watch(void)
{
    cs_store(&watches, true);
    ring();
}

/* A filter of the kernel's has killed main, and would have been the end of the process. */
static void die_of(int signal)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    for (int tries = 0; tries < 2; tries++) { /* a filter may refuse once */
        pthread_sigmask(SIG_UNBLOCK, &one, NULL);
        syscall(SYS_kill, process, signal);
        struct cs_deadline deadline = cs_deadline_in(BELL_NS, BELL_NS / 5); /* it may have gone to another thread, and that must get to it first */
        while (!cs_deadline_is_over(&deadline)) wait_for_bell(cs_load(&bell), &(struct timespec){0, BELL_NS / 5});
    }
}

static void *leave(void *unused)
{
    const int status = cs_process_main_status();
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (status & 0x7f) die_of(status & 0x7f);
    if (status) _exit(status >> 8); /* it was no pthread_exit, and no handler would have run */
    exit(0);
    return unused;
}

/* A thread as the program's own: exit handlers have the stack that they have there, and what they wait for is still printed. */
void cs_aide_exit(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, leave, NULL)) leave(NULL);
}

void cs_aide_after_fork_in_child(void)
{
    cs_store(&begun, false);
    cs_store(&asked, NULL);
    cs_store(&watches, false);
    cs_store(&aide.state, CS_WORKER_IDLE);
    cs_log_left = NULL;
}
