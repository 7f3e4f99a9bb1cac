/*
 * What is done here at steps of the process (process/process.h).
 */
#include "shim/base/options.h"
#include "shim/wrap/inside.h"
#include "shim/wrap/runtime.h"

static void options_read(void)
{
    cs_runtime_begin(!cs_option_is(CS_OPTION_RUNTIME, "off"));
    if (!cs_option_is(CS_OPTION_TRACE, "off") || cs_option_is(CS_OPTION_CTL, "on")) cs_nvtx_begin();
}

const struct cs_process_steps cs_process_steps = {
    .driver_met = cs_lookup_init,
    .keeps_objects = cs_callbacks_init,
    .options_read = options_read,
    .thread_starts = cs_annotate_thread_starts,
    .window_opened = cs_annotate_window_opened,
    .after_fork_in_child = cs_annotate_after_fork_in_child,
};
