/* What GPUs the file has code for: the headers of its fatbins, as nvcc writes them. Code that is packed stays so. */
#include <stdio.h>
#include <string.h>

#include "tools/custream/inspect/parts.h"

/* One fatbin: this, then entries, then perhaps the next one, at a multiple of 8. */
struct fatbin_header {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size; /* behind the header */
};
struct entry_header {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t size; /* behind the header */
    uint32_t packed_size, options_at;
    uint16_t minor, major;
    uint32_t gpu; /* 90 */
};
enum { FATBIN_MAGIC = 0xba55ed50, ENTRY_PTX = 1, ENTRY_CUBIN = 2, GPU_MOST = 9999 };

static bool entry_take(struct image *image, const unsigned char *at, size_t left, size_t *length)
{
    struct entry_header entry;
    char name[32];
    if (left < sizeof entry) return false;
    memcpy(&entry, at, sizeof entry);
    if (entry.header_size < sizeof entry || entry.header_size > left || entry.size > left - entry.header_size || entry.gpu > GPU_MOST) return false;
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
    if (header.magic != FATBIN_MAGIC || header.header_size < sizeof header || header.header_size > left || header.size > left - header.header_size) return false;
    *length = header.header_size + header.size;
    for (size_t done = header.header_size, entry; done < *length; done += entry)
        if (!entry_take(image, at + done, *length - done, &entry)) return false;
    return true;
}

static void section_take(void *of, const struct elf_file *file, Elf_Scn *section, const GElf_Shdr *about, const char *name)
{
    (void)of, (void)about;
    static const uint32_t magic = FATBIN_MAGIC;
    if (strcmp(name, ".nv_fatbin") && strcmp(name, "__nv_relfatbin")) return;
    const Elf_Data *data = elf_rawdata(section, NULL);
    const unsigned char *at = data ? data->d_buf : NULL;
    for (size_t done = 0, length; at && done + sizeof magic <= data->d_size; done += length) {
        length = 8;
        if (memcmp(at + done, &magic, sizeof magic)) continue; /* room between two */
        if (!fatbin_take(file->image, at + done, data->d_size - done, &length)) file->image->gpu_code_broken = true, length = 8;
        length = (length + 7) & ~(size_t)7;
    }
}

void gpu_code_read(struct elf_file *file) { sections_each(file, section_take, NULL); }
