/*
 * Which copy of the CUDA runtime a call is for: the one that the loader would have bound it to, had we not been in front of it (docs/runtime-level.md).
 *
 * Any thread; also before constructors have run. Takes no lock that the loader holds while it runs constructors, leaves dlerror() and errno alone, and
 * loads nothing.
 *
 * Why nothing simpler serves. A wrong copy does not know the caller's kernels, and errors stand where nobody looks for them. Tests of each in test_runtime.py:
 *   - The loader asked by the caller's handle (dlsym), or by the name that the caller needs: it names the copy that the caller is linked to. Where one of that
 *     version is in the global scope the loader has bound the caller to that one. Only the caller's own relocations tell
 *     (test_the_loader_does_not_tell_which_copy_it_has_bound). And dlsym takes the loader's lock: another thread may hold it until this call has returned
 *     (test_the_loaders_lock_is_not_waited_for), so that no thread of ours could ask it either while this one waits.
 *   - The module that holds the return address, alone: that of a call which was the last thing a function did is its caller's, in another library, with
 *     another copy. Only the instruction in front of it tells (test_the_stack_does_not_tell_who_has_called).
 *   - The kernel's or the variable's address: most functions have none, and one that is not known to the caller's copy is an error of the program's, which it
 *     is to get (test_each_library_reaches_its_own_copy).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/memory.h"
#include "shim/base/module.h"
#include "shim/base/realdl.h"
#include "shim/object/map.h"
#include "shim/process/process.h"
#include "shim/wrap/runtime.h"

/* Versions that the symbols of cudart have. */
#define VERSION_PREFIX "libcudart.so."

#if defined(__x86_64__)
enum { RELOC_ADDRESS = R_X86_64_64, RELOC_DATA = R_X86_64_GLOB_DAT, RELOC_CALL = R_X86_64_JUMP_SLOT };
#elif defined(__aarch64__)
enum { RELOC_ADDRESS = R_AARCH64_ABS64, RELOC_DATA = R_AARCH64_GLOB_DAT, RELOC_CALL = R_AARCH64_JUMP_SLOT };
#endif

/* --- what a module imports of cudart --- */

enum { VERSIONS_MAX = 8 };
struct imports {
    struct cs_image image;
    const char *file;                /* that has the versions: a DT_NEEDED of the module */
    ElfW(Half) version[VERSIONS_MAX]; /* their numbers in the module's table of versions */
    const char *version_name[VERSIONS_MAX];
    int versions;
    const ElfW(Rela) *calls, *data;
    size_t call_count, data_count;
    bool unbound; /* some are still to be bound, when they are first called */
};

static void read_versions(struct imports *imports, const ElfW(Verneed) *need, size_t count)
{
    for (; need && count; count--, need = (const void *)((const char *)need + need->vn_next)) {
        const ElfW(Vernaux) *aux = (const void *)((const char *)need + need->vn_aux);
        for (int i = 0; i < need->vn_cnt; i++, aux = (const void *)((const char *)aux + aux->vna_next)) {
            const char *version = imports->image.strings + aux->vna_name;
            if (strncmp(version, VERSION_PREFIX, strlen(VERSION_PREFIX)) || imports->versions == VERSIONS_MAX) continue;
            imports->version_name[imports->versions] = version;
            imports->version[imports->versions++] = aux->vna_other & 0x7fff;
            if (!imports->file) imports->file = imports->image.strings + need->vn_file;
        }
        if (!need->vn_next) break;
    }
}

