/*
 * Look-ups of driver symbols by name, through dlsym, dlvsym and cuGetProcAddress, answered with our wrappers.
 *
 * Always the real look-up first, on the caller's own terms; its answer is replaced only if it is a pointer that we know to be the driver's entry point
 * of a call in the table. NULL answers, versions, flags and symbol status stay what they are. NVIDIA's own libraries (CUPTI, NVML, the driver) get the
 * real pointers: their calls are not the application's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/auxv.h>

#include "shim/base/module.h"
#include "shim/base/realdl.h"
#include "shim/calls/real.h"
#include "shim/gpu/share.h"
#include "shim/object/creator.h"
#include "shim/wrap/inside.h"
#include "shim/wrap/wrappers.h"

/* Symbol, wrapper, and where the real pointer will stand. The two look-up functions of the driver are wrapped like calls. */
static const struct known {
    const char *name;
    void *wrapper;
    size_t offset;
} known[] = {
#define KNOWN(symbol, ...)       {#symbol, (void *)cs_wrap_##symbol, offsetof(struct cs_real, symbol)},
#define CALL(name, sibling, ...) CS_SIBLINGS_##sibling(KNOWN, name, )
#include "shim/calls/calls.def"
#undef CALL
    KNOWN(cuGetProcAddress) KNOWN(cuGetProcAddress_v2)
#undef KNOWN
};

/* Name -> index in `known` + 1, by hash; filled at first use, since names are asked before any driver is there. */
enum { BUCKETS = 2048 };
_Static_assert(CS_COUNT(known) < BUCKETS / 2, "the tables of names and pointers stay at most half full");
static _Atomic cs_u16 by_name[BUCKETS];
static _Atomic bool by_name_ready;

/* Real pointer -> wrapper. Written by cs_lookup_init, while the mode is COLD. Who looks up another library's function meanwhile finds none of these. */
static struct {
    void *real, *wrapper;
} swaps[BUCKETS];

static cs_u32 name_hash(const char *name)
{
    cs_u32 h = 0;
    while (*name) h = h * 31 + (unsigned char)*name++;
    return (h ^ h >> 15) % BUCKETS;
}

static const struct known *known_name(const char *name)
{
    if (!cs_load_acq(&by_name_ready)) { /* two threads may fill it at once: each slot gets one of equal or equally good answers */
        for (size_t i = 0; i < CS_COUNT(known); i++) {
            cs_u32 b = name_hash(known[i].name);
            cs_u16 empty = 0;
            while (!atomic_compare_exchange_strong(&by_name[b], &empty, (cs_u16)(i + 1)) && empty != i + 1) b = (b + 1) % BUCKETS, empty = 0;
        }
        cs_store_rel(&by_name_ready, true);
    }
    for (cs_u32 b = name_hash(name); cs_load(&by_name[b]); b = (b + 1) % BUCKETS) {
        const struct known *k = &known[cs_load(&by_name[b]) - 1];
        if (!strcmp(k->name, name)) return k;
    }
    return NULL;
}

static cs_u32 pointer_bucket(const void *p) { return (cs_u32)((uintptr_t)p * 0x9e3779b97f4a7c15u >> 53) % BUCKETS; }

void cs_lookup_init(void)
{
    for (size_t b = 0; b < BUCKETS; b++)
        if (swaps[b].real) swaps[b].real = NULL;
    if (!cs_real_is_there()) return;
    for (size_t i = 0; i < CS_COUNT(known); i++) {
        void *real = *(void **)((char *)&cs_real + known[i].offset);
        if (real == (void *)cs_real_missing) continue;
        cs_u32 b = pointer_bucket(real);
        while (swaps[b].real && swaps[b].real != real) b = (b + 1) % BUCKETS;
        if (!swaps[b].real) swaps[b].wrapper = known[i].wrapper;
        swaps[b].real = real;
    }
}

static void *swap_of(const void *real)
{
    for (cs_u32 b = pointer_bucket(real); swaps[b].real; b = (b + 1) % BUCKETS)
        if (swaps[b].real == real) return swaps[b].wrapper;
    return NULL;
}

/* Libraries of NVIDIA's whose driver calls are not the application's. */
static bool is_tool(const void *caller)
{
    static const char *const tools[] = {"libcuda.so",      "libcupti.so", "libnvidia-",       "libnvperf_",
                                        "libcudadebugger", "libcheckpoint.so", "libpcsampling", "libToolsInjection"};
    struct cs_module module;
    if (!cs_module_of(caller, &module)) return false;
    const char *file = cs_module_file(&module);
    for (size_t i = 0; i < CS_COUNT(tools); i++)
        if (!strncmp(file, tools[i], strlen(tools[i]))) return true;
    return false;
}

