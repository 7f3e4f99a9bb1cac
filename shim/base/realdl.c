#define _GNU_SOURCE
#include "shim/base/realdl.h"

#include <elf.h>
#include <link.h>

cs_dlsym_fn *cs_real_dlsym;
cs_dlvsym_fn *cs_real_dlvsym;

/* Of our own: this runs inside a dlsym that may be a sanitizer's, about to find the real strcmp. */
static bool equal(const char *a, const char *b)
{
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

static const char *file_of(const char *path)
{
    const char *file = path;
    for (; *path; path++)
        if (*path == '/') file = path + 1;
    return file;
}

static uintptr_t apart(uintptr_t a, uintptr_t b) { return a > b ? a - b : b - a; }

/* glibc relocates the addresses in a dynamic section in place, unless it can't write there (the kernel's library, lld's -z rodynamic). Which it was, the distance
 * from the section tells: what has been added to an address in the file, which may be less than nothing, is more than a library is long. */
const void *cs_image_address(uintptr_t base, const void *dynamic, uintptr_t at)
{
    return (const void *)(apart(at, (uintptr_t)dynamic) <= apart(at + base, (uintptr_t)dynamic) ? at : at + base);
}

bool cs_image_read(uintptr_t base, const void *dynamic, const char *name, struct cs_image *image)
{
    const ElfW(Dyn) *d = dynamic;
    *image = (struct cs_image){.base = base, .dynamic = dynamic};
    size_t soname = 0;
    for (; d && d->d_tag != DT_NULL; d++) switch (d->d_tag) {
        case DT_SYMTAB: image->symbols = cs_image_address(base, dynamic, d->d_un.d_ptr); break;
        case DT_STRTAB: image->strings = cs_image_address(base, dynamic, d->d_un.d_ptr); break;
        case DT_VERSYM: image->versions = cs_image_address(base, dynamic, d->d_un.d_ptr); break;
        case DT_VERDEF: image->defined_versions = cs_image_address(base, dynamic, d->d_un.d_ptr); break;
        case DT_GNU_HASH: image->gnu_hash = cs_image_address(base, dynamic, d->d_un.d_ptr); break;
        case DT_HASH: image->sysv_hash = cs_image_address(base, dynamic, d->d_un.d_ptr); break;
        case DT_SONAME: soname = d->d_un.d_val; break;
        }
    if (!image->symbols || !image->strings) return false;
    image->soname = soname ? image->strings + soname : file_of(name);
    return true;
}

/* The list that the loader keeps for debuggers; it begins with what stays to the end of the process. Weak: else the shim would name the loader as a library
 * that it needs, and so change the order in which the process's libraries are searched. */
extern struct r_debug _r_debug __attribute__((weak));
static const struct link_map *all_maps(void) { return &_r_debug ? _r_debug.r_map : NULL; }

/* How many libraries were loaded with the program. They stand in front in the list, are in everybody's scope, and stay. What the program opens later comes behind
 * them, and may be unmapped while the list is read: so nobody reads beyond them. */
static size_t maps_at_start = SIZE_MAX;
__attribute__((constructor(101))) static void at_start(void) /* before any of ours that opens a library */
{
    maps_at_start = 0;
    for (const struct link_map *m = all_maps(); m; m = m->l_next) maps_at_start++;
}

/* Map by map; `i` counts them. */
#define EACH_AT_START(m, i) \
    size_t i = 0;           \
    for (const struct link_map *m = all_maps(); i < maps_at_start && m; m = m->l_next, i++)

static bool each_at_start(bool (*want)(const struct cs_image *image, void *data), void *data)
{
    struct cs_image image;
    EACH_AT_START(m, i)
        if (cs_image_read(m->l_addr, m->l_ld, m->l_name, &image) && want(&image, data)) return true;
    return false;
}

bool cs_image_own(struct cs_image *image)
{
    EACH_AT_START(m, i)
        if (m->l_ld == _DYNAMIC) return cs_image_read(m->l_addr, m->l_ld, m->l_name, image);
    return false;
}

/* A part of the C library. */
static bool is_of_glibc(const struct cs_image *image)
{
    static const char *const parts[] = {"libc.so.6", "libpthread.so.0", "libdl.so.2"};
    for (size_t i = 0; i < CS_COUNT(parts); i++)
        if (equal(image->soname, parts[i])) return true;
    return false;
}

struct defined {
    const char *name;
    void *found;
};

static bool defines(const struct cs_image *image, void *data)
{
    struct defined *defined = data;
    defined->found = cs_image_symbol(image, defined->name);
    return defined->found;
}

static bool defines_in_glibc(const struct cs_image *image, void *data)
{
    return is_of_glibc(image) && defines(image, data);
}

void *cs_glibc_symbol(const char *name)
{
    struct defined defined = {name, NULL};
    cs_image_each(defines_in_glibc, &defined);
    return defined.found;
}

void *cs_symbol_behind(const char *name)
{
    struct defined defined = {name, NULL};
    return cs_image_each_behind(defines, &defined) ? defined.found : cs_glibc_symbol(name);
}

bool cs_image_each_behind(bool (*want)(const struct cs_image *image, void *data), void *data)
{
    struct cs_image image;
    bool behind = false;
    EACH_AT_START(m, i) {
        if (behind && cs_image_read(m->l_addr, m->l_ld, m->l_name, &image) && want(&image, data)) return true;
        behind |= m->l_ld == _DYNAMIC;
    }
    return false;
}

bool cs_image_sees_behind(const void *dynamic, const char *name)
{
    struct cs_image image;
    bool behind = false;
    EACH_AT_START(m, i) {
        if (m->l_ld == _DYNAMIC) break;
        if (behind && cs_image_read(m->l_addr, m->l_ld, m->l_name, &image) && cs_image_symbol(&image, name)) return false;
        behind |= m->l_ld == dynamic;
    }
    return behind;
}

bool cs_objects_each(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data)
{
    static __typeof__(&dl_iterate_phdr) _Atomic iterate; /* two threads may look at once: each finds the same */
    struct defined defined = {"dl_iterate_phdr", NULL};
    if (!cs_load(&iterate) && each_at_start(defines_in_glibc, &defined)) cs_store(&iterate, (__typeof__(&dl_iterate_phdr))defined.found);
    return cs_load(&iterate) && cs_load(&iterate)(visit, data) == 1;
}

const void *cs_object_dynamic(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) return (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return NULL;
}

struct each {
    bool (*want)(const struct cs_image *image, void *data);
    void *data;
};

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    const struct each *each = data;
    struct cs_image image;
    return cs_image_read(info->dlpi_addr, cs_object_dynamic(info), info->dlpi_name, &image) && each->want(&image, each->data);
}

