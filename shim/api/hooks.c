/* Hooks, plug-ins and annotations: all of them the preload library's business. */
#include "shim/api/link.h"

CS_EXPORT status custream_register_hook(custream_hook_kind_t kind, custream_hook_fn *function, void *arg, custream_hook_t *hook)
{
    cs_u32 number;
    NEED(function);
    NEED(hook);
    CHECK((unsigned)kind < CUSTREAM_HOOK_KINDS, CUSTREAM_INVALID_VALUE);
    TRY(api_link->hook(kind, function, arg, &number));
    *hook = (custream_hook_t)(uintptr_t)number;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_unregister_hook(custream_hook_t hook)
{
    bool running = false;
    NEED(hook);
    CHECK((uintptr_t)hook <= UINT32_MAX && api_link->unhook((cs_u32)(uintptr_t)hook, &running), CUSTREAM_INVALID_HANDLE);
    return running ? CUSTREAM_NOT_READY : CUSTREAM_SUCCESS;
}

/* --- annotations --- */

CS_EXPORT status custream_trace_range_push(const char *text)
{
    NEED(text);
    return api_link->push(text) < 0 ? CUSTREAM_NO_MEMORY : CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_trace_range_pop(void) { return api_link->pop() < 0 ? CUSTREAM_INVALID_VALUE : CUSTREAM_SUCCESS; }

CS_EXPORT status custream_trace_mark(const char *text)
{
    NEED(text);
    api_link->mark(text);
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_trace_start(void) { return api_link->record(true); }
CS_EXPORT status custream_trace_stop(void) { return api_link->record(false); }
CS_EXPORT status custream_trace_flush(void) { return api_link->flush(); }
