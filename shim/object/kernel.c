#include "shim/object/kernel.h"

#include "shim/base/keep.h"
#include "shim/calls/real.h"

CS_READ_MOSTLY struct cs_map cs_kernel_handles;
CS_READ_MOSTLY _Atomic cs_u32 cs_kernel_epoch = 1;

bool cs_kernels_init(void) { return cs_map_init(&cs_kernel_handles, CS_KERNELS_LOG2); }

static cs_name keep(CUfunction function, cs_u32 epoch, cs_name name)
{
    struct cs_map_slot *slot = name ? cs_map_slot(&cs_kernel_handles, (uintptr_t)function, true) : NULL;
    if (slot) cs_store_rel(&slot->value, (cs_u64)epoch << 32 | name);
    return name;
}

void cs_kernel_named(CUfunction function, const char *name)
{
    cs_u32 epoch = cs_load_acq(&cs_kernel_epoch);
    keep(function, epoch, cs_name_add(name));
}

static bool can_ask(void)
{
    return cs_real.cuFuncGetName || cs_real.cuKernelGetName;
}

static cs_name ask(CUfunction function)
{
    CS_KEEP_ERRNO;
    const char *name = NULL;
    cs_u32 epoch = cs_load_acq(&cs_kernel_epoch);
    cs_name known = (cs_name)cs_map_get(&cs_kernel_handles, (uintptr_t)function); /* before an unload */
    if (!cs_real.cuFuncGetName || cs_real.cuFuncGetName(&name, function) != CUDA_SUCCESS) name = NULL;
    if (!name && cs_real.cuKernelGetName && cs_real.cuKernelGetName(&name, (CUkernel)function) != CUDA_SUCCESS) name = NULL;
    if (!name && (can_ask() || !known)) return 0;
    return keep(function, epoch, name ? cs_name_add(name) : known); /* a driver that can't be asked gives out no handle again without a call that tells its name */
}

cs_name cs_kernel_find(CUfunction function, bool accepted)
{
    const cs_u64 value = cs_map_get(&cs_kernel_handles, (uintptr_t)function);
    if (CS_LIKELY(value && value >> 32 == cs_load(&cs_kernel_epoch))) return (cs_name)value;
    return accepted ? ask(function) : 0;
}

void cs_kernels_unloaded(void) { cs_add(&cs_kernel_epoch, 1); }
