#define _GNU_SOURCE
#include "shim/base/place.h"

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
#include "shim/base/module.h"
#include "shim/base/realdl.h"

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
    if (file == MAP_FAILED && errno == ENOMEM) cs_refused("the names of functions in a library");
    close(fd);
    if (file == MAP_FAILED) return;
    find_symbols(module, file, size);
    if (!module->symbols) munmap((void *)file, size);
}

/* The module of that base and path, made at first sight; NULL: there are too many. */
static const struct module *module_of(const struct cs_module *of)
{
    for (int i = 0; i < MODULES; i++) {
        struct module *module = cs_load_acq(&modules[i]), *none = NULL;
        if (module && module->base == of->base && !strncmp(module->path, of->name, PATH - 1)) return module;
        if (module) continue;
        if (!(module = cs_memory_map(sizeof *module, "the names of functions"))) return NULL;
        module->base = of->base;
        strncpy(module->path, of->name, PATH - 1);
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

struct place {
    struct cs_module module;
    const char *function; /* NULL: it has no name */
    uintptr_t begin;
};

/* False if no module holds the address. */
static bool look_up(uintptr_t address, struct place *place)
{
    struct cs_image image;
    place->function = NULL;
    if (!cs_module_of((const void *)address, &place->module)) return false;
    const struct module *module = module_of(&place->module);
    const ElfW(Sym) *symbol = module ? symbol_at(module, address - place->module.base) : NULL;
    if (symbol) {
        place->function = module->strings + symbol->st_name;
        place->begin = place->module.base + symbol->st_value;
    } else if (cs_module_image(&place->module, &image)) {
        place->function = cs_image_name_at(&image, address, &place->begin);
    }
    return true;
}

const char *cs_place_function(const void *return_address)
{
    CS_KEEP_ERRNO;
    CS_KEEP_UNCANCELLED;
    struct place place;
    return return_address && look_up((uintptr_t)return_address - 1, &place) && place.function ? place.function : "";
}

void cs_place_text(const void *return_address, char *text, size_t size)
{
    CS_KEEP_ERRNO;
    CS_KEEP_UNCANCELLED;
    struct place place;
    const uintptr_t inside = return_address ? (uintptr_t)return_address - 1 : 0;
    *text = 0;
    if (!inside || !look_up(inside, &place)) return;
    int n = snprintf(text, size, "%.80s+%#zx", cs_module_file(&place.module), (size_t)(inside - place.module.base));
    if (place.function && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, " (%.120s+%#zx)", place.function, (size_t)(inside - place.begin));
}
