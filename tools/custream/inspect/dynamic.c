/* What the loader reads of a file: by the program headers, since section headers may be missing. */
#include <stdlib.h>
#include <string.h>

#include "tools/custream/inspect/parts.h"

enum { TEXT_MOST = 65536 };

/* Where the address lies in the file, and how much of its segment is behind it. */
static bool place_of(const struct elf_file *file, uint64_t address, uint64_t *offset, uint64_t *behind)
{
    size_t count = 0;
    elf_getphdrnum(file->elf, &count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr part;
        if (!gelf_getphdr(file->elf, (int)i, &part) || part.p_type != PT_LOAD) continue;
        if (address < part.p_vaddr || address - part.p_vaddr >= part.p_filesz) continue;
        *offset = part.p_offset + (address - part.p_vaddr);
        *behind = part.p_filesz - (address - part.p_vaddr);
        return true;
    }
    return false;
}

/* A text of the table of texts; NULL: it leads out of the file, or is longer than any path. */
static char *text_at(const struct elf_file *file, uint64_t table, uint64_t at)
{
    uint64_t offset, behind;
    if (!table || !place_of(file, table + at, &offset, &behind)) return NULL;
    const size_t most = behind < TEXT_MOST ? behind : TEXT_MOST;
    Elf_Data *data = elf_getdata_rawchunk(file->elf, (int64_t)offset, most, ELF_T_BYTE);
    return data && data->d_buf && memchr(data->d_buf, 0, data->d_size) ? kept(data->d_buf) : NULL;
}

static void keep(char **to, char *text)
{
    free(*to);
    *to = text;
}

static void entry_take(struct elf_file *file, const GElf_Dyn *entry, uint64_t table)
{
    struct image *image = file->image;
    char *text = NULL;
    switch (entry->d_tag) {
    case DT_NEEDED:
        if ((text = text_at(file, table, entry->d_un.d_val))) strings_add(&image->needed, text);
        free(text);
        break;
    case DT_SONAME: keep(&image->soname, text_at(file, table, entry->d_un.d_val)); break;
    case DT_RPATH: keep(&image->rpath, text_at(file, table, entry->d_un.d_val)); break;
    case DT_RUNPATH: keep(&image->runpath, text_at(file, table, entry->d_un.d_val)); break;
    }
}

/* Twice through: the table of texts may be named last. Returns DT_FLAGS_1. */
static uint64_t entries_take(struct elf_file *file, const GElf_Phdr *part)
{
    Elf_Data *data = elf_getdata_rawchunk(file->elf, (int64_t)part->p_offset, part->p_filesz, ELF_T_DYN);
    uint64_t table = 0, flags = 0;
    GElf_Dyn entry;
    if (!data) return 0;
    for (int i = 0; gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
        if (entry.d_tag == DT_STRTAB) table = entry.d_un.d_ptr;
        if (entry.d_tag == DT_FLAGS_1) flags = entry.d_un.d_val;
    }
    for (int i = 0; gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) entry_take(file, &entry, table);
    return flags;
}

static char *interpreter_of(const struct elf_file *file, const GElf_Phdr *part)
{
    Elf_Data *data = elf_getdata_rawchunk(file->elf, (int64_t)part->p_offset, part->p_filesz, ELF_T_BYTE);
    return data && data->d_buf && memchr(data->d_buf, 0, data->d_size) ? kept(data->d_buf) : NULL;
}

static bool is_named(const char *soname, const char *library)
{
    return soname && !strncmp(soname, library, strlen(library));
}

void dynamic_read(struct elf_file *file)
{
    struct image *image = file->image;
    size_t count = 0;
    uint64_t flags = 0;
    bool interpreted = false;
    elf_getphdrnum(file->elf, &count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr part;
        if (!gelf_getphdr(file->elf, (int)i, &part)) continue;
        if (part.p_type == PT_DYNAMIC) flags = entries_take(file, &part);
        if (part.p_type == PT_INTERP) interpreted = true, keep(&image->interpreter, interpreter_of(file, &part));
    }
    const bool program = file->header.e_type == ET_EXEC || flags & DF_1_PIE || (interpreted && !image->soname);
    image->kind = file->header.e_type == ET_REL ? IMAGE_OBJECT : program ? IMAGE_PROGRAM : IMAGE_LIBRARY;
    image->loaded_by_loader = interpreted || image->kind == IMAGE_LIBRARY;
    image->is_libcuda = is_named(image->soname, "libcuda.so.");
    image->is_cudart = is_named(image->soname, "libcudart.so.");
}
