/*
 * cuGetProcAddress in both of its forms: asked of the driver first, and its answer swapped by pointer identity, so that version, flags and symbol
 * status stay the driver's business. The answer for "cuGetProcAddress" itself is swapped like any other.
 */
#include "shim/calls/real.h"
#include "shim/wrap/inside.h"
#include "shim/wrap/wrappers.h"

static CUresult swapped(CUresult result, void **found, const void *caller)
{
    if (result == CUDA_SUCCESS && found) *found = cs_lookup_swap(*found, caller);
    return result;
}

#define REAL(name) ((__typeof__(&name))cs_real_or_elsewhere((void *)cs_real.name, #name, __builtin_return_address(0)))

CUresult cs_wrap_cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
    if (cs_load_acq(&cs_mode) == CS_MODE_COLD) cs_activate();
    return swapped(REAL(cuGetProcAddress)(symbol, pfn, version, flags), pfn, __builtin_return_address(0));
}

CUresult cs_wrap_cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    if (cs_load_acq(&cs_mode) == CS_MODE_COLD) cs_activate();
    return swapped(REAL(cuGetProcAddress_v2)(symbol, pfn, version, flags, status), pfn, __builtin_return_address(0));
}

CS_EXPORTED(cuGetProcAddress)
CS_EXPORTED(cuGetProcAddress_v2)
