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

static cs_u16 *chain_of(struct cs_cupti_names *names, const char *text, size_t length)
{
    cs_u32 hash = 0;
    for (size_t i = 0; i < length; i++) hash = hash * 31 + (unsigned char)text[i];
    return &names->first[hash % CS_COUNT(names->first)];
}

void cs_cupti_name_put(struct cs_cupti_names *names, unsigned call, const char *text, size_t length)
{
    cs_u16 *chain = chain_of(names, text, length);
    names->text[call] = text;
    names->length[call] = (cs_u16)length;
    names->next[call] = *chain;
    *chain = (cs_u16)call;
}

unsigned cs_cupti_name_find(struct cs_cupti_names *names, unsigned after, const char *text, size_t length)
{
    unsigned call = after ? names->next[after] : *chain_of(names, text, length);
    while (call && (names->length[call] != length || memcmp(names->text[call], text, length) != 0)) call = names->next[call];
    return call;
}

/* A call of the runtime is named after the driver's that it makes, or makes several, or none: only where there is one by its name is that known. */
static bool runtime_may_enqueue(struct cs_cupti_names *driver, const char *symbol)
{
    const char *base = symbol + strlen("cuda");
    bool any = false;
    if (strncmp(symbol, "cuda", 4)) return true;
    const size_t length = base_length(base);
    for (unsigned call = 0; (call = cs_cupti_name_find(driver, call, base, length)); any = true)
        if (cs_call_enqueues((enum cs_call)call)) return true;
    return !any;
}

static bool driver_enqueues(struct cs_cupti_names *driver, const char *symbol)
{
    if (strncmp(symbol, "cu", 2)) return false;
    for (unsigned call = 0; (call = cs_cupti_name_find(driver, call, symbol + 2, base_length(symbol + 2)));)
        if (cs_call_enqueues((enum cs_call)call) && !strcmp(cs_call_info[call].name, symbol)) return true;
    return false;
}

void cs_cupti_calls_read(void)
{
    struct cs_cupti_names bases = {0};
    if (known || !cs_cupti()->cuptiGetCallbackName) return;
    for (unsigned call = 1; call < CS_CALL_COUNT; call++) {
        const char *base = cs_call_info[call].name + strlen("cu");
        cs_cupti_name_put(&bases, call, base, base_length(base));
    }
    for (cs_u32 id = 1; id < CALLS; id++) {
        const char *driver = NULL, *runtime = NULL;
        bool last = cs_cupti()->cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, id, &driver) != CUPTI_SUCCESS;
        last &= cs_cupti()->cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, id, &runtime) != CUPTI_SUCCESS;
        if (last) break;
        enqueues[0][id] = driver && driver_enqueues(&bases, driver);
        enqueues[1][id] = runtime && runtime_may_enqueue(&bases, runtime);
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
