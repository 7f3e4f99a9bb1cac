#define _GNU_SOURCE
#include "shim/object/creator.h"

#include <execinfo.h>
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

static __typeof__(&_Unwind_Backtrace) unwind;
static __typeof__(&_Unwind_GetIP) frame_address;

/* libgcc's unwinder, which stops at the frame that we want; backtrace() always goes to the stack's end, tens of frames in Python. It has the C
 * library load libgcc, though, and unlike dlopen() leaves the caller's dlerror() alone. */
static bool unwinder_ready(void)
{
    static _Atomic int state; /* 0 not looked for, 1 there, 2 missing */
    if (!cs_load_acq(&state)) {
        struct cs_image libgcc;
        void *frame;
        backtrace(&frame, 1);
        if (cs_image_find("libgcc_s.so.1", &libgcc)) {
            frame_address = (__typeof__(frame_address))cs_image_symbol(&libgcc, "_Unwind_GetIP");
            unwind = (__typeof__(unwind))cs_image_symbol(&libgcc, "_Unwind_Backtrace");
        }
        cs_store_rel(&state, unwind && frame_address ? 1 : 2);
    }
    return cs_load_acq(&state) == 1;
}

static _Unwind_Reason_Code visit(struct _Unwind_Context *frame, void *found)
{
    cs_u64 library = library_of((const void *)frame_address(frame));
    if (!library || library & IS_RUNTIME) return _URC_NO_REASON;
    *(cs_u64 *)found = library;
    return _URC_END_OF_STACK;
}

/* The library of the first frame that is neither ours nor the runtime's; 0 if there is none. */
static cs_u64 library_behind_runtime(void)
{
    cs_u64 found = 0;
    if (unwinder_ready()) unwind(visit, &found);
    return found;
}

cs_name cs_creator_of(const void *return_address)
{
    cs_u64 library = library_of(return_address);
    if (library & IS_RUNTIME) {
        cs_u64 found = library_behind_runtime();
        if (found) library = found;
    }
    return (cs_name)library;
}
