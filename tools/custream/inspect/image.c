#define _GNU_SOURCE /* memmem, strverscmp, vasprintf */
#include "tools/custream/inspect/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/calls/runtime.h"
#include "tools/custream/command.h"

/* --- lists of texts --- */

bool strings_have(const struct strings *strings, const char *text)
{
    for (size_t i = 0; i < strings->count; i++)
        if (!strcmp(strings->at[i], text)) return true;
    return false;
}

void strings_add(struct strings *strings, const char *text)
{
    if (strings_have(strings, text)) return;
    array_add(strings->at, strings->count, strings->capacity, kept(text));
}

void strings_print(struct strings *strings, const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) out_of_memory();
    va_end(arguments);
    strings_add(strings, text);
    free(text);
}

COMPARES(by_text, char *const, strverscmp(*a, *b))

/* Sorts the texts, numbers in them by value: sm_90 before sm_100. */
static void strings_sort(struct strings *strings)
{
    if (strings->count) qsort(strings->at, strings->count, sizeof *strings->at, by_text);
}

void strings_free(struct strings *strings)
{
    for (size_t i = 0; i < strings->count; i++) free(strings->at[i]);
    free(strings->at);
    *strings = (struct strings){0};
}

/* --- the calls of CUDA, by name --- */

/* #name makes a text before anything expands the name: cuda.h has macros of the same names. */
#define ROWS_ONE(name, level)  {name, level, STREAM_UNSAID},
#define ROWS_PTDS(name, level) {name, level, STREAM_LEGACY}, \
    {name "_ptds", level, STREAM_PER_THREAD},
#define ROWS_PTSZ(name, level) {name, level, STREAM_LEGACY}, \
    {name "_ptsz", level, STREAM_PER_THREAD},

static struct api_call calls[] = {
#define CALL(name, sibling, ...) ROWS_##sibling(#name, API_DRIVER)
#include "shim/calls/calls.def"
#undef CALL
#define RUNTIME(name, sibling, ...) ROWS_##sibling(#name, API_RUNTIME)
#include "shim/calls/runtime.def"
#undef RUNTIME
};
enum { CALLS = sizeof calls / sizeof *calls };

COMPARES(by_name, struct api_call, strcmp(a->name, b->name))

const struct api_call *api_find(const char *name)
{
    static bool sorted;
    const struct api_call wanted = {.name = name};
    if (strncmp(name, "cu", 2) && strncmp(name, "__cu", 4)) return NULL;
    if (!sorted) qsort(calls, CALLS, sizeof *calls, by_name);
    sorted = true;
    return bsearch(&wanted, calls, CALLS, sizeof *calls, by_name);
}

/* --- sections --- */

void sections_each(
    const struct elf_file *file, void (*take)(void *of, const struct section *section), void *of)
{
    struct section section = {.file = file};
    size_t names;
    if (elf_getshdrstrndx(file->elf, &names)) return;
    while ((section.scn = elf_nextscn(file->elf, section.scn))) {
        if (!gelf_getshdr(section.scn, &section.about) || section.about.sh_type == SHT_NOBITS)
            continue;
        const char *name = elf_strptr(file->elf, names, section.about.sh_name);
        const bool content = section.about.sh_type == SHT_PROGBITS;
        const Elf_Data *data = content ? elf_rawdata(section.scn, NULL) : NULL;
        section.name = name ? name : "";
        section.bytes = data ? data->d_buf : NULL;
        section.size = section.bytes ? data->d_size : 0;
        take(of, &section);
    }
}

void image_use(struct image *image, const char *name, enum image_use use)
{
    const struct api_call *call = api_find(name);
    if (!call || strings_have(&image->calls[call->level][use], name)) return;
    strings_add(&image->calls[call->level][use], name);
    if (use != USE_NAMED) image->by_stream[call->stream]++;
}

bool image_touches(const struct image *image)
{
    bool calls = false;
    for (int level = 0; level < API_LEVELS; level++)
        for (int use = 0; use < USES; use++) calls |= image->calls[level][use].count;
    return calls || image->is_libcuda || image->is_cudart || image->carries_cudart ||
           image->names_libcuda || image->names_cudart || image->gpu_code.count;
}