/* Of a library by its dynamic section. False if it imports nothing under a version of cudart's. */
static bool imports_read(const struct cs_image *image, struct imports *imports)
{
    *imports = (struct imports){.image = *image};
    const ElfW(Verneed) *need = NULL;
    size_t needs = 0, relative = 0, entry = sizeof(ElfW(Rela));
    bool rela = true;
    for (const ElfW(Dyn) *d = image->dynamic; d->d_tag != DT_NULL; d++) switch (d->d_tag) {
        case DT_VERNEED: need = cs_image_address(image->base, image->dynamic, d->d_un.d_ptr); break;
        case DT_VERNEEDNUM: needs = d->d_un.d_val; break;
        case DT_JMPREL: imports->calls = cs_image_address(image->base, image->dynamic, d->d_un.d_ptr); break;
        case DT_PLTRELSZ: imports->call_count = d->d_un.d_val / entry; break;
        case DT_PLTREL: rela = d->d_un.d_val == DT_RELA; break;
        case DT_RELA: imports->data = cs_image_address(image->base, image->dynamic, d->d_un.d_ptr); break;
        case DT_RELASZ: imports->data_count = d->d_un.d_val / entry; break;
        case DT_RELACOUNT: relative = d->d_un.d_val; break; /* those without a symbol stand first */
        }
    if (!rela || !imports->calls) imports->call_count = 0;
    if (!imports->data || imports->data_count < relative) imports->data_count = 0;
    else imports->data += relative, imports->data_count -= relative;
    if (imports->image.versions) read_versions(imports, need, needs);
    return imports->versions;
}

static const char *name_of(const struct imports *imports, size_t symbol)
{
    return imports->image.strings + ((const ElfW(Sym) *)imports->image.symbols)[symbol].st_name;
}

/* The version of cudart's under which a symbol is imported; NULL: none. */
static const char *import_version(const struct imports *imports, size_t symbol)
{
    const ElfW(Half) version = ((const ElfW(Half) *)imports->image.versions)[symbol] & 0x7fff;
    for (int i = 0; i < imports->versions; i++)
        if (imports->version[i] == version) return imports->version_name[i];
    return NULL;
}

/* The library that one of the relocations is bound to, as its own table of symbols confirms: no lazy call's way into the loader, and not us. */
static bool bound_copy(struct imports *imports, const ElfW(Rela) *rela, size_t count, struct cs_image *copy)
{
    for (size_t i = 0; i < count; i++) {
        const unsigned type = (unsigned)ELF64_R_TYPE(rela[i].r_info);
        const size_t symbol = ELF64_R_SYM(rela[i].r_info);
        if (!symbol || (type != RELOC_CALL && type != RELOC_DATA && type != RELOC_ADDRESS) || !import_version(imports, symbol)) continue;
        const void *bound = (const void *)*(const uintptr_t *)(imports->image.base + rela[i].r_offset);
        struct cs_module m;
        if (!cs_module_of(bound, &m)) continue;
        if (m.dynamic == imports->image.dynamic) imports->unbound = true;
        if (m.dynamic == imports->image.dynamic || cs_module_is_own(&m) || !cs_module_image(&m, copy)) continue;
        if (cs_image_symbol(copy, name_of(imports, symbol)) == bound) return true;
    }
    return false;
}

/* --- who calls --- */