/* What was loaded with the program stays, so its part of the list is read as it is. What was opened later may be closed while we look. */
bool cs_image_each(bool (*want)(const struct cs_image *image, void *data), void *data)
{
    struct each each = {want, data};
    return each_at_start(want, data) || cs_objects_each(visit, &each);
}

struct wanted {
    const char *soname;
    struct cs_image *image;
};

static bool has_soname(const struct cs_image *image, void *data)
{
    struct wanted *wanted = data;
    if (!equal(image->soname, wanted->soname)) return false;
    *wanted->image = *image;
    return true;
}

bool cs_image_find(const char *soname, struct cs_image *image)
{
    struct wanted wanted = {soname, image};
    return cs_image_each(has_soname, &wanted);
}

static const char *version_name(const struct cs_image *image, unsigned number)
{
    const ElfW(Verdef) *d = image->defined_versions;
    for (; d; d = d->vd_next ? (const void *)((const char *)d + d->vd_next) : NULL)
        if (d->vd_ndx == number && !(d->vd_flags & VER_FLG_BASE)) return image->strings + ((const ElfW(Verdaux) *)((const char *)d + d->vd_aux))->vda_name;
    return NULL;
}

/* As the loader compares them (glibc, check_match in elf/dl-lookup.c). */
static bool fits(const struct cs_image *image, cs_u32 i, const char *version)
{
    if (!image->versions) return true;
    const ElfW(Half) number = ((const ElfW(Half) *)image->versions)[i];
    const char *name = version_name(image, number & 0x7fff);
    return name ? equal(name, version) : !(number & 0x8000);
}

/* Symbol `i` if it defines `name` with an address of its own, neither a thread's variable nor a resolver; *hidden tells an old version, kept for old
 * binaries. */
