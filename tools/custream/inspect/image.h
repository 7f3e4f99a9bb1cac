/* Reads from an ELF file how its code reaches CUDA. Runs none of the code. */
#ifndef CS_INSPECT_IMAGE_H
#define CS_INSPECT_IMAGE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list that owns its texts. It has each text once, in the order of strings_add(). */
struct strings {
    char **at;
    size_t count, capacity;
};

/* Whether the text is in the list. */
bool strings_have(const struct strings *strings, const char *text);
void strings_add(struct strings *strings, const char *text);
void strings_print(struct strings *strings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void strings_free(struct strings *strings);

/* The calls of CUDA that custream knows, from the tables that the library is made of. */
enum api_level { API_DRIVER, API_RUNTIME, API_LEVELS };

/* The default stream that a call's name means. */
enum api_stream {
    STREAM_UNSAID /* the call has one form only */,
    STREAM_LEGACY,
    STREAM_PER_THREAD /* _ptds, _ptsz */
};

struct api_call {
    const char *name;
    enum api_level level;
    enum api_stream stream;
};

/* Returns the call of that name; NULL: custream knows no such call. */
const struct api_call *api_find(const char *name);

enum image_kind { IMAGE_PROGRAM, IMAGE_LIBRARY, IMAGE_OBJECT /* .o, not linked yet */ };

/* The ways in which a file uses a name of the API. */
enum image_use {
    USE_IMPORTED, /* the loader binds the name */
    USE_CALLED,   /* the function is linked in, and code other than the CUDA runtime calls it */
    USE_NAMED,    /* the name is a text in the file, perhaps for dlsym() */
    USES
};

struct image {
    char *path; /* the path at which the file was found */
    enum image_kind kind;
    unsigned bits, machine; /* 32 or 64; EM_X86_64, ... */
    bool loaded_by_loader;  /* the loader loads the file and reads LD_PRELOAD; true for each library
                             */
    char *interpreter, *soname, *rpath, *runpath;
    struct strings needed; /* DT_NEEDED */
    bool has_sections; /* false: of the members below, only is_libcuda and is_cudart are known */
    bool has_symbols;  /* not stripped */

    bool is_libcuda, is_cudart; /* by the SONAME */
    bool carries_cudart;        /* a CUDA runtime is linked into the file */
    unsigned cudart_version;    /* the version of that runtime: 13000 is 13.0; 0: not known */
    bool opens, opens_apart; /* opens: the file imports dlopen; opens_apart: it imports dlmopen */
    /* the file has the library's name as a text, so it may open the library */
    bool names_libcuda, names_cudart;
    bool own_driver_pointers; /* the file defines variables named like the driver's functions */
    struct strings calls[API_LEVELS][USES];
    /* by enum api_stream: how many different calls are imported or called */
    size_t by_stream[STREAM_PER_THREAD + 1];
    struct strings gpu_code; /* "sm_90", "compute_75" (PTX) */
    bool gpu_code_broken;    /* some GPU code could not be read: gpu_code may not have all */
};

/* False: `error` says why the file cannot be read. Needs image_free() in either case. */
bool image_read(struct image *image, const char *path, char error[256]);
void image_free(struct image *image);

/* Whether the file itself uses CUDA or is a part of it; the libraries that it needs do not
 * count. */
bool image_touches(const struct image *image);
/* Returns the machine's name, such as "x86-64"; for others "machine NUMBER", in `room`. */
const char *machine_name(unsigned machine, char room[16]);

/* --- the open file, for image.c and code.c --- */

struct elf_file {
    Elf *elf;
    GElf_Ehdr header;
    struct image *image;
};

/* A section that has content in the file. */
struct section {
    const struct elf_file *file;
    Elf_Scn *scn;
    GElf_Shdr about;
    const char *name;
    const unsigned char *bytes; /* the content of SHT_PROGBITS; or NULL */
    size_t size;
};
void sections_each(
    const struct elf_file *file, void (*take)(void *of, const struct section *section), void *of);

/* Finds the calls of a CUDA runtime that is linked in, and the runtime's version. */
void code_read(struct elf_file *file);

/* Notes a use of the name if a call of the API has that name. */
void image_use(struct image *image, const char *name, enum image_use use);

#endif
