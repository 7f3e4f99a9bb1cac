/*
 * Which kinds of the GPU's records CUPTI makes. This file alone switches them, on the GPU thread alone, and wanted() alone decides.
 *
 * The rule: MEMCPY2 is never on beside GRAPH_TRACE. With both on, cuptiActivityFlushAll(0) while the program runs makes correct programs that replay graphs
 * with copies end with error 719; any two of the three are harmless (docs/measurements.md). We flush all the time, so MEMCPY2 stays off, and we lose
 * nothing by that: copies between GPUs have records of kind MEMCPY2 where MEMCPY is on, and none where MEMCPY2 alone is. Another client that asks for
 * MEMCPY2 gets those.
 */
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/gpu/share.h"

enum { KERNEL, COPY, SET, GRAPH, OVERHEAD, POOL, KINDS };
enum { NEEDED = 1u << KERNEL | 1u << COPY | 1u << SET }; /* without these there is no backend */

static const struct {
    CUpti_ActivityKind kind;
    const char *name;
} kinds[KINDS] = {
    [KERNEL] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "CONCURRENT_KERNEL"},
    [COPY] = {CUPTI_ACTIVITY_KIND_MEMCPY, "MEMCPY"},
    [SET] = {CUPTI_ACTIVITY_KIND_MEMSET, "MEMSET"},
    [GRAPH] = {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, "GRAPH_TRACE"},
    [OVERHEAD] = {CUPTI_ACTIVITY_KIND_OVERHEAD, "OVERHEAD"},
    [POOL] = {CUPTI_ACTIVITY_KIND_MEMORY_POOL, "MEMORY_POOL"},
};

/* Bits by the table's index; written by the GPU thread. */
static _Atomic unsigned on;      /* CUPTI has them on */
static _Atomic unsigned refused; /* CUPTI does not have them: not asked again */
static _Atomic bool at_work;     /* between cs_cupti_kinds_begin and _end */

static unsigned wanted(void)
{
    if (!cs_load(&at_work)) return 0;
    const bool ours = !cs_option_is(CS_OPTION_GRAPH, "node") && !cs_share_wants_nodes();
    const bool graphs = ours || cs_share_wants(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    const unsigned all = (1u << KINDS) - 1;
    return (graphs ? all : all & ~(1u << GRAPH)) & ~cs_load(&refused);
}

bool cs_cupti_kind_is_ours(CUpti_ActivityKind kind)
{
    if (!cs_load(&at_work)) return false;
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].kind == kind) return !(cs_load(&refused) & 1u << i);
    return kind == CUPTI_ACTIVITY_KIND_MEMCPY2;
}

/* First what goes, then what comes. The answer is CUPTI's for the first needed kind that it refuses. */
static CUptiResult apply(const char **name)
{
    const unsigned want = wanted();
    for (int i = 0; i < KINDS; i++)
        if (cs_load(&on) & ~want & 1u << i) cs_cupti.cuptiActivityDisable(kinds[i].kind), atomic_fetch_and(&on, ~(1u << i));
    for (int i = 0; i < KINDS; i++) {
        if (!(want & ~cs_load(&on) & 1u << i)) continue;
        CUptiResult result = cs_cupti.cuptiActivityEnable(kinds[i].kind);
        if (result == CUPTI_SUCCESS) {
            atomic_fetch_or(&on, 1u << i);
        } else if (NEEDED & 1u << i) {
            *name = kinds[i].name;
            return result;
        } else {
            cs_log(CS_LOG_INFO, "CUPTI has no records of kind %s", kinds[i].name);
            atomic_fetch_or(&refused, 1u << i);
        }
    }
    return CUPTI_SUCCESS;
}

CUptiResult cs_cupti_kinds_begin(const char **name)
{
    cs_cupti_kinds_mend(CUPTI_ACTIVITY_KIND_MEMCPY2); /* another client may have had it on before us */
    cs_store(&refused, 0);
    cs_store(&at_work, true);
    CUptiResult result = apply(name);
    if (result != CUPTI_SUCCESS) cs_cupti_kinds_end();
    return result;
}

void cs_cupti_kinds_end(void)
{
    const char *name;
    cs_store(&at_work, false);
    apply(&name);
}

void cs_cupti_kinds_again(void)
{
    const char *name = NULL;
    if (wanted() != cs_load(&on)) apply(&name);
    if (name) cs_log(CS_LOG_WARN, "CUPTI gives no more records of kind %s", name);
}

void cs_cupti_kinds_changed(void)
{
    if (wanted() != cs_load(&on)) cs_gpu_flush(1000);
}

void cs_cupti_kinds_mend(CUpti_ActivityKind kind)
{
    if (kind == CUPTI_ACTIVITY_KIND_MEMCPY2) cs_cupti.cuptiActivityDisable(kind);
}