const char *machine_name(unsigned machine, char room[16])
{
    switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "aarch64";
    case EM_386: return "i386";
    case EM_ARM: return "arm";
    case EM_PPC64: return "ppc64";
    case EM_RISCV: return "riscv";
    case EM_S390: return "s390";
    default: snprintf(room, 16, "machine %u", machine); return room;
    }
}

/* --- what the loader reads: by the program headers, since section headers may be missing --- */

enum { TEXT_MOST = 65536 };

/* Finds the address's offset in the file, and how many bytes of its segment follow. */
static bool place_of(
    const struct elf_file *file, uint64_t address, uint64_t *offset, uint64_t *behind)
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

/* Returns a copy of the text at the offset; NULL: it does not end within `most` bytes. */
static char *text_in(const struct elf_file *file, uint64_t offset, size_t most)
{
    Elf_Data *data = elf_getdata_rawchunk(file->elf, (int64_t)offset, most, ELF_T_BYTE);
    return data && data->d_buf && memchr(data->d_buf, 0, data->d_size) ? kept(data->d_buf) : NULL;
}

/* Returns a text of the string table; NULL: its place is outside of the file, or it is longer than
 * TEXT_MOST. */
static char *text_at(const struct elf_file *file, uint64_t table, uint64_t at)
{
    uint64_t offset, behind;
    if (!table || !place_of(file, table + at, &offset, &behind)) return NULL;
    const size_t most = behind < TEXT_MOST ? behind : TEXT_MOST;
    return text_in(file, offset, most);
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

/* Takes the dynamic entries, in two passes: DT_STRTAB may be the last entry. Returns DT_FLAGS_1. */
static uint64_t entries_take(struct elf_file *file, const GElf_Phdr *part)
{
    Elf_Data *data =
        elf_getdata_rawchunk(file->elf, (int64_t)part->p_offset, part->p_filesz, ELF_T_DYN);
    uint64_t table = 0, flags = 0;
    GElf_Dyn entry;
    if (!data) return 0;
    for (int i = 0; gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
        if (entry.d_tag == DT_STRTAB) table = entry.d_un.d_ptr;
        if (entry.d_tag == DT_FLAGS_1) flags = entry.d_un.d_val;
    }
    for (int i = 0; gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
        entry_take(file, &entry, table);
    return flags;
}

static void dynamic_read(struct elf_file *file)
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
        if (part.p_type == PT_INTERP)
            interpreted = true,
            keep(&image->interpreter, text_in(file, part.p_offset, part.p_filesz));
    }
    const bool program =
        file->header.e_type == ET_EXEC || flags & DF_1_PIE || (interpreted && !image->soname);
    image->kind = file->header.e_type == ET_REL ? IMAGE_OBJECT
                  : program                     ? IMAGE_PROGRAM
                                                : IMAGE_LIBRARY;
    image->loaded_by_loader = interpreted || image->kind == IMAGE_LIBRARY;
    image->is_libcuda = image->soname && !strncmp(image->soname, "libcuda.so.", 11);
    image->is_cudart = image->soname && !strncmp(image->soname, "libcudart.so.", 13);
}

/* --- names that the loader binds, and variables named like the driver's functions --- */

static void symbols_section(void *of, const struct section *section)
{
    struct image *image = of;
    const bool table = section->about.sh_type == SHT_SYMTAB;
    GElf_Sym symbol;
    image->has_symbols |= table;
    const bool wanted =
        section->about.sh_type == SHT_DYNSYM || (table && image->kind == IMAGE_OBJECT);
    Elf_Data *data = wanted ? elf_getdata(section->scn, NULL) : NULL;
    for (int i = 1; data && gelf_getsym(data, i, &symbol); i++) {
        const char *called = elf_strptr(section->file->elf, section->about.sh_link, symbol.st_name);
        const struct api_call *call;
        if (!called || !*called) continue;
        if (symbol.st_shndx == SHN_UNDEF) {
            image->opens |= !strcmp(called, "dlopen");
            image->opens_apart |= !strcmp(called, "dlmopen");
            image_use(image, called, USE_IMPORTED);
        } else if (GELF_ST_TYPE(symbol.st_info) == STT_OBJECT &&
                   GELF_ST_BIND(symbol.st_info) == STB_GLOBAL && (call = api_find(called)) &&
                   call->level == API_DRIVER)
            image->own_driver_pointers = true;
    }
}

