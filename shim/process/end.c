/*
 * The end of a process, however it comes: what was recorded is written.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/direct.h"
#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/over.h"
#include "shim/base/realdl.h"
#include "shim/gpu/backend.h"
#include "shim/object/thread.h"
#include "shim/out/output.h"
#include "shim/policy/load.h"
#include "shim/process/inside.h"
#include "shim/trace/closing.h"
#include "shim/trace/writer.h"

static _Atomic pid_t owner;    /* the process that may end the trace: not a vfork child, which shares our memory */
static _Atomic int number;     /* of that one in /proc, if it is the first of its namespace: such a child may be that too, of another one */
CS_READ_MOSTLY static _Atomic pid_t unwanted; /* the process of which nothing was asked, so nothing is kept; 0: something was, or it has begun to end */
static _Atomic bool told_rules; /* which were not used */

static void be_owner(void)
{
    const pid_t self = getpid();
    cs_store(&number, self == 1 ? cs_process_number() : 0);
    cs_store(&owner, self);
}

bool cs_end_may(void)
{
    const pid_t self = getpid();
    if (cs_load(&owner) != self || self != 1) return cs_load(&owner) == self;
    const int known = cs_load(&number), now = cs_process_number();
    return !known || !now || known == now; /* 0: there is, or was, no /proc */
}

void cs_end_unwanted(void) { cs_store(&unwanted, getpid()); }
bool cs_end_wanted(void) { return atomic_exchange(&unwanted, 0); }

void cs_end_begin(void)
{
    be_owner();
    at_quick_exit(cs_process_ends);
}

void cs_end_after_fork_in_child(void)
{
    be_owner();
    cs_store(&told_rules, false);
    if (cs_load(&unwanted)) cs_end_unwanted();
}

/* For the profiler. Where a signal handler ends the process in the middle of a driver call, that call may hold what the profiler waits for. */
enum { GPU_MS = 5000, GPU_INSIDE_MS = 2000 };
static unsigned gpu_patience_ms(void) { return cs_self && cs_self->inside ? GPU_INSIDE_MS : GPU_MS; }

/* Registered after the driver has come up, so it runs before the driver goes down: the last moment at which a profiler can be asked. */
static void gpu_ends(void)
{
    if (cs_gpu_is_on() && !cs_writer_was_killed() && cs_end_may()) cs_gpu_finish(gpu_patience_ms()); /* one that is still coming up is waited for once, at the end */
}

void cs_gpu_is_ready(void)
{
    static _Atomic bool registered, early; /* the latter: it may yet come up, and perhaps nobody asks again */
    if (!atomic_exchange(cs_gpu_is_on() ? &registered : &early, true)) atexit(gpu_ends);
}

void cs_process_ends(void)
{
    if (cs_load_acq(&cs_mode) != CS_MODE_COLD && cs_writer_was_killed()) return; /* by a filter that may bind this thread too: no call is made that the program does not make */
    pid_t self = getpid();
    atomic_compare_exchange_strong(&unwanted, &self, 0);
    if (cs_load_acq(&cs_mode) == CS_MODE_COLD || !cs_end_may()) return; /* PASS: another thread may be at it, which is waited for */
    CS_KEEP_ERRNO;
    CS_KEEP_UNCANCELLED;
    cs_window_end();
    cs_gpu_finish(gpu_patience_ms());
    cs_mode_end();
    if (!cs_writer_finish() && *cs_output_path())
        cs_log_once(CS_LOG_WARN, "the trace %s has no end: nothing of it could be written for %d s", cs_output_path(), CS_WRITER_STANDSTILL_S);
    cs_log_relay();
    cs_closing_say();
    if (cs_closing_speaks() && !atomic_exchange(&told_rules, true)) cs_policy_say();
}

/* Runs late: a preloaded library is initialised before the program's own, so the program's destructors and atexit functions have run. */
__attribute__((destructor)) static void at_end(void)
{
    cs_process_ends();
    cs_direct_alone();
}

/* _exit runs no destructor: without these, what was recorded since the last flush would be lost with a program that leaves that way. */
static _Noreturn void leave(const char *name, int status)
{
    cs_process_ends();
    void (*next)(int) = (void (*)(int))cs_symbol_behind(name);
    if (next) next(status);
    for (;;) syscall(SYS_exit_group, status);
}
CS_EXPORT _Noreturn void _exit(int status) { leave("_exit", status); }
CS_EXPORT _Noreturn void _Exit(int status) { leave("_Exit", status); }
