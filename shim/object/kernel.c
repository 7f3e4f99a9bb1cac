#include "shim/object/kernel.h"

#include "shim/base/keep.h"
#include "shim/calls/real.h"

CS_READ_MOSTLY struct cs_map cs_kernel_handles;
CS_READ_MOSTLY _Atomic cs_u32 cs_kernel_epoch;

bool cs_kernels_init(void) { return cs_map_init(&cs_kernel_handles, 17); }

void cs_kernel_named(CUfunction function, const char *name)
{
    CS_KEEP_ERRNO;
    cs_u32 epoch = cs_load_acq(&cs_kernel_epoch);
    struct cs_map_slot *slot = cs_map_slot(&cs_kernel_handles, (uintptr_t)function, true);
    if (slot) cs_store_rel(&slot->value, (cs_u64)epoch << 32 | cs_name_add(name));
}

cs_name cs_kernel_ask(CUfunction function)
{
    CS_KEEP_ERRNO;
    const char *name = NULL;
#if CUDA_VERSION >= 12030
    if (!cs_real.cuFuncGetName || cs_real.cuFuncGetName(&name, function) != CUDA_SUCCESS) name = NULL;
    if (!name && cs_real.cuKernelGetName && cs_real.cuKernelGetName(&name, (CUkernel)function) != CUDA_SUCCESS) name = NULL;
#endif
    if (!name) return 0;
    cs_kernel_named(function, name);
    return (cs_name)cs_map_get(&cs_kernel_handles, (uintptr_t)function);
}

void cs_kernels_unloaded(void) { cs_add(&cs_kernel_epoch, 1); }
