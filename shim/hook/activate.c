/*
 * Start and end of the shim in a process. Nothing happens before the program reaches for the CUDA driver.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/realdl.h"
#include "shim/calls/real.h"
#include "shim/gpu/backend.h"
#include "shim/hook/callback.h"
#include "shim/hook/lookup.h"
#include "shim/hook/mode.h"
#include "shim/object/creator.h"
#include "shim/object/event.h"
#include "shim/object/kernel.h"
#include "shim/object/stream.h"
#include "shim/trace/writer.h"

CS_READ_MOSTLY _Atomic unsigned cs_mode = CS_MODE_COLD;
static _Atomic pid_t owner; /* the process that may end the trace: not a vfork child, which shares our memory */

static void before_fork(void)
{
    cs_writer_before_fork();
    cs_names_before_fork();
}

static void after_fork_in_parent(void)
{
    cs_names_after_fork();
    cs_writer_after_fork_in_parent();
}

static void after_fork_in_child(void)
{
    cs_names_after_fork();
    cs_writer_after_fork_in_child();
    cs_threads_forget();
    cs_store(&owner, getpid());
}

static bool objects_init(void)
{
    return cs_contexts_init() && cs_streams_init() && cs_events_init() && cs_kernels_init() && cs_creator_init() && cs_callbacks_init();
}

static void activate_locked(void)
{
    cs_options_read();
    cs_thread_set_ring_size(cs_option_size(CS_OPTION_BUFFER));
    bool tracing = !cs_option_is(CS_OPTION_TRACE, "off");
    if (tracing && !objects_init()) {
        cs_log(CS_LOG_ERROR, "no memory for stream objects; nothing is recorded");
        tracing = false;
    }
    if (tracing) {
        cs_clock_init();
        cs_gpu_choose();
        cs_store(&owner, getpid());
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
        at_quick_exit(cs_process_ends);
    }
    cs_store_rel(&cs_mode, tracing ? CS_MODE_RECORD : CS_MODE_PASS);
}

bool cs_activate(void)
{
    static _Atomic pid_t activating; /* thread id; a mutex would deadlock where a look-up re-enters */
    pid_t self = (pid_t)syscall(SYS_gettid), nobody = 0;
    while (!atomic_compare_exchange_strong(&activating, &nobody, self)) {
        if (nobody == self) return false;
        if (cs_load_acq(&cs_mode) != CS_MODE_COLD) return true;
        sched_yield();
        nobody = 0;
    }
    CS_KEEP_ERRNO;
    if (cs_load_acq(&cs_mode) == CS_MODE_COLD && cs_realdl_init() && cs_real_init()) {
        cs_lookup_init();
        activate_locked();
    }
    cs_store_rel(&activating, 0);
    return cs_load_acq(&cs_mode) != CS_MODE_COLD;
}

CS_COLD struct cs_thread *cs_enter_slowly(void)
{
    if (cs_load_acq(&cs_mode) == CS_MODE_COLD) cs_activate();
    if (cs_load_acq(&cs_mode) != CS_MODE_RECORD) return NULL;
    if (cs_self) return NULL; /* inside a driver call already */
    if (!cs_writer_start()) {
        cs_store(&cs_mode, CS_MODE_PASS);
        return NULL;
    }
    return cs_thread_start();
}

void cs_process_ends(void)
{
    if (cs_load_acq(&cs_mode) != CS_MODE_RECORD || cs_load(&owner) != getpid()) return;
    CS_KEEP_ERRNO;
    cs_store_rel(&cs_mode, CS_MODE_PASS);
    cs_writer_finish(10000);
}

void cs_process_execs(void)
{
    CS_KEEP_ERRNO;
    if (cs_load_acq(&cs_mode) == CS_MODE_RECORD && cs_load(&owner) == getpid()) cs_writer_flush(10000);
}

/* Runs late: a preloaded library is initialised before the program's own, so the program's destructors and atexit functions have run. */
__attribute__((destructor)) static void at_end(void) { cs_process_ends(); }

/* _exit runs no destructor: without these, what was recorded since the last flush would be lost with a program that leaves that way. */
static _Noreturn void leave(int status)
{
    cs_process_ends();
    for (;;) syscall(SYS_exit_group, status);
}
CS_EXPORT _Noreturn void _exit(int status) { leave(status); }
CS_EXPORT _Noreturn void _Exit(int status) { leave(status); }
