#define _GNU_SOURCE
#include "shim/object/creator.h"

#include <execinfo.h>
#include <string.h>
#include <unwind.h>

#include "shim/base/keep.h"
#include "shim/base/module.h"
#include "shim/base/place.h"
#include "shim/base/realdl.h"
#include "shim/object/map.h"

/* Return address -> name, with a mark for code of the CUDA runtime, which is not the creator but its tool. Addresses repeat: after the first
 * creation from a place its library costs one look-up. */
#define IS_RUNTIME ((cs_u64)1 << 33)
static struct cs_map known;

bool cs_creator_init(void) { return cs_map_init(&known, 15); }

static cs_u64 ask(const void *address)
{
    struct cs_module module;
    if (!cs_module_of(address, &module)) return 0;
    const char *file = cs_module_file(&module);
    cs_u64 mark = !strncmp(file, "libcudart.so", 12) || !strncmp(file, "libcustream.so", 14) || cs_module_is_own(&module) ? IS_RUNTIME : 0;
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

static __typeof__(&_Unwind_Backtrace) _Atomic unwind; /* atomic: two threads may find them at once, each the same */
static __typeof__(&_Unwind_GetIP) _Atomic frame_address;

/* libgcc's unwinder, which stops at the frame that we want; backtrace() always goes to the stack's end, tens of frames in Python. Looked for until
 * it is there: a creation does not load it, since that takes the loader's lock. Itself it takes none (gcc 12 with glibc 2.35; older ones take
 * dl_iterate_phdr's, which is not held while constructors run). */
static bool unwinder_ready(void)
{
    static _Atomic bool there;
    struct cs_image libgcc;
    if (CS_LIKELY(cs_load_acq(&there))) return true;
    if (!cs_image_find("libgcc_s.so.1", &libgcc)) return false;
    cs_store(&frame_address, (__typeof__(&_Unwind_GetIP))cs_image_symbol(&libgcc, "_Unwind_GetIP"));
    cs_store(&unwind, (__typeof__(&_Unwind_Backtrace))cs_image_symbol(&libgcc, "_Unwind_Backtrace"));
    const bool found = cs_load(&unwind) && cs_load(&frame_address);
    if (found) cs_store_rel(&there, true);
    return found;
}

/* backtrace() has the C library load libgcc, and unlike dlopen() leaves the caller's dlerror() alone. */
void cs_creator_in_loader(void)
{
    static _Atomic bool done;
    void *frame;
    if (CS_LIKELY(cs_load(&done)) || atomic_exchange(&done, true)) return;
    CS_KEEP_ERRNO;
    backtrace(&frame, 1);
}

static _Unwind_Reason_Code visit(struct _Unwind_Context *frame, void *found)
{
    cs_u64 library = library_of((const void *)cs_load(&frame_address)(frame));
    if (!library || library & IS_RUNTIME) return _URC_NO_REASON;
    *(cs_u64 *)found = library;
    return _URC_END_OF_STACK;
}

/* The library of the first frame that is neither ours nor the runtime's; 0 if there is none. */
static cs_u64 library_behind_runtime(void)
{
    cs_u64 found = 0;
    if (unwinder_ready()) cs_load(&unwind)(visit, &found);
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

/* --- places --- */

/* Further marks of an address, once somebody asks for its place: its function has been looked at; it is one of a runtime that is linked into the module,
 * or nvcc's; nvcc's stub of a kernel; it was compared with the stub that it called, and is the kernel's other half. */
#define LOOKED      ((cs_u64)1 << 34)
#define IS_STATIC   ((cs_u64)1 << 35)
#define IS_STUB     ((cs_u64)1 << 36)
#define COMPARED    ((cs_u64)1 << 37)
#define IS_LAUNCHER ((cs_u64)1 << 38)

static const char stub_head[] = "__device_stub_"; /* "_Z20__device_stub__Z1kPiPi": the kernel's own name follows, and what the stub takes */

static cs_u64 marks_by_name(const char *function)
{
    static const char *const heads[] = {"libcudart_static_", "__cuda", "_ZL25__cudaLaunchKernel_helper"};
    if (strstr(function, stub_head)) return LOOKED | IS_STATIC | IS_STUB;
    for (size_t i = 0; i < CS_COUNT(heads); i++)
        if (!strncmp(function, heads[i], strlen(heads[i]))) return LOOKED | IS_STATIC;
    return LOOKED | (!strncmp(function, "cuda", 4) && function[4] >= 'A' && function[4] <= 'Z' ? IS_STATIC : 0);
}

static cs_u64 mark(const void *address, cs_u64 value)
{
    struct cs_map_slot *slot = cs_map_slot(&known, (uintptr_t)address, true);
    if (slot && value) cs_store_rel(&slot->value, value);
    return value;
}

static cs_u64 marks_of(const void *address)
{
    cs_u64 value = library_of(address);
    return !value || value & (IS_RUNTIME | LOOKED) ? value : mark(address, value | marks_by_name(cs_place_function(address)));
}

/* Whether the function at `address`, which called the stub, is what nvcc makes of the kernel: a launch is written where that is called. */
static bool is_launcher(const void *address, const void *stub)
{
    cs_u64 value = library_of(address);
    if (!(value & COMPARED)) {
        const char *name = cs_place_function(address), *kernel = strstr(cs_place_function(stub), stub_head);
        bool same = *name && kernel && !strncmp(kernel + sizeof stub_head - 1, name, strlen(name));
        value = mark(address, value | COMPARED | (same ? IS_LAUNCHER : 0));
    }
    return value & IS_LAUNCHER;
}

struct walk {
    const void *found, *stub; /* stub: the frame before was in one */
};

static _Unwind_Reason_Code visit_place(struct _Unwind_Context *frame, void *state)
{
    struct walk *walk = state;
    const void *address = (const void *)cs_load(&frame_address)(frame), *stub = walk->stub;
    cs_u64 marks = marks_of(address);
    walk->stub = marks & IS_STUB ? address : NULL;
    if (!marks || marks & (IS_RUNTIME | IS_STATIC) || (stub && is_launcher(address, stub))) return _URC_NO_REASON;
    walk->found = address;
    return _URC_END_OF_STACK;
}

const void *cs_creator_place(const void *return_address)
{
    struct walk walk = {NULL, NULL};
    if (!(marks_of(return_address) & (IS_RUNTIME | IS_STATIC))) return return_address;
    if (unwinder_ready()) cs_load(&unwind)(visit_place, &walk);
    return walk.found ? walk.found : return_address;
}
