#include "tools/custream/inspect/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/custream/inspect/parts.h"

void sections_each(const struct elf_file *file, void (*take)(void *of, const struct elf_file *file, Elf_Scn *section, const GElf_Shdr *about, const char *name), void *of)
{
    size_t names;
    if (elf_getshdrstrndx(file->elf, &names)) return;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
        GElf_Shdr about;
        if (!gelf_getshdr(section, &about) || about.sh_type == SHT_NOBITS) continue;
        const char *name = elf_strptr(file->elf, names, about.sh_name);
        take(of, file, section, &about, name ? name : "");
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
    return calls || image->is_libcuda || image->is_cudart || image->carries_cudart || image->names_libcuda || image->names_cudart || image->gpu_code.count;
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

static const char *refusal(const struct elf_file *file)
{
    if (elf_kind(file->elf) == ELF_K_AR) return "an archive of object files: inspect the program that it is linked into";
    if (elf_kind(file->elf) != ELF_K_ELF) return "no ELF file: neither a program nor a library";
    return NULL;
}

static bool begin(struct elf_file *file, int fd, char error[256])
{
    elf_version(EV_CURRENT);
    file->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    const char *why = file->elf ? refusal(file) : elf_errmsg(-1);
    if (!why && !gelf_getehdr(file->elf, &file->header)) why = elf_errmsg(-1);
    if (!why && file->header.e_type != ET_EXEC && file->header.e_type != ET_DYN && file->header.e_type != ET_REL) why = "an ELF file that is neither a program nor a library";
    if (why) snprintf(error, 256, "%s", why);
    return !why;
}

/* What the program headers, or the section headers, say has to be in the file. */
static bool is_whole(const struct elf_file *file, uint64_t size, char error[256])
{
    size_t count = 0;
    const uint64_t sections = file->header.e_shoff, table = (uint64_t)file->header.e_shnum * file->header.e_shentsize;
    bool whole = !elf_getphdrnum(file->elf, &count) && sections <= size && table <= size - sections;
    for (size_t i = 0; whole && i < count; i++) {
        GElf_Phdr part;
        whole = gelf_getphdr(file->elf, (int)i, &part) && (part.p_type != PT_LOAD || (part.p_filesz <= size && part.p_offset <= size - part.p_filesz));
    }
    if (!whole || (file->header.e_type != ET_REL && !count)) snprintf(error, 256, "a broken ELF file: it is shorter than its headers say");
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
    symbols_read(file);
    texts_read(file);
    code_read(file);
    gpu_code_read(file);
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
    if (fd >= 0 && !regular) snprintf(error, 256, "%s", S_ISDIR(about.st_mode) ? "a folder" : "no regular file");
    if (regular && !about.st_size) snprintf(error, 256, "empty");
    const bool good = regular && about.st_size && begin(&file, fd, error) && is_whole(&file, (uint64_t)about.st_size, error);
    if (good) parts_read(&file);
    elf_end(file.elf);
    if (fd >= 0) close(fd);
    return good;
}

void image_free(struct image *image)
{
    free(image->path);
    free(image->interpreter);
    free(image->soname);
    free(image->rpath);
    free(image->runpath);
    strings_free(&image->needed);
    strings_free(&image->gpu_code);
    for (int level = 0; level < API_LEVELS; level++)
        for (int use = 0; use < USES; use++) strings_free(&image->calls[level][use]);
    *image = (struct image){0};
}