/* Where the call went that is to return to p, by the instruction before it and, through it, the module's table of functions. NULL: that can't be told. */
static const void *called_before(const unsigned char *p)
{
    const void *to;
#if defined(__x86_64__)
    int32_t distance;
    memcpy(&distance, p - 4, sizeof distance);
    if (p[-6] == 0xff && p[-5] == 0x15) { /* call *distance(%rip) */
        if (!cs_module_is_same(p + distance, p - 6)) return NULL; /* it only looked like one */
        memcpy(&to, p + distance, sizeof to);
        return to;
    }
    if (p[-5] != 0xe8) return NULL; /* call distance */
    const unsigned char *entry = p + distance;
    if (!cs_module_is_same(entry, p - 6)) return NULL; /* it only looked like a call */
    if (entry[0] == 0xf3 && entry[1] == 0x0f && entry[2] == 0x1e && entry[3] == 0xfa) entry += 4; /* endbr64 */
    if (entry[0] == 0xf2) entry++;                                                                /* bnd */
    if (entry[0] != 0xff || entry[1] != 0x25) return entry;
    memcpy(&distance, entry + 2, sizeof distance); /* jmp *distance(%rip) */
    memcpy(&to, entry + 6 + distance, sizeof to);
    return to;
#elif defined(__aarch64__)
    cs_u32 word[3];
    memcpy(word, p - 4, sizeof *word);
    if (word[0] >> 26 != 0x25) return NULL; /* bl distance */
    const unsigned char *entry = p - 4 + (int32_t)(word[0] << 6) / 64 * 4;
    if (!cs_module_is_same(entry, p - 6)) return NULL;
    memcpy(word, entry, sizeof word);
    if (word[0] == 0xd503245f) entry += 4, memcpy(word, entry, sizeof word);                                   /* bti c */
    if ((word[0] & 0x9f00001f) != 0x90000010 || (word[1] & 0xffc003ff) != 0xf9400211) return entry;            /* adrp x16, page; ldr x17, [x16, offset] */
    const int64_t pages = (int32_t)((word[0] >> 5 & 0x7ffff) << 13) / (1 << 11) | (int32_t)(word[0] >> 29 & 3);
    memcpy(&to, (const char *)((uintptr_t)entry & ~(uintptr_t)4095) + pages * 4096 + (word[1] >> 10 & 0xfff) * 8, sizeof to);
    return to;
#else
    return (void)p, (void)to, NULL;
#endif
}

/* The return address of a call that was the last thing a function did is that of the function's caller: the call that is to return there went to us, or it
 * went to somebody else, who jumped to us. The answer is an address in the module that called. *us: that call goes to us; whether the module means its own
 * copy by it, its imports tell. */
static const void *real_caller(const void *returns, bool *us)
{
    struct cs_module module, there;
    const void *to = cs_module_of((const char *)returns - 6, &module) ? called_before(returns) : NULL;
    const bool known = cs_module_of(to, &there);
    *us = known && cs_module_is_own(&there);
    return known && !*us ? to : returns;
}

/* --- which copy --- */

/* A copy, and the version under which who calls it has it. */
struct copy {
    struct cs_image image;
    const char *version;
};

/* The version under which a module imports a name; NULL: it does not. */
static const char *imports_name(const struct imports *imports, const char *name)
{
    for (int pass = 0; pass < 2; pass++) {
        const ElfW(Rela) *rela = pass ? imports->data : imports->calls;
        for (size_t i = 0; i < (pass ? imports->data_count : imports->call_count); i++) {
            const size_t symbol = ELF64_R_SYM(rela[i].r_info);
            const char *version = symbol ? import_version(imports, symbol) : NULL;
            if (version && !strcmp(name_of(imports, symbol), name)) return version;
        }
    }
    return NULL;
}

/* That of the module that holds an address, if it imports the name, or where name is NULL, anything of cudart. Not *sure: as long as nothing that tells it
 * is bound. Kernels and variables are registered before they are used, and that is something bound. */
static bool copy_of(const void *address, const char *name, struct copy *copy, bool *sure)
{
    struct cs_image image;
    struct imports imports;
    struct cs_module m;
    if (!cs_module_of(address, &m) || cs_module_is_own(&m) || !cs_module_image(&m, &image)) return false;
    if (!imports_read(&image, &imports)) return false;
    copy->version = name ? imports_name(&imports, name) : imports.version_name[0];
    if (!copy->version) return false;
    if (bound_copy(&imports, imports.calls, imports.call_count, &copy->image) || bound_copy(&imports, imports.data, imports.data_count, &copy->image)) return true;
    *sure = !imports.unbound;
    return cs_image_find(imports.file, &copy->image);
}

struct in_front {
    const struct copy *copy;
    const char *name;
    void *found;
};

static bool defines_in_front(const struct cs_image *image, void *data)
{
    struct in_front *front = data;
    if (image->dynamic == front->copy->image.dynamic) return true;
    if (strncmp(image->soname, "libcustream", strlen("libcustream"))) front->found = cs_image_function(image, front->name, front->copy->version);
    return front->found;
}

