#define _GNU_SOURCE
#include "shim/object/creator.h"

#include <execinfo.h>
#include <string.h>

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

/* The library of the first frame that is neither ours nor the runtime's; 0 if there is none. backtrace() finds libgcc's unwinder by itself, and
 * unlike dlopen() it leaves the caller's dlerror() alone. */
static cs_u64 library_behind_runtime(void)
{
    enum { FRAMES = 48 };
    void *frames[FRAMES];
    int n = backtrace(frames, FRAMES);
    for (int i = 0; i < n; i++) {
        cs_u64 library = library_of(frames[i]);
        if (library && !(library & IS_RUNTIME)) return library;
    }
    return 0;
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