static void *symbol_at(const struct cs_image *image, cs_u32 i, const char *name, bool *hidden)
{
    const ElfW(Sym) *symbol = (const ElfW(Sym) *)image->symbols + i;
    unsigned type = symbol->st_info & 15;
    if (symbol->st_shndx == SHN_UNDEF || type == STT_TLS || type == STT_GNU_IFUNC || !equal(image->strings + symbol->st_name, name)) return NULL;
    *hidden = image->versions && ((const ElfW(Half) *)image->versions)[i] & 0x8000;
    return (void *)(image->base + symbol->st_value);
}

/* Where `version` is not NULL, only a function that fits it. */
static void *symbol_for(const struct cs_image *image, cs_u32 i, const char *name, const char *version, bool *hidden)
{
    void *found = symbol_at(image, i, name, hidden);
    if (!found || !version) return found;
    *hidden = false;
    return (((const ElfW(Sym) *)image->symbols)[i].st_info & 15) == STT_FUNC && fits(image, i, version) ? found : NULL;
}

static void *gnu_find(const struct cs_image *image, const char *name, const char *version)
{
    cs_u32 hash = 5381;
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) hash = hash * 33 + *p;
    const cs_u32 *table = image->gnu_hash;
    cs_u32 buckets = table[0], first = table[1], bloom_words = table[2];
    const cs_u32 *bucket = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4), *chain = bucket + buckets;
    void *found, *old = NULL;
    bool hidden;
    if (!buckets) return NULL;
    for (cs_u32 i = bucket[hash % buckets]; i && i >= first; i++) {
        cs_u32 h = chain[i - first];
        if ((h | 1) == (hash | 1) && (found = symbol_for(image, i, name, version, &hidden))) {
            if (!hidden) return found;
            old = found;
        }
        if (h & 1) break;
    }
    return old;
}

static void *sysv_find(const struct cs_image *image, const char *name, const char *version)
{
    const cs_u32 *table = image->sysv_hash; /* bucket count, symbol count, buckets, chains */
    cs_u32 hash = 0, buckets = table[0];
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        hash = (hash << 4) + *p;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    void *found, *old = NULL;
    bool hidden;
    for (cs_u32 i = buckets ? table[2 + hash % buckets] : 0; i; i = table[2 + buckets + i]) {
        if (!(found = symbol_for(image, i, name, version, &hidden))) continue;
        if (!hidden) return found;
        old = found;
    }
    return old;
}

void *cs_image_function(const struct cs_image *image, const char *name, const char *version)
{
    if (image->gnu_hash) return gnu_find(image, name, version);
    return image->sysv_hash ? sysv_find(image, name, version) : NULL;
}

void *cs_image_symbol(const struct cs_image *image, const char *name) { return cs_image_function(image, name, NULL); }

bool cs_realdl_init(void)
{
    if (!cs_real_dlsym) {
        cs_real_dlvsym = (cs_dlvsym_fn *)cs_glibc_symbol("dlvsym");
        cs_real_dlsym = (cs_dlsym_fn *)cs_glibc_symbol("dlsym");
    }
    return cs_real_dlsym && cs_real_dlvsym;
}

/* How many entries its table of symbols has, which only the hash tables tell. */
static size_t symbol_count(const struct cs_image *image)
{
    if (!image->gnu_hash) return image->sysv_hash ? ((const cs_u32 *)image->sysv_hash)[1] : 0;
    const cs_u32 *table = image->gnu_hash;
    const cs_u32 buckets = table[0], first = table[1], *bucket = table + 4 + table[2] * (sizeof(ElfW(Addr)) / 4), *chain = bucket + buckets;
    cs_u32 last = 0;
    for (cs_u32 i = 0; i < buckets; i++)
        if (bucket[i] > last) last = bucket[i];
    if (last < first || !last) return first;
    while (!(chain[last - first] & 1)) last++;
    return last + 1;
}

const char *cs_image_name_at(const struct cs_image *image, uintptr_t address, uintptr_t *begin)
{
    const ElfW(Sym) *symbols = image->symbols, *best = NULL;
    const size_t count = symbol_count(image);
    address -= image->base;
    for (size_t i = 0; i < count; i++) {
        const ElfW(Sym) *s = &symbols[i];
        if (s->st_shndx == SHN_UNDEF || (s->st_info & 15) == STT_TLS || address < s->st_value || (best && s->st_value <= best->st_value)) continue;
        if (s->st_size ? address - s->st_value < s->st_size : address == s->st_value) best = s;
    }
    if (!best) return NULL;
    *begin = image->base + best->st_value;
    return image->strings + best->st_name;
}
