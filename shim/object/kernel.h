/*
 * Kernels: from a CUfunction (or a CUkernel passed as one) to the number of its name.
 *
 * The name is asked from the driver (cuFuncGetName, from CUDA 12.3 on) at a kernel's first launch, or learnt from cuModuleGetFunction and cuLibraryGetKernel, and then
 * found without a lock. When a module or library is unloaded the driver may reuse its handles, so all of them are asked once more.
 */
#ifndef CS_OBJECT_KERNEL_H
#define CS_OBJECT_KERNEL_H

#include "shim/calls/cuda_api.h"
#include "shim/object/map.h"
#include "shim/object/names.h"

CS_HIDDEN extern struct cs_map cs_kernel_handles;
CS_HIDDEN extern _Atomic cs_u32 cs_kernel_epoch; /* moves at every unload; from 1, so that what was never stored is of none */
enum { CS_KERNELS_LOG2 = 17 };

bool cs_kernels_init(void);
cs_name cs_kernel_find(CUfunction function, bool accepted); /* the slow half of cs_kernel_of */
void cs_kernel_named(CUfunction function, const char *name);
void cs_kernels_unloaded(void);

/* The kernel's name (mangled, as the driver has it), 0 if it is not known. `accepted`: the driver took the launch, so the handle is good and may be
 * asked about. */
CS_HOT cs_name cs_kernel_of(CUfunction function, bool accepted)
{
    const cs_u64 value = cs_map_glance(&cs_kernel_handles, CS_KERNELS_LOG2, (uintptr_t)function);
    return CS_LIKELY(value >> 32 == cs_load(&cs_kernel_epoch)) ? (cs_name)value : cs_kernel_find(function, accepted);
}

#endif
