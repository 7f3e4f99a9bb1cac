/*
 * Look-ups of driver symbols by name, through dlsym, dlvsym and cuGetProcAddress, answered with our wrappers.
 *
 * Always the real look-up first, on the caller's own terms; its answer is replaced only if it is a pointer that we know to be the driver's entry point
 * of a call in the table. NULL answers, versions, flags and symbol status stay what they are. NVIDIA's own libraries (CUPTI, NVML, the driver) get the
 * real pointers: their calls are not the application's.
 */
#ifndef CS_WRAP_LOOKUP_H
#define CS_WRAP_LOOKUP_H

#include "shim/base/compiler.h"

/* Fills the table from real pointer to wrapper; after cs_real_init. */
void cs_lookup_init(void);

/* The wrapper for a pointer of the driver, or the pointer itself. `caller` is the return address of the look-up. */
void *cs_lookup_swap(void *real, const void *caller);

/* What the assembly stubs call. decided 0: jump to the real function, with the caller's own return address. Both in registers. */
struct cs_routed {
    void *value;
    cs_u64 decided;
};
struct cs_routed cs_route(void *handle, const char *name, const char *version, const void *caller);

#endif
