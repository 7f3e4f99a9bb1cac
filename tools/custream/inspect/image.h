/* What one ELF file tells of how its code comes to CUDA. Nothing of it is run. */
#ifndef CS_INSPECT_IMAGE_H
#define CS_INSPECT_IMAGE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list of texts of its own, each once, in the order in which they came. */
struct strings {
    char **at;
    size_t count, capacity;
};

bool strings_have(const struct strings *strings, const char *text);
void strings_add(struct strings *strings, const char *text);
/* Numbers in them by their value: sm_90, sm_100. */
void strings_sort(struct strings *strings);
void strings_free(struct strings *strings);

/* strdup that ends the process where there is no memory; NULL of NULL. */
char *kept(const char *text);

/* The calls of CUDA that custream knows, by name, from the tables that the library is made of. */
enum api_level { API_DRIVER, API_RUNTIME, API_LEVELS };

/* What the name says of the default stream that it means. */
enum api_stream {
    STREAM_UNSAID /* there is one form of it */,
    STREAM_LEGACY,
    STREAM_PER_THREAD /* _ptds, _ptsz */
};

struct api_call {
    const char *name;
    enum api_level level;
    enum api_stream stream;
};

/* NULL: custream knows no such call. */
const struct api_call *api_find(const char *name);

enum image_kind { IMAGE_PROGRAM, IMAGE_LIBRARY, IMAGE_OBJECT /* .o, not linked yet */ };

/* How a name of the API stands in the file. */
enum image_use {
    USE_IMPORTED, /* the loader binds it */
    USE_CALLED,   /* linked in, and called by code that is not the CUDA runtime's own */
    USE_NAMED,    /* as a text, to be looked up */
    USES
};

struct image {
    char *path; /* as it was found */
    enum image_kind kind;
    unsigned bits, machine; /* 32 or 64; EM_X86_64, ... */
    bool loaded_by_loader; /* has an interpreter: what reads LD_PRELOAD; always true of a library */
    char *interpreter, *soname, *rpath, *runpath;
    struct strings needed; /* DT_NEEDED */
    bool has_sections;     /* false: nothing below is known */
    bool has_symbols;      /* not stripped */

    bool is_libcuda, is_cudart;       /* by its SONAME */
    bool carries_cudart;              /* a CUDA runtime is linked into it */
    unsigned cudart_version;          /* of the runtime in it: 13000 is 13.0; 0: not known */
    bool opens, opens_apart;          /* imports dlopen, dlmopen */
    bool names_libcuda, names_cudart; /* as texts: what it may open */
    bool own_driver_pointers;         /* defines variables named as the driver's functions */
    struct strings calls[API_LEVELS][USES];
    size_t by_stream[STREAM_PER_THREAD +
                     1];     /* calls imported or called, by the default stream that they mean */
    struct strings gpu_code; /* "sm_90", "PTX 75" */
    bool gpu_code_broken;    /* and perhaps more that could not be read */
};

/* False: error says why it cannot be read, in one line. image_free() in either case. */
bool image_read(struct image *image, const char *path, char error[256]);
void image_free(struct image *image);

/* It has to do with CUDA in some way of its own. */
bool image_touches(const struct image *image);
/* Of the machine: "x86-64"; a number for others. */
const char *machine_name(unsigned machine, char room[16]);

/* --- between image.c and code.c: the open file --- */

struct elf_file {
    Elf *elf;
    GElf_Ehdr header;
    struct image *image;
};

/* Calls `take` for each section with content in the file. */
void sections_each(const struct elf_file *file,
    void (*take)(void *of, const struct elf_file *file, Elf_Scn *section, const GElf_Shdr *about,
        const char *name),
    void *of);

void code_read(struct elf_file *file); /* calls of a runtime that is linked in, and its version */

/* A use of a name, if it is one of the API's. */
void image_use(struct image *image, const char *name, enum image_use use);

#endif