void *cs_lookup_swap(void *real, const void *caller)
{
    if (!real || (cs_load_acq(&cs_mode) == CS_MODE_COLD && !cs_activate())) return real;
    void *wrapper = swap_of(real);
    return wrapper && !is_tool(caller) ? wrapper : real;
}

/* For dlsym and dlvsym, which have just had the loader's lock: who could not wait for it once more could not have done so then. */
static void *swap_in_loader(void *real, const void *caller)
{
    void *ours = cs_lookup_swap(real, caller);
    if (ours != real && cs_load(&cs_mode) & CS_MODE_WATCH) cs_creator_in_loader();
    return ours;
}

/* A driver that only the caller's own dependencies brought in: it is in nobody's global scope, and RTLD_DEFAULT from the caller finds it all the same. */
static void *among_dependencies(const char *name, const void *caller)
{
    struct cs_module module;
    void *handle = cs_module_of(caller, &module) ? dlopen(cs_module_path(&module), RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = handle ? cs_real_dlsym(handle, name) : NULL;
    if (handle) dlclose(handle);
    return found;
}

/* RTLD_DEFAULT and RTLD_NEXT mean what they mean to the caller, and only the real function, called from there, can tell. It is left to it, unless the
 * answer is certain and a driver's entry point. It never finds our own exports: their symbol version is hidden (wrap/wrappers.h). */
static struct cs_routed route_pseudo(void *handle, const char *name, const void *caller)
{
    static const struct cs_routed undecided = {NULL, 0};
    struct cs_module module;
    if (handle == RTLD_NEXT && cs_module_of(caller, &module) && cs_image_sees_behind(module.dynamic, name)) {
        void *next = cs_real_dlsym(RTLD_NEXT, name), *ours_ = swap_in_loader(next, caller);
        return ours_ != next ? (struct cs_routed){ours_, 1} : undecided;
    }
    void *first = cs_real_dlsym(RTLD_DEFAULT, name);
    if (handle == RTLD_NEXT && (!first || !cs_module_is_same(caller, (const void *)getauxval(AT_ENTRY)) || first != cs_real_dlsym(RTLD_NEXT, name))) return undecided;
    if (!first) first = among_dependencies(name, caller);
    void *ours = swap_in_loader(first, caller);
    return ours != first ? (struct cs_routed){ours, 1} : undecided;
}

/* CUPTI's functions. Ours are exported without a version, so the caller's own look-up in the global scope would find them even where there is no CUPTI. */
static struct cs_routed route_cupti(void *handle, const char *name, const char *version, const void *caller)
{
    if (is_tool(caller)) return (struct cs_routed){NULL, 0};
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) {
        void *real = cs_share_real(name);
        return (struct cs_routed){cs_cupti_swap(name, real), real || cs_module_is_same(cs_real_dlsym(RTLD_DEFAULT, name), (void *)cs_route)};
    }
    void *found = version ? cs_real_dlvsym(handle, name, version) : cs_real_dlsym(handle, name);
    return (struct cs_routed){cs_cupti_swap(name, found), 1};
}

/* A function of the runtime under its version, which ours have too: instead of ours, what stands behind it. Others find their way by themselves. */
static struct cs_routed route_runtime(void *handle, const char *name, const char *version, const void *caller)
{
    static const struct cs_routed undecided = {NULL, 0};
    const bool pseudo = handle == RTLD_DEFAULT || handle == RTLD_NEXT;
    if (handle == RTLD_NEXT && !cs_module_is_same(caller, (const void *)getauxval(AT_ENTRY))) return undecided;
    void *found = cs_real_dlvsym(pseudo ? RTLD_DEFAULT : handle, name, version);
    if (!found || !cs_module_is_same(found, (void *)cs_route)) return undecided;
    found = cs_real_dlvsym(RTLD_NEXT, name, version);
    if (!found && pseudo && !(found = among_dependencies(name, caller))) found = cs_real_dlvsym(RTLD_NEXT, name, version); /* once more: for dlerror() */
    return (struct cs_routed){found, 1};
}

struct cs_routed cs_route(void *handle, const char *name, const char *version, const void *caller)
{
    if (!cs_realdl_init()) return (struct cs_routed){NULL, 1};
    if (name && version && (!strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6))) return route_runtime(handle, name, version, caller);
    if (!name || name[0] != 'c' || name[1] != 'u') return (struct cs_routed){NULL, 0};
    if (!strncmp(name, "cupti", 5)) return route_cupti(handle, name, version, caller);
    if (!known_name(name)) return (struct cs_routed){NULL, 0};
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) return version ? (struct cs_routed){NULL, 0} : route_pseudo(handle, name, caller);
    void *found = version ? cs_real_dlvsym(handle, name, version) : cs_real_dlsym(handle, name);
    return (struct cs_routed){swap_in_loader(found, caller), 1};
}