/* --- texts in read-only data: names to look up, and the mark of a CUDA runtime --- */

/* The name of an error that only the CUDA runtime has. The name stands in two texts, so that the
 * file of custream itself does not have it. */
static const char RUNTIME_MARK[] = "cudaError", RUNTIME_MARK_ENDS[] = "CudartUnloading";

enum { NAME_MOST = 96 };

static bool has_runtime_mark(const char *data, size_t size)
{
    const size_t begins = sizeof RUNTIME_MARK - 1, ends = sizeof RUNTIME_MARK_ENDS - 1;
    const char *const end = data + size;
    for (const char *at = data; (at = memmem(at, (size_t)(end - at), RUNTIME_MARK, begins)); at++)
        if ((size_t)(end - at) >= begins + ends && !memcmp(at + begins, RUNTIME_MARK_ENDS, ends))
            return true;
    return false;
}

/* Whether the section has read-only texts. */
static bool is_of_texts(const struct section *section)
{
    return section->bytes && section->about.sh_flags & SHF_ALLOC &&
           !(section->about.sh_flags & (SHF_WRITE | SHF_EXECINSTR)) &&
           !strstr(section->name, "fatbin");
}

static void names_section(void *of, const struct section *section)
{
    if (!is_of_texts(section)) return;
    const char *at = (const char *)section->bytes, *const end = at + section->size;
    for (; (at = memmem(at, (size_t)(end - at), "\0cu", 3)); at++) {
        const size_t length = strnlen(at + 1, (size_t)(end - at - 1));
        if (length < NAME_MOST && at + 1 + length < end) image_use(of, at + 1, USE_NAMED);
    }
}

static void libraries_section(void *of, const struct section *section)
{
    struct image *image = of;
    const char *bytes = (const char *)section->bytes;
    if (!is_of_texts(section)) return;
    if (has_runtime_mark(bytes, section->size)) image->carries_cudart = !image->is_cudart;
    if (memmem(bytes, section->size, "libcuda.so", 10)) image->names_libcuda = true;
    if (memmem(bytes, section->size, "libcudart.so", 12)) image->names_cudart = true;
}

/* --- the GPUs that the file has code for, from the headers of nvcc's fatbins --- */

/* A fatbin: this header, then entries. Another fatbin may follow at a multiple of 8 bytes. */
struct fatbin_header {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size; /* bytes behind the header */
};
struct entry_header {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t size; /* bytes behind the header */
    uint32_t packed_size, options_at;
    uint16_t minor, major;
    uint32_t gpu; /* 90: sm_90 or compute_90 */
};
enum { FATBIN_MAGIC = 0xba55ed50, ENTRY_PTX = 1, ENTRY_CUBIN = 2, GPU_MOST = 9999 };

static bool fatbin_entry(struct image *image, const unsigned char *at, size_t left, size_t *length)
{
    struct entry_header entry;
    char name[32];
    if (left < sizeof entry) return false;
    memcpy(&entry, at, sizeof entry);
    if (entry.header_size < sizeof entry || entry.header_size > left ||
        entry.size > left - entry.header_size || entry.gpu > GPU_MOST)
        return false;
    *length = entry.header_size + entry.size;
    if (entry.kind == ENTRY_PTX || entry.kind == ENTRY_CUBIN) {
        snprintf(name, sizeof name, entry.kind == ENTRY_PTX ? "compute_%u" : "sm_%u", entry.gpu);
        strings_add(&image->gpu_code, name);
    }
    return true;
}

static bool fatbin_take(struct image *image, const unsigned char *at, size_t left, size_t *length)
{
    struct fatbin_header header;
    if (left < sizeof header) return false;
    memcpy(&header, at, sizeof header);
    if (header.magic != FATBIN_MAGIC || header.header_size < sizeof header ||
        header.header_size > left || header.size > left - header.header_size)
        return false;
    *length = header.header_size + header.size;
    for (size_t done = header.header_size, entry; done < *length; done += entry)
        if (!fatbin_entry(image, at + done, *length - done, &entry)) return false;
    return true;
}

