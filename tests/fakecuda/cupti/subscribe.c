/*
 * The one subscriber, and its callbacks around the calls of the driver and the runtime. Of the
 * other domains nothing is ever reported.
 *
 * functionParams is NULL: the simulated driver does not keep a call's parameters.
 */
#include "tests/fakecuda/cupti/fake_cupti.h"

struct CUpti_Subscriber_st {
    CUpti_CallbackFunc function;
    void *data;
    char name[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN];
};
static struct CUpti_Subscriber_st *subscriber; /* guarded by cupti_state, as is the next */
static uint32_t domains;                       /* switched on as a whole, one bit each */
uint8_t cupti_called_back[DRIVER_CALLS], cupti_runtime_called_back[RUNTIME_CALLS];
unsigned cupti_called_back_count, cupti_runtime_called_back_count;

void cupti_call_back(struct fake_trace_call *call, CUresult *result)
{
    struct CUpti_Subscriber_st *to = __atomic_load_n(&subscriber, __ATOMIC_ACQUIRE);
    uint32_t context = 0, device;
    CUpti_CallbackData data = {.callbackSite = result ? CUPTI_API_EXIT : CUPTI_API_ENTER,
        .functionName = call->name,
        .functionReturnValue = result,
        .correlationData = &call->data,
        .correlationId = call->correlation};

    if (!to) return;
    data.context = cupti_driver()->current();
    if (data.context) cupti_driver()->context_id(data.context, &context, &device);
    data.contextUid = context;
    cupti_inside = true;
    to->function(to->data, call->runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API,
        call->cbid, &data);
    cupti_inside = false;
}

/* The calls of a domain whose callbacks there are; NULL for the others. */
static uint8_t *calls_of(CUpti_CallbackDomain domain, uint32_t *count)
{
    *count =
        domain == CUPTI_CB_DOMAIN_DRIVER_API ? (uint32_t)DRIVER_CALLS : (uint32_t)RUNTIME_CALLS;
    return domain == CUPTI_CB_DOMAIN_DRIVER_API    ? cupti_called_back
           : domain == CUPTI_CB_DOMAIN_RUNTIME_API ? cupti_runtime_called_back
                                                   : NULL;
}

static void set_call(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, bool on)
{
    uint32_t count;
    uint8_t *call = calls_of(domain, &count) + cbid;
    if (*call == on) return;
    __atomic_store_n(call, on, __ATOMIC_RELAXED);
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API)
        __atomic_store_n(&cupti_runtime_numbered[cbid], 1, __ATOMIC_RELAXED);
    *(domain == CUPTI_CB_DOMAIN_DRIVER_API ? &cupti_called_back_count
                                           : &cupti_runtime_called_back_count) += on ? 1 : -1u;
}

static void set_domain(CUpti_CallbackDomain domain, bool on)
{
    uint32_t count;
    domains = on ? domains | 1u << domain : domains & ~(1u << domain);
    if (!calls_of(domain, &count)) return;
    for (uint32_t cbid = 1; cbid < count; cbid++) set_call(domain, cbid, on);
}

/* With the state's lock held. The structure stays, since a call back may be under way. */
void cupti_subscriber_forget(void)
{
    for (int domain = 1; domain < CUPTI_CB_DOMAIN_SIZE; domain++)
        set_domain((CUpti_CallbackDomain)domain, false);
    __atomic_store_n(&subscriber, NULL, __ATOMIC_RELEASE);
}