/* The copy's, unless something that was loaded with the program behind us stands in front of it and has that function alone: a tool that is preloaded. */
static void *function_of(const struct copy *copy, const char *name)
{
    struct in_front front = {copy, name, NULL};
    if (copy->version) cs_image_each_behind(defines_in_front, &front);
    return front.found ?: cs_image_symbol(&copy->image, name);
}

struct wanted {
    const char *name, *file, *version; /* that the first module which imports the name has it from */
    bool several;
    void *found;
};

static bool imports_wanted(const struct cs_image *image, void *data)
{
    struct wanted *wanted = data;
    struct imports imports;
    const char *version = image->dynamic != _DYNAMIC && imports_read(image, &imports) ? imports_name(&imports, wanted->name) : NULL;
    if (!version) return false;
    if (wanted->file && strcmp(wanted->file, imports.file)) wanted->several = true;
    if (!wanted->file) wanted->file = imports.file, wanted->version = version;
    return wanted->several;
}

static bool defines_wanted(const struct cs_image *image, void *data)
{
    struct wanted *wanted = data;
    if (strncmp(image->soname, "libcudart", strlen("libcudart"))) return false;
    wanted->found = cs_image_symbol(image, wanted->name);
    return wanted->found;
}

/* Who called is not to be found: from where others have the function, and if there are several such places, from the first. */
static void *any_copy(const char *name)
{
    struct wanted wanted = {.name = name};
    struct copy copy;
    cs_image_each(imports_wanted, &wanted);
    if (wanted.several)
        cs_log_once(CS_LOG_WARN, "there are several copies of the CUDA runtime; calls of which it can't be told for which they are go to the first");
    copy.version = wanted.version;
    if (wanted.file && cs_image_find(wanted.file, &copy.image)) wanted.found = function_of(&copy, name);
    if (!wanted.found) cs_image_each(defines_wanted, &wanted);
    return wanted.found;
}

static cudaError_t no_copy(void)
{
    cs_log_once(CS_LOG_WARN, "a function of the CUDA runtime was called that no loaded cudart has; it got cudaErrorNotSupported");
    return cudaErrorNotSupported;
}

/* --- answers that are known --- */

/* Address and function -> an answer. User addresses have 47 bits (48 on aarch64, where the program has not asked for more). */
#define ADDRESS_BITS 48
#define ADDRESS_MASK (((cs_u64)1 << ADDRESS_BITS) - 1)
_Static_assert(CS_RUNTIME_END < 1 << (64 - ADDRESS_BITS), "a call and an address are one key");
enum { KNOWN_LOG2 = 17 };
static struct cs_map known;
static _Atomic int known_state;  /* 0: not there yet, 1: being made, 2: there, 3: never will be */
static _Atomic cs_u64 closed;    /* how many times dlclose has begun or ended, where we see it: what was found before may be gone */

/* Each slot of `known` has its own. It holds as long as no library has been closed and both modules are those that were there: a library opened with
 * RTLD_DEEPBIND closes others without our hearing of it. */
static struct answer {
    _Atomic cs_u32 sequence; /* odd while the rest is being written */
    _Atomic cs_u64 found, since, address_module, found_module;
} *answers;

static bool known_ready(void)
{
    int state = cs_load_acq(&known_state);
    if (CS_LIKELY(state == 2)) return true;
    CS_KEEP_ERRNO;
    if (state || !atomic_compare_exchange_strong(&known_state, &state, 1)) return false;
    answers = cs_memory_map(sizeof *answers << KNOWN_LOG2, "which copy of the CUDA runtime was called; it is found anew at each call");
    cs_store_rel(&known_state, answers && cs_map_init(&known, KNOWN_LOG2) ? 2 : 3);
    return cs_load(&known_state) == 2;
}

static cs_u64 key_of(enum cs_runtime_call call, const void *address) { return ((uintptr_t)address & ADDRESS_MASK) | (cs_u64)call << ADDRESS_BITS; }

