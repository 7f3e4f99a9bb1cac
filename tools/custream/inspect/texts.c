/* Texts in data that is only read: libraries and functions that the code may look up by name, and the mark of a CUDA runtime. */
#define _GNU_SOURCE /* memmem */
#include <string.h>

#include "tools/custream/inspect/parts.h"

/* A name of an error that only the CUDA runtime has a text for. It is there whether or not the file is stripped. In two pieces, so that this command has none. */
static const char RUNTIME_MARK[] = "cudaError", RUNTIME_MARK_ENDS[] = "CudartUnloading";

enum { NAME_MOST = 96 };

static bool has(const char *data, size_t size, const char *text) { return memmem(data, size, text, strlen(text)); }

static bool has_runtime_mark(const char *data, size_t size)
{
    const size_t begins = sizeof RUNTIME_MARK - 1, ends = sizeof RUNTIME_MARK_ENDS - 1;
    const char *const end = data + size;
    for (const char *at = data; (at = memmem(at, (size_t)(end - at), RUNTIME_MARK, begins)); at++)
        if ((size_t)(end - at) >= begins + ends && !memcmp(at + begins, RUNTIME_MARK_ENDS, ends)) return true;
    return false;
}

static void names_take(struct image *image, const char *data, size_t size)
{
    const char *const end = data + size;
    for (const char *at = data; (at = memmem(at, (size_t)(end - at), "\0cu", 3)); at++) {
        const size_t length = strnlen(at + 1, (size_t)(end - at - 1));
        if (length < NAME_MOST && at + 1 + length < end) image_use(image, at + 1, USE_NAMED);
    }
}

static void section_take(void *of, const struct elf_file *file, Elf_Scn *section, const GElf_Shdr *about, const char *name)
{
    struct image *image = file->image;
    const bool names = of; /* whether the second time */
    if (about->sh_type != SHT_PROGBITS || !(about->sh_flags & SHF_ALLOC) || about->sh_flags & (SHF_WRITE | SHF_EXECINSTR) || strstr(name, "fatbin")) return;
    const Elf_Data *data = elf_rawdata(section, NULL);
    if (!data || !data->d_buf) return;
    if (names) {
        names_take(image, data->d_buf, data->d_size);
        return;
    }
    if (has_runtime_mark(data->d_buf, data->d_size)) image->carries_cudart = !image->is_cudart;
    if (has(data->d_buf, data->d_size, "libcuda.so")) image->names_libcuda = true;
    if (has(data->d_buf, data->d_size, "libcudart.so")) image->names_cudart = true;
}

/* A CUDA runtime has all names of the driver in it, which say nothing of who uses it. */
void texts_read(struct elf_file *file)
{
    struct image *image = file->image;
    sections_each(file, section_take, NULL);
    if (!image->carries_cudart && !image->is_cudart && !image->is_libcuda) sections_each(file, section_take, image);
}
