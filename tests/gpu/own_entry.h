/*
 * libcuda's own entry point of a call, read from its symbol table in memory, where no preload can
 * put itself in front.
 */
#ifndef OWN_ENTRY_H
#define OWN_ENTRY_H

#include <elf.h>
#include <link.h> /* with _GNU_SOURCE */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct own_search {
    const char *name;
    void *found;
};

static uintptr_t table_address(const struct dl_phdr_info *info, uintptr_t value)
{
    return value < info->dlpi_addr
               ? info->dlpi_addr + value
               : value; /* glibc relocates these entries in place, other loaders do not */
}

static uint32_t symbols_in_gnu_hash(const uint32_t *table)
{
    uint32_t buckets = table[0], offset = table[1], bloom = table[2], last = 0;
    const uint32_t *bucket = table + 4 + bloom * (sizeof(ElfW(Addr)) / 4),
                   *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++)
        if (bucket[i] > last) last = bucket[i];
    if (last < offset) return offset;
    while (!(chain[last - offset] & 1)) last++;
    return last + 1;
}

static int own_look_into(struct dl_phdr_info *info, size_t size, void *data)
{
    struct own_search *s = data;
    const ElfW(Dyn) *dyn = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    uint32_t count = 0;
    const char *base = strrchr(info->dlpi_name, '/');
    (void)size;
    if (strncmp(base ? base + 1 : info->dlpi_name, "libcuda.so", 10)) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dyn = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
        uintptr_t at = table_address(info, dyn->d_un.d_ptr);
        if (dyn->d_tag == DT_SYMTAB) symbols = (const ElfW(Sym) *)at;
        if (dyn->d_tag == DT_STRTAB) strings = (const char *)at;
        if (dyn->d_tag == DT_GNU_HASH) count = symbols_in_gnu_hash((const uint32_t *)at);
        if (dyn->d_tag == DT_HASH && !count) count = ((const uint32_t *)at)[1];
    }
    for (uint32_t i = 1; symbols && strings && i < count; i++)
        if (symbols[i].st_shndx != SHN_UNDEF && !strcmp(strings + symbols[i].st_name, s->name))
            s->found = (void *)(info->dlpi_addr + symbols[i].st_value);
    return s->found != NULL;
}

/* NULL: libcuda is not loaded, or has no such symbol. */
static void *own_entry(const char *name)
{
    struct own_search s = {name, NULL};
    dl_iterate_phdr(own_look_into, &s);
    return s.found;
}

#endif
