#define _GNU_SOURCE
#include "shim/hook/runtime_copy.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/realdl.h"
#include "shim/object/map.h"

/* Versions that the symbols of cudart have. */
#define VERSION_PREFIX "libcudart.so."

#if defined(__x86_64__)
enum { RELOC_ADDRESS = R_X86_64_64, RELOC_DATA = R_X86_64_GLOB_DAT, RELOC_CALL = R_X86_64_JUMP_SLOT };
#elif defined(__aarch64__)
enum { RELOC_ADDRESS = R_AARCH64_ABS64, RELOC_DATA = R_AARCH64_GLOB_DAT, RELOC_CALL = R_AARCH64_JUMP_SLOT };
#endif

/* --- modules --- */

/* glibc's struct dl_find_object, from 2.35 on: looked up at run time, since the library also runs with 2.34. */
struct found_object {
    unsigned long long flags;
    void *begin, *end;
    struct link_map *map;
    void *rest[12];
};
typedef int find_object_fn(void *address, struct found_object *found);

/* The module that holds an address. _dl_find_object takes no lock; dladdr takes the loader's, which another thread may hold while it waits for us. */
static const struct link_map *module_of(const void *address)
{
    static find_object_fn *_Atomic find;
    static _Atomic bool looked;
    if (!cs_load_acq(&looked)) {
        struct cs_image loader;
        if (cs_image_find("ld-linux-x86-64.so.2", &loader) || cs_image_find("ld-linux-aarch64.so.1", &loader))
            cs_store(&find, (find_object_fn *)cs_image_symbol(&loader, "_dl_find_object"));
        cs_store_rel(&looked, true);
    }
    struct found_object object;
    struct link_map *map = NULL;
    Dl_info info;
    if (!address) return NULL;
    if (cs_load(&find)) return cs_load(&find)((void *)address, &object) == 0 ? object.map : NULL;
    return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

static bool is_own(const struct link_map *map) { return map->l_ld == _DYNAMIC; }

/* --- what a module imports of cudart --- */

enum { VERSIONS_MAX = 8 };
struct imports {
    const struct link_map *map;
    struct cs_image image;
    const char *file;                /* that has the versions: a DT_NEEDED of the module */
    ElfW(Half) version[VERSIONS_MAX]; /* their numbers in the module's table of versions */
    int versions;
    const ElfW(Rela) *calls, *data;
    size_t call_count, data_count;
};

static const void *at(const struct link_map *map, ElfW(Addr) address)
{
    return (const void *)(address < map->l_addr ? address + map->l_addr : address);
}

static void read_versions(struct imports *imports, const ElfW(Verneed) *need, size_t count)
{
    for (; need && count; count--, need = (const void *)((const char *)need + need->vn_next)) {
        const ElfW(Vernaux) *aux = (const void *)((const char *)need + need->vn_aux);
        for (int i = 0; i < need->vn_cnt; i++, aux = (const void *)((const char *)aux + aux->vna_next)) {
            if (strncmp(imports->image.strings + aux->vna_name, VERSION_PREFIX, strlen(VERSION_PREFIX)) || imports->versions == VERSIONS_MAX) continue;
            imports->version[imports->versions++] = aux->vna_other & 0x7fff;
            if (!imports->file) imports->file = imports->image.strings + need->vn_file;
        }
        if (!need->vn_next) break;
    }
}

/* False if it imports nothing under a version of cudart's. */
static bool imports_read(const struct link_map *map, struct imports *imports)
{
    *imports = (struct imports){.map = map};
    const ElfW(Verneed) *need = NULL;
    size_t needs = 0, relative = 0, entry = sizeof(ElfW(Rela));
    bool rela = true;
    if (!map || is_own(map) || !cs_image_read(map->l_addr, map->l_ld, map->l_name, &imports->image)) return false;
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) switch (d->d_tag) {
        case DT_VERNEED: need = at(map, d->d_un.d_ptr); break;
        case DT_VERNEEDNUM: needs = d->d_un.d_val; break;
        case DT_JMPREL: imports->calls = at(map, d->d_un.d_ptr); break;
        case DT_PLTRELSZ: imports->call_count = d->d_un.d_val / entry; break;
        case DT_PLTREL: rela = d->d_un.d_val == DT_RELA; break;
        case DT_RELA: imports->data = at(map, d->d_un.d_ptr); break;
        case DT_RELASZ: imports->data_count = d->d_un.d_val / entry; break;
        case DT_RELACOUNT: relative = d->d_un.d_val; break; /* those without a symbol stand first */
        }
    if (!rela || !imports->calls) imports->call_count = 0;
    if (!imports->data || imports->data_count < relative) imports->data_count = 0;
    else imports->data += relative, imports->data_count -= relative;
    if (imports->image.versions) read_versions(imports, need, needs);
    return imports->versions;
}

static bool is_import(const struct imports *imports, size_t symbol)
{
    const ElfW(Half) version = ((const ElfW(Half) *)imports->image.versions)[symbol] & 0x7fff;
    for (int i = 0; i < imports->versions; i++)
        if (imports->version[i] == version) return true;
    return false;
}

