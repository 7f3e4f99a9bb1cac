#define _GNU_SOURCE
#include "shim/base/place.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/keep.h"
#include "shim/base/memory.h"

enum { MODULES = 256, PATH = 512 };

/* A module and the symbols of its file; constant once it is in the list. */
struct module {
    ElfW(Addr) base;
    char path[PATH];
    const ElfW(Sym) *symbols;
    const char *strings;
    size_t count, strings_size;
};
static struct module *_Atomic modules[MODULES];

/* --- files --- */

static bool lies_in(const ElfW(Shdr) *section, size_t size) { return section->sh_offset <= size && section->sh_size <= size - section->sh_offset; }

static void find_symbols(struct module *module, const char *file, size_t size)
{
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)(const void *)file;
    if (size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) || head->e_shentsize != sizeof(ElfW(Shdr))) return;
    if (head->e_shoff > size || head->e_shnum > (size - head->e_shoff) / sizeof(ElfW(Shdr)) || head->e_shoff % sizeof(ElfW(Addr))) return;
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(const void *)(file + head->e_shoff);
    for (size_t i = 0; i < head->e_shnum; i++) {
        const ElfW(Shdr) *symbols = &sections[i], *strings = symbols->sh_link < head->e_shnum ? &sections[symbols->sh_link] : NULL;
        if (symbols->sh_type != SHT_SYMTAB || !strings || !lies_in(symbols, size) || !lies_in(strings, size) || !strings->sh_size) continue;
        if (file[strings->sh_offset + strings->sh_size - 1] || symbols->sh_offset % sizeof(ElfW(Addr))) continue;
        module->symbols = (const ElfW(Sym) *)(const void *)(file + symbols->sh_offset);
        module->count = symbols->sh_size / sizeof(ElfW(Sym));
        module->strings = file + strings->sh_offset;
        module->strings_size = strings->sh_size;
    }
}

static void open_file(struct module *module)
{
    struct stat st;
    int fd = open(*module->path ? module->path : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    size_t size = !fstat(fd, &st) && st.st_size > 0 ? (size_t)st.st_size : 0;
    const char *file = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (file == MAP_FAILED) return;
    find_symbols(module, file, size);
    if (!module->symbols) munmap((void *)file, size);
}

/* The module of that base and path, made at first sight; NULL: there are too many. */
static const struct module *module_of(const struct link_map *map)
{
    for (int i = 0; i < MODULES; i++) {
        struct module *module = cs_load_acq(&modules[i]), *none = NULL;
        if (module && module->base == map->l_addr && !strncmp(module->path, map->l_name, PATH - 1)) return module;
        if (module) continue;
        if (!(module = cs_memory_map(sizeof *module))) return NULL;
        module->base = map->l_addr;
        strncpy(module->path, map->l_name, PATH - 1);
        open_file(module);
        if (atomic_compare_exchange_strong(&modules[i], &none, module)) return module;
        i--; /* another thread was faster: with this one, perhaps */
    }
    return NULL;
}

/* --- addresses --- */

static const ElfW(Sym) *symbol_at(const struct module *module, ElfW(Addr) address)
{
    for (size_t i = 0; i < module->count; i++) {
        const ElfW(Sym) *s = &module->symbols[i];
        if ((s->st_info & 15) != STT_FUNC || s->st_shndx == SHN_UNDEF || s->st_name >= module->strings_size) continue;
        if (address >= s->st_value && address - s->st_value < s->st_size) return s;
    }
    return NULL;
}

/* What holds the address: the loader's entry, and function with its begin. False if no module does. */
static bool look_up(const char *address, Dl_info *info, const struct link_map **map)
{
    void *found = NULL;
    if (!dladdr1(address, info, &found, RTLD_DL_LINKMAP) || !info->dli_fname || !found) return false;
    *map = found;
    const struct module *module = module_of(*map);
    const ElfW(Sym) *symbol = module ? symbol_at(module, (ElfW(Addr))address - (*map)->l_addr) : NULL;
    if (!symbol) return true;
    info->dli_sname = module->strings + symbol->st_name;
    info->dli_saddr = (void *)((*map)->l_addr + symbol->st_value);
    return true;
}

const char *cs_place_function(const void *return_address)
{
    CS_KEEP_ERRNO;
    Dl_info info;
    const struct link_map *map;
    return return_address && look_up((const char *)return_address - 1, &info, &map) && info.dli_sname ? info.dli_sname : "";
}

void cs_place_text(const void *return_address, char *text, size_t size)
{
    CS_KEEP_ERRNO;
    Dl_info info;
    const struct link_map *map;
    const char *inside = return_address ? (const char *)return_address - 1 : NULL;
    *text = 0;
    if (!inside || !look_up(inside, &info, &map)) return;
    const char *slash = strrchr(info.dli_fname, '/');
    int n = snprintf(text, size, "%.80s+%#zx", slash ? slash + 1 : info.dli_fname, (size_t)(inside - (const char *)map->l_addr));
    if (info.dli_sname && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, " (%.120s+%#zx)", info.dli_sname, (size_t)(inside - (const char *)info.dli_saddr));
}