/* Of a caller: that it may be another one's call that is to return there, so the kernel's or the variable's address tells. */
#define UNCERTAIN ((void *)1)

static void *known_by(enum cs_runtime_call call, const void *address)
{
    if (!known_ready()) return NULL;
    const struct answer *a = (const struct answer *)(uintptr_t)cs_map_get(&known, key_of(call, address));
    if (!a) return NULL;
    const cs_u32 sequence = cs_load_acq(&a->sequence);
    void *found = (void *)(uintptr_t)cs_load(&a->found);
    const bool holds = cs_load(&a->since) == cs_load(&closed) && cs_load(&a->found_module) == cs_module_number(found) &&
                       cs_load(&a->address_module) == cs_module_number(address);
    atomic_thread_fence(memory_order_acquire);
    return CS_LIKELY(holds && !(sequence & 1) && cs_load(&a->sequence) == sequence) ? found : NULL;
}

static void keep(enum cs_runtime_call call, const void *address, void *found, cs_u64 since)
{
    struct cs_map_slot *slot = known_ready() ? cs_map_slot(&known, key_of(call, address), true) : NULL;
    if (!slot) return;
    struct answer *a = &answers[slot - known.slots];
    cs_u32 sequence = cs_load(&a->sequence);
    if (sequence & 1 || !atomic_compare_exchange_strong(&a->sequence, &sequence, sequence + 1)) return;
    /* Each with release: who reads one of them then reads the odd number too. */
    cs_store_rel(&a->found, (uintptr_t)found);
    cs_store_rel(&a->since, since);
    cs_store_rel(&a->found_module, cs_module_number(found));
    cs_store_rel(&a->address_module, cs_module_number(address));
    cs_store_rel(&a->sequence, sequence + 2);
    cs_store_rel(&slot->value, (uintptr_t)a);
}

/* A kernel of another module's goes to the caller's copy, which does not know it, where the caller is known; and to the one in which it is registered where
 * the caller may be somebody else. */
static CS_COLD void *find(enum cs_runtime_call call, const void *of, const void *caller)
{
    CS_KEEP_ERRNO;
    const cs_u64 since = cs_load(&closed);
    const char *name = cs_runtime_name(call);
    struct copy copy;
    bool us, sure = true;
    const void *asker = real_caller(caller, &us);
    void *found = (us || of == caller) && copy_of(asker, name, &copy, &sure) ? function_of(&copy, name) : NULL;
    if (found || of == caller) {
        if (!found) found = any_copy(name);
        if (found && sure) keep(call, caller, found, since);
        return found ?: (void *)no_copy;
    }
    keep(call, caller, UNCERTAIN, since);
    if ((found = known_by(call, of))) return found;
    sure = of;
    if ((of && copy_of(of, NULL, &copy, &sure)) || copy_of(asker, name, &copy, &sure)) found = function_of(&copy, name);
    if (!found) found = any_copy(name);
    if (found && sure) keep(call, of, found, since);
    return found ?: (void *)no_copy;
}

void *cs_runtime_function(enum cs_runtime_call call, const void *of, const void *caller)
{
    void *found = known_by(call, caller);
    if (CS_UNLIKELY(found == UNCERTAIN)) found = known_by(call, of);
    return CS_LIKELY(found) ? found : find(call, of, caller);
}

/* The next one does it. Told to those who keep the driver's entry points. Counted on both sides: what is found between is of libraries that go, or that come to their place. */
CS_EXPORT int dlclose(void *handle)
{
    static __typeof__(&dlclose) _Atomic next;
    if (!cs_load(&next)) cs_store(&next, (__typeof__(&dlclose))cs_symbol_behind("dlclose"));
    if (!cs_load(&next)) return -1;
    cs_add(&closed, 1);
    cs_driver_closing();
    int result = cs_load(&next)(handle);
    cs_driver_closed();
    cs_add(&closed, 1);
    return result;
}
