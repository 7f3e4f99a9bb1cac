/* Names that the loader binds, and the variables that some programs keep the driver's functions in. */
#include <string.h>

#include "tools/custream/inspect/parts.h"

static void import_take(struct image *image, const char *name)
{
    if (!strcmp(name, "dlopen")) image->opens = true;
    if (!strcmp(name, "dlmopen")) image->opens_apart = true;
    image_use(image, name, USE_IMPORTED);
}

static void symbol_take(struct image *image, const GElf_Sym *symbol, const char *name)
{
    const struct api_call *call;
    if (symbol->st_shndx == SHN_UNDEF) import_take(image, name);
    else if (GELF_ST_TYPE(symbol->st_info) == STT_OBJECT && GELF_ST_BIND(symbol->st_info) == STB_GLOBAL && (call = api_find(name)) && call->level == API_DRIVER)
        image->own_driver_pointers = true;
}

static void section_take(void *of, const struct elf_file *file, Elf_Scn *section, const GElf_Shdr *about, const char *name)
{
    (void)of, (void)name;
    struct image *image = file->image;
    GElf_Sym symbol;
    image->has_symbols |= about->sh_type == SHT_SYMTAB;
    const bool wanted = about->sh_type == SHT_DYNSYM || (about->sh_type == SHT_SYMTAB && image->kind == IMAGE_OBJECT);
    Elf_Data *data = wanted ? elf_getdata(section, NULL) : NULL;
    for (int i = 1; data && gelf_getsym(data, i, &symbol); i++) {
        const char *called = elf_strptr(file->elf, about->sh_link, symbol.st_name);
        if (called && *called) symbol_take(image, &symbol, called);
    }
}

void symbols_read(struct elf_file *file) { sections_each(file, section_take, NULL); }