static void fatbins_section(void *of, const struct section *section)
{
    static const uint32_t magic = FATBIN_MAGIC;
    struct image *image = of;
    const unsigned char *at = section->bytes;
    if (strcmp(section->name, ".nv_fatbin") && strcmp(section->name, "__nv_relfatbin")) return;
    for (size_t done = 0, length; at && done + sizeof magic <= section->size; done += length) {
        length = 8;
        if (memcmp(at + done, &magic, sizeof magic)) continue; /* padding between two fatbins */
        if (!fatbin_take(image, at + done, section->size - done, &length))
            image->gpu_code_broken = true, length = 8;
        length = (length + 7) & ~(size_t)7;
    }
}

/* --- the file --- */

static bool begin(struct elf_file *file, int fd, char error[256])
{
    elf_version(EV_CURRENT);
    file->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    const char *why = file->elf ? NULL : elf_errmsg(-1);
    if (!why && elf_kind(file->elf) == ELF_K_AR)
        why = "an archive of object files: inspect the program that it is linked into";
    if (!why && elf_kind(file->elf) != ELF_K_ELF)
        why = "no ELF file: neither a program nor a library";
    if (!why && !gelf_getehdr(file->elf, &file->header)) why = elf_errmsg(-1);
    if (!why && file->header.e_type != ET_EXEC && file->header.e_type != ET_DYN &&
        file->header.e_type != ET_REL)
        why = "an ELF file that is neither a program nor a library";
    if (why) snprintf(error, 256, "%s", why);
    return !why;
}

/* Whether the file is as long as its program and section headers say; false: sets `error`. */
static bool is_whole(const struct elf_file *file, uint64_t size, char error[256])
{
    size_t count = 0;
    const uint64_t sections = file->header.e_shoff,
                   table = (uint64_t)file->header.e_shnum * file->header.e_shentsize;
    bool whole = !elf_getphdrnum(file->elf, &count) && sections <= size && table <= size - sections;
    for (size_t i = 0; whole && i < count; i++) {
        GElf_Phdr part;
        whole = gelf_getphdr(file->elf, (int)i, &part) &&
                (part.p_type != PT_LOAD ||
                    (part.p_filesz <= size && part.p_offset <= size - part.p_filesz));
    }
    if (!whole || (file->header.e_type != ET_REL && !count))
        snprintf(error, 256, "a broken ELF file: it is shorter than its headers say");
    return whole && (file->header.e_type == ET_REL || count);
}

static void parts_read(struct elf_file *file)
{
    struct image *image = file->image;
    size_t sections = 0;
    image->bits = file->header.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
    image->machine = file->header.e_machine;
    dynamic_read(file);
    image->has_sections = !elf_getshdrnum(file->elf, &sections) && sections > 1;
    sections_each(file, symbols_section, image);
    sections_each(file, libraries_section, image);
    /* A CUDA runtime has the names of all functions of the driver, used or not. */
    if (!image->carries_cudart && !image->is_cudart && !image->is_libcuda)
        sections_each(file, names_section, image);
    code_read(file);
    sections_each(file, fatbins_section, image);
    strings_sort(&image->gpu_code);
    for (int level = 0; level < API_LEVELS; level++)
        for (int use = 0; use < USES; use++) strings_sort(&image->calls[level][use]);
}

bool image_read(struct image *image, const char *path, char error[256])
{
    struct stat about;
    struct elf_file file = {.image = image};
    *image = (struct image){.path = kept(path)};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &about)) snprintf(error, 256, "%s", strerror(errno));
    const bool regular = fd >= 0 && S_ISREG(about.st_mode);
    if (fd >= 0 && !regular)
        snprintf(error, 256, "%s", S_ISDIR(about.st_mode) ? "a folder" : "no regular file");
    if (regular && !about.st_size) snprintf(error, 256, "empty");
    const bool good = regular && about.st_size && begin(&file, fd, error) &&
                      is_whole(&file, (uint64_t)about.st_size, error);
    if (good) parts_read(&file);
    elf_end(file.elf);
    if (fd >= 0) close(fd);
    return good;
}

void image_free(struct image *image)
{
    free_all(image->path, image->interpreter, image->soname, image->rpath, image->runpath);
    strings_free(&image->needed);
    strings_free(&image->gpu_code);
    for (int level = 0; level < API_LEVELS; level++)
        for (int use = 0; use < USES; use++) strings_free(&image->calls[level][use]);
    *image = (struct image){0};
}
