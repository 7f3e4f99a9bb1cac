/*
 * The child of a fork.
 */
#include <pthread.h>

#include "shim/base/aide.h"
#include "shim/base/clock.h"
#include "shim/base/log.h"
#include "shim/base/no_room.h"
#include "shim/base/over.h"
#include "shim/base/rings.h"
#include "shim/base/worker.h"
#include "shim/gpu/backend.h"
#include "shim/object/event.h"
#include "shim/object/stream.h"
#include "shim/policy/hooks.h"
#include "shim/process/inside.h"
#include "shim/trace/writer.h"

/* The parent's other threads are gone, wherever they were: all that they may have had in hand is made anew, and nothing was waited for before the fork,
 * since whoever holds a lock of ours may wait for one that a handler of the program's has taken. */
static void after_fork_in_child(void)
{
    cs_start_after_fork_in_child();
    cs_workers_after_fork_in_child();
    cs_log_after_fork_in_child();
    cs_aide_after_fork_in_child();
    cs_over_after_fork_in_child();
    cs_names_after_fork_in_child();
    cs_no_room_after_fork_in_child();
    cs_clock_after_fork_in_child();
    cs_writer_after_fork_in_child();
    cs_gpu_after_fork_in_child();
    cs_threads_forget();
    const bool apart = cs_rings_after_fork_in_child();
    cs_hooks_after_fork_in_child();
    cs_mode_after_fork_in_child();
    cs_process_steps.after_fork_in_child();
    cs_end_after_fork_in_child();
    cs_window_after_fork_in_child();
    cs_ctl_after_fork_in_child();
    /* CUDA does not live on in the child, and what the parent made is not the child's to tell of. */
    const unsigned mode = cs_load(&cs_mode);
    if (!(mode & CS_MODE_WATCH)) return;
    if (apart && cs_contexts_init() && cs_streams_init() && cs_events_init()) cs_mode_begin(cs_window_begin(), mode & CS_MODE_STEER);
    else cs_mode_end();
}

__attribute__((constructor)) static void at_start(void) { pthread_atfork(NULL, NULL, after_fork_in_child); }