static CUptiResult subscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc function, void *data,
    CUpti_SubscriberParams *params)
{
    struct CUpti_Subscriber_st *made;

    if (!out || (params && !params->structSize)) return CUPTI_ERROR_INVALID_PARAMETER;
    if (!cupti_driver()) return CUPTI_ERROR_NOT_INITIALIZED;
    LOCKED(cupti_state);
    if (subscriber) {
        if (params && params->oldSubscriberName && params->oldSubscriberSize) {
            strncpy(params->oldSubscriberName, subscriber->name, params->oldSubscriberSize - 1);
            params->oldSubscriberName[params->oldSubscriberSize - 1] = 0;
        }
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    made = calloc(1, sizeof *made);
    if (!made) return CUPTI_ERROR_OUT_OF_MEMORY;
    made->function = function;
    made->data = data;
    strcpy(made->name, params && params->subscriberName ? "CUPTI for " : "CUPTI");
    if (params && params->subscriberName)
        strncat(made->name, params->subscriberName, CUPTI_SUBSCRIBER_NAME_MAX_LEN);
    __atomic_store_n(&subscriber, made, __ATOMIC_RELEASE);
    *out = made;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSubscribe(
    CUpti_SubscriberHandle *out, CUpti_CallbackFunc function, void *data)
{
    ENTER(cuptiSubscribe);
    return subscribe(out, function, data, NULL);
}
CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle *out, CUpti_CallbackFunc function,
    void *data, CUpti_SubscriberParams *params)
{
    ENTER(cuptiSubscribe_v2);
    return subscribe(out, function, data, params);
}

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
    ENTER(cuptiUnsubscribe);
    LOCKED(cupti_state);
    if (!handle || handle != subscriber) return CUPTI_ERROR_INVALID_PARAMETER;
    cupti_subscriber_forget();
    cupti_attach();
    return CUPTI_SUCCESS;
}

static bool valid(CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain)
{
    return handle && handle == subscriber && domain > CUPTI_CB_DOMAIN_INVALID &&
           domain < CUPTI_CB_DOMAIN_SIZE;
}

CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle,
    CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
    uint32_t count;

    ENTER(cuptiEnableCallback);
    LOCKED(cupti_state);
    if (!valid(handle, domain)) return CUPTI_ERROR_INVALID_PARAMETER;
    if (!calls_of(domain, &count)) return CUPTI_SUCCESS;
    if (!cbid || cbid >= count) return CUPTI_ERROR_INVALID_PARAMETER;
    set_call(domain, cbid, enable != 0);
    cupti_attach();
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableDomain(
    uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain)
{
    ENTER(cuptiEnableDomain);
    LOCKED(cupti_state);
    if (!valid(handle, domain)) return CUPTI_ERROR_INVALID_PARAMETER;
    set_domain(domain, enable != 0);
    cupti_attach();
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle handle)
{
    ENTER(cuptiEnableAllDomains);
    LOCKED(cupti_state);
    if (!valid(handle, CUPTI_CB_DOMAIN_DRIVER_API)) return CUPTI_ERROR_INVALID_PARAMETER;
    for (int domain = 1; domain < CUPTI_CB_DOMAIN_SIZE; domain++)
        set_domain((CUpti_CallbackDomain)domain, enable != 0);
    cupti_attach();
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle handle,
    CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
    uint32_t count;
    uint8_t *calls;

    ENTER(cuptiGetCallbackState);
    LOCKED(cupti_state);
    if (!enable || !valid(handle, domain)) return CUPTI_ERROR_INVALID_PARAMETER;
    calls = calls_of(domain, &count);
    if (calls && cbid >= count) return CUPTI_ERROR_INVALID_PARAMETER;
    *enable = calls ? calls[cbid] : domains >> domain & 1;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSupportedDomains(size_t *count, CUpti_DomainTable *table)
{
    static CUpti_CallbackDomain supported[] = {CUPTI_CB_DOMAIN_DRIVER_API,
        CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_SYNCHRONIZE,
        CUPTI_CB_DOMAIN_NVTX, CUPTI_CB_DOMAIN_STATE};
    ENTER(cuptiSupportedDomains);
    if (!count || !table) return CUPTI_ERROR_INVALID_PARAMETER;
    *count = COUNT_OF(supported);
    *table = supported;
    return CUPTI_SUCCESS;
}
