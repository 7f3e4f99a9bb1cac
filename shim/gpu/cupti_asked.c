/*
 * What CUPTI is asked for, by us and by another client: kinds of records, records of calls, the place for callbacks. Nobody else decides it.
 *
 * What is known (at work or not, what the other client wants, what CUPTI refused, whether the filter of single calls is any good) makes a struct request:
 * what is wanted. apply() makes CUPTI's state equal to it, on the GPU thread. Another client's wish is answered on its own thread; who wants
 * the place for callbacks gets it there (cs_cupti_runtime_claim).
 */
#include <string.h>

#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/realdl.h"
#include "shim/calls/real.h"
#include "shim/gpu/share.h"
#include "shim/object/context.h"

/* When we ask for a kind, at work. BORROWED: we do not, and a client that does gets records of a kind that we have. FORBIDDEN: nor may anybody else. */
enum when { ALWAYS, IF_THERE, WHOLE_GRAPHS, ALL_CALLS, BORROWED, FORBIDDEN };

static const struct row {
    CUpti_ActivityKind kind;
    enum when when; /* ALWAYS: without it there is no backend */
    const char *name;
} rows[] = {
    {CUPTI_ACTIVITY_KIND_DRIVER, ALL_CALLS, "DRIVER"},
    {CUPTI_ACTIVITY_KIND_RUNTIME, ALL_CALLS, "RUNTIME"},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, ALWAYS, "CONCURRENT_KERNEL"},
    {CUPTI_ACTIVITY_KIND_KERNEL, BORROWED, "KERNEL"}, /* kernels one at a time: excludes those all at once, whose records are the same */
    {CUPTI_ACTIVITY_KIND_MEMCPY, ALWAYS, "MEMCPY"},
    /* With MEMCPY2 and GRAPH_TRACE on, cuptiActivityFlushAll(0) while the program runs makes correct programs that replay graphs with copies end with
     * error 719; any two of the three are harmless (docs/measurements.md). We flush all the time. MEMCPY brings MEMCPY2's records; alone that brings none. */
    {CUPTI_ACTIVITY_KIND_MEMCPY2, FORBIDDEN, "MEMCPY2"},
    {CUPTI_ACTIVITY_KIND_MEMSET, ALWAYS, "MEMSET"},
    {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, WHOLE_GRAPHS, "GRAPH_TRACE"},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, IF_THERE, "OVERHEAD"},
    {CUPTI_ACTIVITY_KIND_MEMORY_POOL, IF_THERE, "MEMORY_POOL"},
};
enum { ROWS = CS_COUNT(rows) };

/* Kinds as bits, by the rows. */
struct request {
    unsigned kinds;
    bool filter;    /* the driver's calls that enqueue work, one by one (cupti_calls.c) */
    bool callbacks; /* of the runtime's calls (cupti_runtime.c): the place for them is asked for, and theirs who gets it */
};

/* What is known; written by the GPU thread. */
static _Atomic bool at_work, paused;
static _Atomic unsigned refused;  /* CUPTI does not have them: not asked again while we are at work */
static _Atomic bool filter_holds; /* it was on when the first context was made, or there is none, and nobody has disabled DRIVER since */
static _Atomic bool graphs_hold;  /* GRAPH_TRACE has been on since before the first context, or there is none: see wants_whole_graphs and too_late */

/* What CUPTI has been asked for: a struct request whose kinds any thread may read. */
static struct {
    _Atomic unsigned kinds;
    bool filter, callbacks;
} asked;

/* --- what is wanted --- */

/* With GRAPH_TRACE on, cuGraphLaunch of a graph that was instantiated while it was off makes the process die (docs/measurements.md); its nodes one by one are
 * harmless. So it is on before there can be a graph and stays on, or never comes. What another client asks for it gets, as it would alone. */
