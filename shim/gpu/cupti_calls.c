/*
 * Which calls enqueue work: records of them say which work is whose. All measured with CUPTI 13.0 (docs/measurements.md):
 *
 * The calls of the driver that enqueue work, one by one: no other call pays anything, and work has the driver's number wherever the call came from. That
 * filter is honoured where it was on when the process's first context was made; it may be switched off and on again, and is lost for good once anybody
 * disables the DRIVER kind.
 *
 * Else all calls, of the driver and of the runtime: from when either kind is first enabled, work that was enqueued through the runtime has the number of
 * the runtime's call, and the driver's call inside it has no record. It costs cuStreamQuery 5 %. Of those records only such as may have enqueued work
 * are looked at.
 */
#include <string.h>

#include "shim/calls/calls.h"
#include "shim/gpu/cupti.h"

enum { CALLS = CS_CUPTI_CALLS };

/* By CUPTI's numbers, from the names that it gives them; of the runtime whether it may. Written before the first record comes. */
static bool enqueues[2][CALLS];
static bool known;

size_t cs_cupti_unversioned(const char *name)
{
    for (const char *at = strstr(name, "_v"); at; at = strstr(at + 1, "_v"))
        if (at[2] >= '0' && at[2] <= '9') return (size_t)(at - name);
    return strlen(name);
}

/* "cuMemcpyHtoD_v2_ptds", "cudaMemcpyAsync_ptsz_v7000": how long the name is without what is behind it. */
static size_t base_length(const char *name)
{
    const size_t length = cs_cupti_unversioned(name);
    const char *sibling = strstr(name, "_pt");
    return sibling && (size_t)(sibling - name) < length ? (size_t)(sibling - name) : length;
}

static bool driver_enqueues(const char *symbol)
{
    for (int call = 1; call < CS_CALL_COUNT; call++)
        if (cs_call_enqueues((enum cs_call)call) && !strcmp(cs_call_info[call].name, symbol)) return true;
    return false;
}

/* A call of the runtime is named after the driver's that it makes, or makes several, or none: only where there is one by its name is that known. `lengths` has the
 * base_length of each of the driver's, behind "cu": each of the runtime's is compared with all of them. */
static bool runtime_may_enqueue(const char *symbol, const size_t *lengths)
{
    const char *rest = symbol + strlen("cuda");
    size_t length = base_length(rest);
    bool any = false;
    if (strncmp(symbol, "cuda", 4)) return true;
    for (int call = 1; call < CS_CALL_COUNT; call++) {
        const char *name = cs_call_info[call].name + strlen("cu");
        if (lengths[call] != length || strncmp(name, rest, length)) continue;
        if (cs_call_enqueues((enum cs_call)call)) return true;
        any = true;
    }
    return !any;
}

void cs_cupti_calls_read(void)
{
    size_t lengths[CS_CALL_COUNT] = {0};
    if (known || !cs_cupti()->cuptiGetCallbackName) return;
    for (int call = 1; call < CS_CALL_COUNT; call++) lengths[call] = base_length(cs_call_info[call].name + strlen("cu"));
    for (cs_u32 id = 1; id < CALLS; id++) {
        const char *driver = NULL, *runtime = NULL;
        bool last = cs_cupti()->cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, id, &driver) != CUPTI_SUCCESS;
        last &= cs_cupti()->cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, id, &runtime) != CUPTI_SUCCESS;
        if (last) break;
        enqueues[0][id] = driver && driver_enqueues(driver);
        enqueues[1][id] = runtime && runtime_may_enqueue(runtime, lengths);
        known |= enqueues[0][id];
    }
}

bool cs_cupti_may_enqueue(const CUpti_ActivityAPI *call)
{
    return !known || call->cbid >= CALLS || enqueues[call->kind == CUPTI_ACTIVITY_KIND_RUNTIME][call->cbid];
}

bool cs_cupti_calls_filter(bool on)
{
    bool any = false;
    for (cs_u32 id = 1; known && cs_cupti()->cuptiActivityEnableDriverApi && id < CALLS; id++)
        if (enqueues[0][id] && cs_cupti()->cuptiActivityEnableDriverApi(id, on) == CUPTI_SUCCESS) any = true;
    return any;
}
