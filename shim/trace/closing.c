#include "shim/trace/closing.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/verdict.h"
#include "shim/base/watch.h"
#include "shim/trace/totals.h"

enum { TEXT = 4096, LIST = 512 };

static char text[TEXT];
static const char *path;
static _Atomic bool ready;

/* Files are shown as the folder has them in which the file was opened: the writer thread stays there. */
void cs_closing_prepare(void)
{
    char list[LIST], folder[PATH_MAX];
    struct cs_verdict verdict;
    cs_totals_verdict(&verdict, list, sizeof list);
    path = cs_path_from(cs_output_path(), getcwd(folder, sizeof folder) ? folder : "");
    const size_t n = cs_verdict_sentence(text, sizeof text, 0, &verdict);
    cs_verdict_advice(text, sizeof text, cs_verdict_put(text, sizeof text, n, ". "), path);
    cs_store_rel(&ready, true);
}

static bool is_wanted(void)
{
    const char *run = getenv(CS_WATCH_VARIABLE);
    return !cs_option_is(CS_OPTION_QUIET, "on") && ((run && *run) || cs_log_is_terminal());
}

void cs_closing_say(void)
{
    if (cs_load_acq(&ready) && atomic_exchange(&ready, false) && is_wanted()) cs_log_report(path, "%s", text);
}

void cs_closing_after_fork_in_child(void) { cs_store(&ready, false); }
