/* Finds the calls of a CUDA runtime that is linked into the file. A call is a jump in machine code
 * to one of the runtime's functions, from code that is not the runtime's. The file needs
 * symbols. */

#include "tools/custream/command.h"
#include "tools/custream/inspect/image.h"

struct function {
    uint64_t begin, end;
    const char *name;
    bool runtime; /* the function belongs to the CUDA runtime (its API or its internals) */
};

struct functions {
    struct function *at;
    size_t count, capacity;
};

static void functions_take(void *of, const struct section *section)
{
    struct functions *functions = of;
    GElf_Sym symbol;
    const bool table = section->about.sh_type == SHT_SYMTAB;
    Elf_Data *data = table ? elf_getdata(section->scn, NULL) : NULL;
    for (int i = 1; data && gelf_getsym(data, i, &symbol); i++) {
        const char *name = elf_strptr(section->file->elf, section->about.sh_link, symbol.st_name);
        if (!name || symbol.st_shndx == SHN_UNDEF || GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
            continue;
        const bool runtime = !strncmp(name, "libcudart_static_", 17) || !strncmp(name, "cuda", 4) ||
                             !strncmp(name, "__cuda", 6);
        array_add(functions->at, functions->count, functions->capacity,
            (struct function){symbol.st_value, symbol.st_value + symbol.st_size, name, runtime});
    }
}

COMPARES(by_begin, struct function, ORDER(a->begin, b->begin))

/* Returns the last function that begins at or before the address; NULL: none does. */
static const struct function *function_at(const struct functions *functions, uint64_t address)
{
    const size_t behind = FIRST_NOT(i, 0, functions->count, functions->at[i].begin <= address);
    return behind ? &functions->at[behind - 1] : NULL;
}

static void jump_take(
    struct image *image, const struct functions *functions, uint64_t from, uint64_t to)
{
    const struct function *called = function_at(functions, to),
                          *caller = function_at(functions, from);
    if (!called || called->begin != to || !called->runtime) return;
    if (!caller || !caller->runtime || from >= caller->end)
        image_use(image, called->name, USE_CALLED);
}

static bool is_code(const struct section *section)
{
    return section->bytes && section->about.sh_flags & SHF_EXECINSTR;
}

/* x86-64: finds call and jmp with a distance of 32 bits. */
static void x86_scan(void *of, const struct section *section)
{
    const unsigned char *code = section->bytes;
    for (size_t i = 0; is_code(section) && i + 5 <= section->size; i++) {
        const uint64_t address = section->about.sh_addr + i;
        int32_t distance;
        if (code[i] != 0xe8 && code[i] != 0xe9) continue;
        memcpy(&distance, code + i + 1, sizeof distance);
        jump_take(section->file->image, of, address, address + 5 + (uint64_t)(int64_t)distance);
    }
}

/* aarch64: finds BL and B. */
static void arm_scan(void *of, const struct section *section)
{
    for (size_t i = 0; is_code(section) && i + 4 <= section->size; i += 4) {
        const uint64_t address = section->about.sh_addr + i;
        uint32_t word;
        memcpy(&word, section->bytes + i, sizeof word);
        if ((word & 0x7c000000) != 0x14000000) continue;
        const int64_t distance = (int64_t)((uint64_t)(word & 0x03ffffff) << 38) >> 36;
        jump_take(section->file->image, of, address, address + (uint64_t)distance);
    }
}

/* --- the runtime's version --- */

enum { VERSION_LEAST = 5000, VERSION_MOST = 30000, VERSIONS = (VERSION_MOST - VERSION_LEAST) / 10 };

struct versions {
    unsigned stored[VERSIONS], passed[VERSIONS];
};

static unsigned *version_at(unsigned *counts, const unsigned char *number)
{
    uint32_t value;
    memcpy(&value, number, sizeof value);
    const bool likely =
        value >= VERSION_LEAST && value < VERSION_MOST && value % 10 == 0 && value % 1000 < 100;
    return likely ? &counts[(value - VERSION_LEAST) / 10] : NULL;
}

/* Counts numbers that may be the version: cudaRuntimeGetVersion() stores it, driver calls pass
 * it. */
static void version_take(void *of, const struct section *section)
{
    struct versions *versions = of;
    const unsigned char *code = section->bytes;
    if (!is_code(section) || section->file->header.e_machine != EM_X86_64) return;
    for (size_t i = 0; i + 6 <= section->size; i++) {
        unsigned *count = NULL;
        if (code[i] == 0xc7 && code[i + 1] == 0x07)
            count = version_at(versions->stored, code + i + 2);
        else if (code[i] == 0xba) count = version_at(versions->passed, code + i + 1);
        if (count) ++*count;
    }
}

void code_read(struct elf_file *file)
{
    struct image *image = file->image;
    struct functions functions = {0};
    if (!image->carries_cudart && !image->is_cudart) return;
    struct versions *versions = array_zeros(1, sizeof *versions);
    unsigned most = 1;
    sections_each(file, version_take, versions);
    for (unsigned i = 0; i < VERSIONS; i++)
        if (versions->stored[i] && versions->passed[i] > most)
            image->cudart_version = VERSION_LEAST + 10 * i, most = versions->passed[i];
    free(versions);
    if (!image->carries_cudart) return;
    sections_each(file, functions_take, &functions);
    if (functions.count) {
        qsort(functions.at, functions.count, sizeof *functions.at, by_begin);
        if (file->header.e_machine == EM_X86_64) sections_each(file, x86_scan, &functions);
        if (file->header.e_machine == EM_AARCH64) sections_each(file, arm_scan, &functions);
    }
    free(functions.at);
}
