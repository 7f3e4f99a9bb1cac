#include "shim/trace/closing.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/verdict.h"
#include "shim/base/watch.h"
#include "shim/out/part.h"
#include "shim/trace/totals.h"

enum { TEXT = 8192 + 512, LIST = 512 };

static char text[TEXT];
static const char *path;
static char folder[PATH_MAX];
static _Atomic bool ready, watched;
static _Atomic int execs;  /* threads that are about to have the process become another program */
static _Atomic bool fresh; /* one has said so since the last flush */
static bool told;          /* the watcher, that it may; the writer's */

static bool is_quiet(void) { return cs_option_is(CS_OPTION_QUIET, "on") || cs_option_is(CS_OPTION_LOG, "error"); }

void cs_closing_begin(void) { cs_watch_hello(is_quiet()); }

/* Files are shown from the folder in which the first was opened. At the end a program may have forbidden the question. */
void cs_closing_file(void)
{
    if (!*folder && !getcwd(folder, sizeof folder)) strcpy(folder, "/");
    const struct cs_file_id id = cs_output_id();
    cs_watch_file(cs_output_path(), id.device, id.inode);
}

void cs_closing_exec(void)
{
    cs_add(&execs, 1);
    cs_store_rel(&fresh, true);
}

/* Never below zero: a signal handler may fork in the middle of an exec, and in the child the count has begun anew. */
void cs_closing_stays(void)
{
    int now = cs_load(&execs);
    while (now > 0 && !atomic_compare_exchange_weak(&execs, &now, now - 1)) continue;
}

bool cs_closing_flushed(void)
{
    const bool may = atomic_exchange(&fresh, false);
    if (may) cs_watch_exec(), told = true;
    else if (told && cs_load(&execs) <= 0) cs_watch_stays(), told = false;
    return may;
}

static void compose(void)
{
    char list[LIST];
    struct cs_verdict verdict;
    cs_totals_verdict(&verdict, list, sizeof list);
    path = cs_path_from(cs_output_path(), folder);
    const size_t n = cs_verdict_sentence(text, sizeof text, 0, &verdict);
    cs_verdict_advice(text, sizeof text, cs_verdict_put(text, sizeof text, n, ". "), path);
}

void cs_closing_prepare(bool has_file)
{
    if (has_file) cs_closing_file();
    cs_log_settle(); /* what is said of the run comes first */
    const bool heard = cs_watch_end();
    cs_store(&watched, heard && has_file); /* without one it knows nothing of us */
    if (heard || !has_file) return;
    compose();
    cs_store_rel(&ready, true);
}

static bool is_wanted(void) { return !is_quiet() && (cs_watch_is_run() || cs_log_is_terminal()); }

void cs_closing_say(void)
{
    if (cs_load_acq(&ready) && atomic_exchange(&ready, false) && is_wanted()) cs_log_report(path, "%s", text);
}

bool cs_closing_speaks(void) { return is_wanted() && !cs_load(&watched); }

void cs_closing_after_fork_in_child(void)
{
    cs_store(&ready, false);
    cs_store(&execs, 0);
    cs_store(&fresh, false);
    told = false;
    *folder = 0;
    cs_watch_after_fork_in_child();
}
