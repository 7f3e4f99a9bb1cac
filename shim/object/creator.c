#define _GNU_SOURCE
#include "shim/object/creator.h"

#include <dlfcn.h>
#include <string.h>
#include <unwind.h>

#include "shim/base/realdl.h"
#include "shim/object/map.h"

/* Return address -> name, with a mark for code of the CUDA runtime, which is not the creator but its tool. Addresses repeat: after the first
 * creation from a place its library costs one look-up. */
#define IS_RUNTIME ((cs_u64)1 << 33)
static struct cs_map known;
static const void *own_base;

bool cs_creator_init(void)
{
    cs_module_of((const void *)&cs_creator_init, NULL, &own_base);
    return cs_map_init(&known, 13);
}

static cs_u64 ask(const void *address)
{
    const char *file;
    const void *base;
    if (!cs_module_of(address, &file, &base)) return 0;
    const char *slash = strrchr(file, '/');
    file = slash ? slash + 1 : file;
    cs_u64 mark = !strncmp(file, "libcudart.so", 12) || base == own_base ? IS_RUNTIME : 0;
    return cs_name_add(file) | mark;
}

static cs_u64 library_of(const void *address)
{
    struct cs_map_slot *slot = cs_map_slot(&known, (uintptr_t)address, true);
    cs_u64 value = slot ? cs_load_acq(&slot->value) : 0;
    if (!value) {
        value = ask(address);
        if (slot) cs_store_rel(&slot->value, value);
    }
    return value;
}

static _Unwind_Reason_Code (*unwind)(_Unwind_Trace_Fn, void *);
static __typeof__(&_Unwind_GetIP) frame_ip;

static bool unwinder_ready(void)
{
    static _Atomic int state; /* 0 not looked for, 1 there, 2 missing */
    if (!cs_load_acq(&state)) {
        struct cs_image lib;
        bool there = cs_image_find("libgcc_s.so.1", &lib);
        if (!there && dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_LOCAL)) there = cs_image_find("libgcc_s.so.1", &lib);
        if (there) frame_ip = (__typeof__(frame_ip))cs_image_symbol(&lib, "_Unwind_GetIP");
        if (there) unwind = (__typeof__(unwind))cs_image_symbol(&lib, "_Unwind_Backtrace");
        cs_store_rel(&state, unwind && frame_ip ? 1 : 2);
    }
    return cs_load_acq(&state) == 1;
}

static _Unwind_Reason_Code visit(struct _Unwind_Context *frame, void *found)
{
    cs_u64 library = library_of((const void *)frame_ip(frame));
    if (library & IS_RUNTIME) return _URC_NO_REASON;
    *(cs_u64 *)found = library;
    return _URC_END_OF_STACK;
}

cs_name cs_creator_of(const void *return_address)
{
    cs_u64 library = library_of(return_address);
    if (library & IS_RUNTIME && unwinder_ready()) {
        cs_u64 found = 0;
        unwind(visit, &found);
        if (found) library = found;
    }
    return (cs_name)library;
}
