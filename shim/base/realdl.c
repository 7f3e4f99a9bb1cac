#define _GNU_SOURCE
#include "shim/base/realdl.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

cs_dlsym_fn *cs_real_dlsym;
cs_dlvsym_fn *cs_real_dlvsym;

/* glibc relocates the addresses in a dynamic section in place on most machines; where it does not they are offsets. */
static const void *relocated(const struct dl_phdr_info *info, ElfW(Addr) at)
{
    return (const void *)(at < info->dlpi_addr ? at + info->dlpi_addr : at);
}

static bool image_read(const struct dl_phdr_info *info, struct cs_image *image)
{
    *image = (struct cs_image){.base = info->dlpi_addr};
    size_t soname = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        for (const ElfW(Dyn) *d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); d->d_tag != DT_NULL; d++) switch (d->d_tag) {
            case DT_SYMTAB: image->symbols = relocated(info, d->d_un.d_ptr); break;
            case DT_STRTAB: image->strings = relocated(info, d->d_un.d_ptr); break;
            case DT_VERSYM: image->versions = relocated(info, d->d_un.d_ptr); break;
            case DT_GNU_HASH: image->gnu_hash = relocated(info, d->d_un.d_ptr); break;
            case DT_HASH: image->sysv_hash = relocated(info, d->d_un.d_ptr); break;
            case DT_SONAME: soname = d->d_un.d_val; break;
            }
    }
    if (!image->symbols || !image->strings) return false;
    const char *slash = strrchr(info->dlpi_name, '/');
    image->soname = soname ? image->strings + soname : slash ? slash + 1 : info->dlpi_name;
    return true;
}

struct wanted {
    const char *soname;
    struct cs_image *image;
};

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct wanted *wanted = data;
    struct cs_image image;
    if (!image_read(info, &image) || strcmp(image.soname, wanted->soname)) return 0;
    *wanted->image = image;
    return 1;
}

bool cs_image_find(const char *soname, struct cs_image *image)
{
    struct wanted wanted = {soname, image};
    return dl_iterate_phdr(visit, &wanted) == 1;
}

/* Symbol `i` if it defines `name` with an address of its own, neither a thread's variable nor a resolver; *hidden tells an old version, kept for old
 * binaries. */
static void *symbol_at(const struct cs_image *image, cs_u32 i, const char *name, bool *hidden)
{
    const ElfW(Sym) *symbol = (const ElfW(Sym) *)image->symbols + i;
    unsigned type = symbol->st_info & 15;
    if (symbol->st_shndx == SHN_UNDEF || type == STT_TLS || type == STT_GNU_IFUNC || strcmp(image->strings + symbol->st_name, name)) return NULL;
    *hidden = image->versions && ((const ElfW(Half) *)image->versions)[i] & 0x8000;
    return (void *)(image->base + symbol->st_value);
}

static void *gnu_find(const struct cs_image *image, const char *name)
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
        if ((h | 1) == (hash | 1) && (found = symbol_at(image, i, name, &hidden))) {
            if (!hidden) return found;
            old = found;
        }
        if (h & 1) break;
    }
    return old;
}

static void *sysv_find(const struct cs_image *image, const char *name)
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
        if (!(found = symbol_at(image, i, name, &hidden))) continue;
        if (!hidden) return found;
        old = found;
    }
    return old;
}

void *cs_image_symbol(const struct cs_image *image, const char *name)
{
    if (image->gnu_hash) return gnu_find(image, name);
    return image->sysv_hash ? sysv_find(image, name) : NULL;
}

bool cs_realdl_init(void)
{
    struct cs_image libc;
    if (!cs_real_dlsym && cs_image_find("libc.so.6", &libc)) {
        cs_real_dlvsym = (cs_dlvsym_fn *)cs_image_symbol(&libc, "dlvsym");
        cs_real_dlsym = (cs_dlsym_fn *)cs_image_symbol(&libc, "dlsym");
    }
    return cs_real_dlsym && cs_real_dlvsym;
}

bool cs_module_of(const void *address, const char **file, const void **base)
{
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname) return false;
    if (file) *file = info.dli_fname;
    if (base) *base = info.dli_fbase;
    return true;
}
