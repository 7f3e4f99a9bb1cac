/*
 * CUPTI as far as it tells of the runtime's calls, of one call: the backend's side is
 * shim/gpu/cupti_runtime.c, and cupti_asked.c, which asks for it.
 */
#ifndef CS_TESTS_UNIT_CUPTI_STUB_H
#define CS_TESTS_UNIT_CUPTI_STUB_H

#include <pthread.h>

#include "shim/base/options.h"
#include "shim/gpu/cupti.h"
#include "tests/unit/check.h"

enum { ID = 131 };
static CUpti_CallbackFunc _Atomic callback;
static _Atomic(void *) subscribed; /* what it was given; NULL: nobody is */
static _Atomic int refusals;

static CUptiResult CUPTIAPI stub_subscribe(
    CUpti_SubscriberHandle *out, CUpti_CallbackFunc function, void *data)
{
    void *nobody = NULL;
    atomic_store(&callback, function);
    if (!atomic_compare_exchange_strong(&subscribed, &nobody, data))
        return cs_add(&refusals, 1), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    return *out = (CUpti_SubscriberHandle)(uintptr_t)1, CUPTI_SUCCESS;
}
static CUptiResult CUPTIAPI stub_unsubscribe(CUpti_SubscriberHandle handle)
{
    return (void)handle, atomic_store(&subscribed, NULL), CUPTI_SUCCESS;
}
static CUptiResult CUPTIAPI stub_enable(
    uint32_t on, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    CHECK(on && handle && domain == CUPTI_CB_DOMAIN_RUNTIME_API && id == ID);
    return CUPTI_SUCCESS;
}
static _Atomic int kinds_set; /* how often a kind was switched */
static CUptiResult CUPTIAPI stub_activity(CUpti_ActivityKind kind)
{
    return (void)kind, cs_add(&kinds_set, 1), CUPTI_SUCCESS;
}
static CUptiResult CUPTIAPI stub_name(CUpti_CallbackDomain domain, uint32_t id, const char **name)
{
    *name = "cudaStreamSynchronize_v3020";
    return domain == CUPTI_CB_DOMAIN_RUNTIME_API && id == ID ? CUPTI_SUCCESS
                                                             : CUPTI_ERROR_INVALID_PARAMETER;
}

/* By a thread of the program, which was told to `turn`. */
static void make_call(void *turn, cs_u32 correlation)
{
    uint64_t data = 0;
    int result = 0;
    CUpti_CallbackData call = {
        .callbackSite = CUPTI_API_ENTER, .correlationData = &data, .correlationId = correlation};
    atomic_load (&callback)(turn, CUPTI_CB_DOMAIN_RUNTIME_API, ID, &call);
    call.callbackSite = CUPTI_API_EXIT;
    call.functionReturnValue = &result;
    atomic_load (&callback)(turn, CUPTI_CB_DOMAIN_RUNTIME_API, ID, &call);
}

static void stub_begin(struct cs_runtime_listener listener)
{
    static const struct cs_cupti stub = {
        .cuptiSubscribe = stub_subscribe,
        .cuptiUnsubscribe = stub_unsubscribe,
        .cuptiEnableCallback = stub_enable,
        .cuptiGetCallbackName = stub_name,
        .cuptiActivityEnable = stub_activity,
        .cuptiActivityDisable = stub_activity,
    };
    cs_options_read();
    cs_store_rel(&cs_cupti_opened, &stub);
    cs_runtime_listener = listener;
    cs_store(&cs_runtime_source, CS_RUNTIME_SYMBOLS);
    REQUIRE(cs_cupti_ask_begin(&(const char *){NULL}) == CUPTI_SUCCESS);
    REQUIRE(atomic_load(&subscribed) && cs_load(&cs_runtime_source) == CS_RUNTIME_PROFILER);
}

#endif
