/* The open file of an image, for the parts that read it. */
#ifndef CS_INSPECT_PARTS_H
#define CS_INSPECT_PARTS_H

#include <gelf.h>

#include "tools/custream/inspect/image.h"

struct elf_file {
    Elf *elf;
    GElf_Ehdr header;
    struct image *image;
};

/* Calls `take` for each section with content in the file. */
void sections_each(const struct elf_file *file, void (*take)(void *of, const struct elf_file *file, Elf_Scn *section, const GElf_Shdr *about, const char *name), void *of);

void dynamic_read(struct elf_file *file);  /* interpreter, SONAME, needed, search paths */
void symbols_read(struct elf_file *file);  /* imports, variables of the driver's names */
void texts_read(struct elf_file *file);    /* names as texts, a CUDA runtime */
void code_read(struct elf_file *file);     /* calls of a runtime that is linked in, and its version */
void gpu_code_read(struct elf_file *file); /* fatbins */

/* A use of a name, if it is one of the API's. */
void image_use(struct image *image, const char *name, enum image_use use);

#endif