static bool wants_whole_graphs(void)
{
    const bool ours = cs_load(&graphs_hold) && !cs_option_is(CS_OPTION_GRAPH, "node") && !cs_share_wants_nodes();
    return ours || cs_share_wants(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
}

static unsigned rows_with(enum when when)
{
    unsigned bits = 0;
    for (int i = 0; i < ROWS; i++) bits |= rows[i].when == when ? 1u << i : 0;
    return bits;
}

/* Any thread. */
static struct request wanted(void)
{
    if (!cs_load(&at_work)) return (struct request){.kinds = cs_load(&paused) && wants_whole_graphs() ? rows_with(WHOLE_GRAPHS) & ~cs_load(&refused) : 0};
    const bool filter = cs_load(&filter_holds);
    const unsigned kinds = rows_with(ALWAYS) | rows_with(IF_THERE) | (wants_whole_graphs() ? rows_with(WHOLE_GRAPHS) : 0) | (filter ? 0 : rows_with(ALL_CALLS));
    return (struct request){.kinds = kinds & ~cs_load(&refused), .filter = filter, .callbacks = true};
}

static bool is_shared_runtime(const struct cs_image *image, void *unused)
{
    (void)unused;
    return image->soname && !strncmp(image->soname, "libcudart", strlen("libcudart"));
}

/* Looked at when there is a chance to get them. Once they have come, numbers are the runtime's: they are wanted wherever they can be had. */
static bool wants_callbacks(void)
{
    if (cs_load(&cs_runtime_source) != CS_RUNTIME_SYMBOLS) return false;
    return cs_option_is(CS_OPTION_RUNTIME, "cupti") || cs_cupti_runtime_began() || !cs_image_each(is_shared_runtime, NULL);
}

/* A context that was made before us, by a way that we did not see, makes the filter of calls fail. */
static bool any_context(void)
{
    enum { DEVICES = 64 };
    if (cs_load(&cs_contexts.high)) return true;
    for (int device = 0; cs_real.cuDevicePrimaryCtxGetState && device < DEVICES; device++) {
        unsigned flags;
        int active = 0;
        if (cs_real.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS) return false;
        if (active) return true;
    }
    return false;
}

/* --- asking: the GPU thread's --- */

static void disable(unsigned kinds)
{
    if (kinds & rows_with(WHOLE_GRAPHS)) cs_store(&graphs_hold, false);
    for (int i = 0; i < ROWS; i++) {
        if (!(kinds & 1u << i)) continue;
        atomic_fetch_and(&asked.kinds, ~(1u << i));
        cs_cupti()->cuptiActivityDisable(rows[i].kind);
    }
}

/* There may be a graph from before, which must not meet GRAPH_TRACE, unless another client wants that. */
static bool too_late(const struct row *row) { return row->when == WHOLE_GRAPHS && !cs_share_wants(row->kind) && any_context(); }

/* The answer is CUPTI's for the first that it refuses and that we can't do without. */
static CUptiResult enable(unsigned kinds, const char **name)
{
    for (int i = 0; i < ROWS; i++) {
        if (!(kinds & 1u << i)) continue;
        if (too_late(&rows[i])) {
            cs_store(&graphs_hold, false);
            continue;
        }
        CUptiResult result = cs_cupti()->cuptiActivityEnable(rows[i].kind);
        atomic_fetch_or(result == CUPTI_SUCCESS ? &asked.kinds : &refused, 1u << i);
        if (result == CUPTI_SUCCESS && too_late(&rows[i])) disable(1u << i); /* a context was made meanwhile */
        if (result == CUPTI_SUCCESS) continue;
        if (rows[i].when == ALWAYS || rows[i].when == ALL_CALLS) return *name = rows[i].name, result;
        cs_log(CS_LOG_INFO, "CUPTI has no records of kind %s", rows[i].name);
    }
    return CUPTI_SUCCESS;
}

/* All calls are needed, and asked for anew. */
static unsigned lose_filter(void)
{
    const unsigned calls = rows_with(ALL_CALLS);
    asked.filter = false;
    cs_store(&filter_holds, false);
    atomic_fetch_and(&refused, ~calls);
    return calls;
}

static void ask_for_filter(bool on)
{
    if (asked.filter == on) return;
    asked.filter = cs_cupti_calls_filter(on) && on;
    if (asked.filter != on) lose_filter();
}

/* There is a chance to get the place when we come to work, and when another client has left it. False where the driver's calls are needed instead. */
static bool ask_for_callbacks(bool on)
{
    const bool first = on && !asked.callbacks, again = on && !first && cs_cupti_runtime_is_free();
    asked.callbacks = on;
    if (!on) cs_cupti_runtime_end();
    return (!first && !again) || cs_cupti_runtime_begin(wants_callbacks(), again);
}

/* Makes CUPTI's state what is wanted: first what goes, then what comes, the callbacks last. `anew`: kinds that go first whether we asked for them or not;
 * enabling what is enabled does nothing, even where its callbacks have gone with those of another kind. */
static CUptiResult apply(unsigned anew, const char **name)
{
    const unsigned calls = rows_with(ALL_CALLS), go = (cs_load(&asked.kinds) & ~wanted().kinds) | anew;
    if (!wanted().callbacks) ask_for_callbacks(false);
    disable(go & ~calls); /* no work without its call */
    disable(go & calls);
    ask_for_filter(wanted().filter);
    CUptiResult result = enable(wanted().kinds & ~cs_load(&asked.kinds), name);
    if (result != CUPTI_SUCCESS || !wanted().callbacks || ask_for_callbacks(true)) return result;
    disable(lose_filter());
    return enable(wanted().kinds & ~cs_load(&asked.kinds), name);
}

CUptiResult cs_cupti_ask_begin(const char **name)
{
    const char *unused;
    const bool called_back = cs_share_called_back(), held = cs_load(&filter_holds);
    cs_cupti_calls_read();
    cs_store(&refused, 0);
    cs_store(&filter_holds, (cs_load(&filter_holds) || !any_context()) && !called_back);
    cs_store(&graphs_hold, cs_load(&graphs_hold) || !any_context());
    cs_store(&at_work, true);
    CUptiResult result = apply(rows_with(FORBIDDEN) | (called_back ? rows_with(ALL_CALLS) : 0), name); /* another client may have had those on before us */
    if (result == CUPTI_SUCCESS && !held && cs_load(&filter_holds) && any_context()) result = apply(lose_filter(), name); /* one was made meanwhile: before the filter, or after */
    if (result != CUPTI_SUCCESS) cs_store(&at_work, false), apply(0, &unused);
    cs_store_rel(&paused, false);
    return result;
}

void cs_cupti_ask_pause(void)
{
    const char *unused;
    const bool made = cs_load(&cs_contexts.high); /* one that is being made by now finds the filter off, or may */
    cs_store_rel(&paused, true);
    cs_store(&at_work, false);
    apply(0, &unused);
    cs_store(&filter_holds, cs_load(&filter_holds) && made);
}

void cs_cupti_ask_end(void)
{
    const char *unused;
    cs_store(&at_work, false);
    cs_store_rel(&paused, false);
    apply(lose_filter(), &unused); /* another client's as well, that went on for us */
}

void cs_cupti_ask_again(void)
{
    const char *name = NULL;
    if (cs_load(&paused)) return;
    apply(cs_gpu_calls_missing(false) ? lose_filter() : 0, &name);
    if (name) cs_log(CS_LOG_WARN, "CUPTI gives no more records of kind %s", name);
}

/* --- any thread --- */

bool cs_cupti_paused(void) { return cs_load_acq(&paused); }

bool cs_cupti_calls_are_all(void)
{
    const unsigned calls = rows_with(ALL_CALLS);
    return (cs_load(&asked.kinds) & calls) == calls;
}

void cs_cupti_wishes_changed(void)
{
    if (wanted().kinds != cs_load(&asked.kinds)) cs_gpu_flush(1000);
}

/* --- another client's wishes, on its thread --- */

static const struct row *row_of(CUpti_ActivityKind kind)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].kind == kind) return &rows[i];
    return NULL;
}

/* It gets the records from ours. */
static bool has(const struct row *row)
{
    switch (row->when) {
    case ALL_CALLS: return cs_cupti_calls_are_all();
    case BORROWED:
    case FORBIDDEN: return true;
    default: return cs_load(&at_work) && !(cs_load(&refused) & 1u << (row - rows));
    }
}

CUptiResult cs_cupti_ask_for_client(CUpti_ActivityKind kind, bool on)
{
    const struct row *row = row_of(kind);
    if (row && has(row)) return CUPTI_SUCCESS;
    if (on) return cs_cupti()->cuptiActivityEnable(kind);
    /* Calls stay on once they were: the filter of ours does not come back, and after RUNTIME is disabled CUPTI 13.0 tells of no driver call any more that is
     * made inside a runtime call. */
    return row && row->when == ALL_CALLS ? CUPTI_SUCCESS : cs_cupti()->cuptiActivityDisable(kind);
}

void cs_cupti_mend(CUpti_ActivityKind kind)
{
    const struct row *row = row_of(kind);
    if (row && row->when == FORBIDDEN) cs_cupti()->cuptiActivityDisable(kind);
}