/* The library that one of the relocations is bound to, as its own table of symbols confirms: neither a lazy call's way into the loader nor one of ours. */
static bool bound_copy(const struct imports *imports, const ElfW(Rela) *rela, size_t count, struct cs_image *copy)
{
    for (size_t i = 0; i < count; i++) {
        const unsigned type = (unsigned)ELF64_R_TYPE(rela[i].r_info);
        const size_t symbol = ELF64_R_SYM(rela[i].r_info);
        if (!symbol || (type != RELOC_CALL && type != RELOC_DATA && type != RELOC_ADDRESS) || !is_import(imports, symbol)) continue;
        const char *name = imports->image.strings + ((const ElfW(Sym) *)imports->image.symbols)[symbol].st_name;
        const void *bound = (const void *)*(const uintptr_t *)(imports->map->l_addr + rela[i].r_offset);
        const struct link_map *map = module_of(bound);
        if (!map || map == imports->map || is_own(map) || !cs_image_read(map->l_addr, map->l_ld, map->l_name, copy)) continue;
        if (cs_image_symbol(copy, name) == bound) return true;
    }
    return false;
}

/* --- which copy --- */

static bool copy_of(const void *address, struct cs_image *copy)
{
    struct imports imports;
    if (!imports_read(module_of(address), &imports)) return false;
    return bound_copy(&imports, imports.calls, imports.call_count, copy) || bound_copy(&imports, imports.data, imports.data_count, copy) ||
           cs_image_find(imports.file, copy);
}

struct wanted {
    const char *name;
    void *found;
};

static bool wants_any_cudart(const struct cs_image *image, void *data)
{
    struct wanted *wanted = data;
    if (strncmp(image->soname, "libcudart", strlen("libcudart"))) return false;
    wanted->found = cs_image_symbol(image, wanted->name);
    return wanted->found;
}

static cudaError_t no_copy(void)
{
    cs_log_once(CS_LOG_WARN, "a function of the CUDA runtime was called that no loaded cudart has; it got cudaErrorNotSupported");
    return cudaErrorNotSupported;
}

static CS_COLD void *look(enum cs_runtime_call call, const void *of, const void *caller)
{
    CS_KEEP_ERRNO;
    struct wanted wanted = {.name = cs_runtime_name(call)};
    struct cs_image copy;
    if (copy_of(of, &copy) || (of != caller && copy_of(caller, &copy))) wanted.found = cs_image_symbol(&copy, wanted.name);
    if (!wanted.found) cs_image_each(wants_any_cudart, &wanted);
    return wanted.found ?: (void *)no_copy;
}

/* --- answers that are known --- */

/* Address and function -> the real one, and in the high 16 bits how many times a library had been closed by then: what was there may be gone. User
 * addresses have 47 bits (48 on aarch64, where the program has not asked for more). */
#define ADDRESS_BITS 48
_Static_assert(CS_RUNTIME_END < 1 << (64 - ADDRESS_BITS), "a call and an address are one key");
static struct cs_map known;
static _Atomic int known_state; /* 0: not there yet, 1: being made, 2: there, 3: never will be */
static _Atomic cs_u16 closed;

static bool known_ready(void)
{
    int state = cs_load_acq(&known_state);
    if (CS_LIKELY(state == 2)) return true;
    CS_KEEP_ERRNO;
    if (state || !atomic_compare_exchange_strong(&known_state, &state, 1)) return false;
    cs_store_rel(&known_state, cs_map_init(&known, 14) ? 2 : 3);
    return cs_load(&known_state) == 2;
}

void *cs_runtime_function(enum cs_runtime_call call, const void *of, const void *caller)
{
    const cs_u64 mask = ((cs_u64)1 << ADDRESS_BITS) - 1, key = ((uintptr_t)of & mask) | (cs_u64)call << ADDRESS_BITS;
    const cs_u64 now = (cs_u64)cs_load(&closed) << ADDRESS_BITS;
    const bool ready = known_ready();
    cs_u64 value = ready ? cs_map_get(&known, key) : 0;
    if (CS_LIKELY(value && (value & ~mask) == now)) return (void *)(value & mask);
    void *found = look(call, of, caller);
    struct cs_map_slot *slot = ready && found != (void *)no_copy && !((uintptr_t)found & ~mask) ? cs_map_slot(&known, key, true) : NULL;
    if (slot) cs_store_rel(&slot->value, (uintptr_t)found | now);
    return found;
}

/* The next one does it. Counted on both sides: what is found between is of libraries that go, or that come to their place. */
CS_EXPORT int dlclose(void *handle)
{
    static __typeof__(&dlclose) _Atomic next;
    if (!cs_load(&next)) cs_store(&next, (__typeof__(&dlclose))cs_symbol_behind("dlclose"));
    if (!cs_load(&next)) return -1;
    cs_add(&closed, 1);
    int result = cs_load(&next)(handle);
    cs_add(&closed, 1);
    return result;
}
