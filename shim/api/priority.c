/* Priorities: least is 0 and greatest a negative number; a request becomes one of the range by one of three rules. */
#include "shim/api/priority.h"
#include "shim/base/saturate.h"

static _Atomic int bands[API_DEVICES]; /* the greatest of the band; 0: none */

static status device_range(int device, int *number, int *least, int *greatest)
{
    struct api_scope scope;
    *number = device;
    TRY(api_enter(number, &scope));
    status result = CUDA(cuCtxGetStreamPriorityRange, least, greatest);
    api_leave(&scope);
    return result;
}

CS_EXPORT status custream_priority_range(int device, int *least, int *greatest)
{
    int number, low, high;
    TRY(api_ready());
    TRY(device_range(device, &number, &low, &high));
    int band = cs_load(&bands[number]);
    if (least) *least = low;
    if (greatest) *greatest = band && band > high ? band : high;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_set_priority_band(int device, int least, int greatest)
{
    int number, low, high;
    TRY(api_ready());
    TRY(device_range(device, &number, &low, &high));
    CHECK(least == 0 && greatest <= 0 && greatest >= high, CUSTREAM_INVALID_VALUE);
    cs_store(&bands[number], greatest);
    return CUSTREAM_SUCCESS;
}

status api_clamp(int device, custream_priority_policy_t policy, int band_least, int band_greatest, int wanted, int *got)
{
    int least, greatest;
    TRY(custream_priority_range(device, &least, &greatest));
    switch (policy) {
    case CUSTREAM_PRIORITY_CLAMP: *got = cs_clamp(wanted, greatest, least); return CUSTREAM_SUCCESS;
    case CUSTREAM_PRIORITY_CLAMP_BAND:
        CHECK(band_least <= 0 && band_greatest <= band_least, CUSTREAM_INVALID_VALUE);
        *got = cs_clamp(cs_clamp(wanted, band_greatest, band_least), greatest, least);
        return CUSTREAM_SUCCESS;
    case CUSTREAM_PRIORITY_STRICT:
        CHECK(wanted <= least && wanted >= greatest, CUSTREAM_PRIORITY_OUT_OF_RANGE);
        *got = wanted;
        return CUSTREAM_SUCCESS;
    }
    return CUSTREAM_INVALID_VALUE;
}

CS_EXPORT status custream_clamp_priority(int device, custream_priority_policy_t policy, int wanted, int *got)
{
    NEED(got);
    TRY(api_ready());
    return api_clamp(device, policy, 0, -1, wanted, got);
}
