/*
 * Another client's callbacks: it gets the one place that CUPTI has for a subscriber, and what they change about records is made good.
 */
#include "shim/base/keep.h"
#include "shim/gpu/share.h"

static _Atomic(CUpti_SubscriberHandle) client; /* NULL: it has none */
static _Atomic bool called_back;               /* of runtime calls, or had them, since CUPTI was last finalized */

bool cs_share_subscribed(void) { return cs_load_acq(&client); }
bool cs_share_called_back(void) { return cs_load_acq(&called_back); }

void cs_share_finalized(void)
{
    cs_store(&called_back, false);
    if (atomic_exchange(&client, NULL)) cs_cupti_runtime_unclaim();
}

void cs_share_unsubscribe(void)
{
    CUpti_SubscriberHandle handle = atomic_exchange(&client, NULL);
    __typeof__(&cuptiUnsubscribe) real = CS_CUPTI_REAL(cuptiUnsubscribe);
    if (handle && real) real(handle);
    if (handle) cs_cupti_runtime_unclaim();
}

/* The place is one in a process. */
static CUptiResult subscribed(CUptiResult result, const CUpti_SubscriberHandle *handle)
{
    if (result == CUPTI_SUCCESS) cs_store_rel(&client, *handle);
    else cs_cupti_runtime_unclaim();
    return result;
}

CUptiResult cs_share_cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *data)
{
    CS_KEEP_ERRNO;
    __typeof__(&cuptiSubscribe) real = CS_CUPTI_REAL(cuptiSubscribe);
    if (real) cs_cupti_runtime_claim();
    return real ? subscribed(real(subscriber, callback, data), subscriber) : CUPTI_ERROR_NOT_INITIALIZED;
}

CUptiResult cs_share_cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *data, CUpti_SubscriberParams *parameters)
{
    CS_KEEP_ERRNO;
    __typeof__(&cuptiSubscribe_v2) real = CS_CUPTI_REAL(cuptiSubscribe_v2);
    if (real) cs_cupti_runtime_claim();
    return real ? subscribed(real(subscriber, callback, data, parameters), subscriber) : CUPTI_ERROR_NOT_INITIALIZED;
}

CUptiResult cs_share_cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    CS_KEEP_ERRNO;
    __typeof__(&cuptiUnsubscribe) real = CS_CUPTI_REAL(cuptiUnsubscribe);
    CUptiResult result = real ? real(subscriber) : CUPTI_ERROR_NOT_INITIALIZED;
    if (result == CUPTI_SUCCESS) cs_store(&client, NULL), cs_cupti_runtime_unclaim();
    return result;
}

/* From its first callback of a runtime call on, the driver's calls in that have no records: all calls then, while the backend's own are at work. */
static void runtime_is_called_back(bool on)
{
    if (!on || atomic_exchange(&called_back, true) || !cs_share_has_records() || cs_cupti_calls_are_all()) return;
    cs_gpu_calls_missing(true);
    cs_gpu_flush(1000);
}

CUptiResult cs_share_cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    CS_KEEP_ERRNO;
    runtime_is_called_back(enable && domain == CUPTI_CB_DOMAIN_RUNTIME_API);
    CS_CUPTI_THROUGH(cuptiEnableCallback, enable, subscriber, domain, id);
}

CUptiResult cs_share_cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain)
{
    CS_KEEP_ERRNO;
    runtime_is_called_back(enable && domain == CUPTI_CB_DOMAIN_RUNTIME_API);
    CS_CUPTI_THROUGH(cuptiEnableDomain, enable, subscriber, domain);
}

CUptiResult cs_share_cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber)
{
    CS_KEEP_ERRNO;
    runtime_is_called_back(enable);
    CS_CUPTI_THROUGH(cuptiEnableAllDomains, enable, subscriber);
}
