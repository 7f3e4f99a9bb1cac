/* Streams and events that came by a way that no preload sees: the program reads libcuda's symbol
 * table in memory and calls what it finds. adopt destroy: destroys the one that it has not used,
 * too. adopt context: a context came by that way before. */
#include "tests/apps/app.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>

struct search {
    const char *name;
    void *found;
};

static uintptr_t table_address(const struct dl_phdr_info *info, uintptr_t value)
{
    return value < info->dlpi_addr ? info->dlpi_addr + value : value;
}

static uint32_t symbol_count(const uint32_t *table)
{
    uint32_t buckets = table[0], offset = table[1], bloom = table[2], last = 0;
    const uint32_t *bucket = table + 4 + bloom * (sizeof(ElfW(Addr)) / 4),
                   *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++)
        if (bucket[i] > last) last = bucket[i];
    if (last < offset) return offset;
    while (!(chain[last - offset] & 1)) last++;
    return last + 1;
}

static int look_into(struct dl_phdr_info *info, size_t size, void *data)
{
    struct search *s = data;
    const ElfW(Dyn) *dyn = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL, *base = strrchr(info->dlpi_name, '/');
    uint32_t count = 0;
    (void)size;
    if (strncmp(base ? base + 1 : info->dlpi_name, "libcuda.so", 10)) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dyn = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
        uintptr_t at = table_address(info, dyn->d_un.d_ptr);
        if (dyn->d_tag == DT_SYMTAB) symbols = (const ElfW(Sym) *)at;
        if (dyn->d_tag == DT_STRTAB) strings = (const char *)at;
        if (dyn->d_tag == DT_GNU_HASH) count = symbol_count((const uint32_t *)at);
        if (dyn->d_tag == DT_HASH && !count) count = ((const uint32_t *)at)[1];
    }
    for (uint32_t i = 1; symbols && strings && i < count; i++)
        if (symbols[i].st_shndx != SHN_UNDEF && !strcmp(strings + symbols[i].st_name, s->name))
            s->found = (void *)(info->dlpi_addr + symbols[i].st_value);
    return s->found != NULL;
}

static void *real_symbol(const char *name)
{
    struct search s = {name, NULL};
    dl_iterate_phdr(look_into, &s);
    if (!s.found) exit(7);
    return s.found;
}

int main(int argc, char **argv)
{
    CUstream plain, urgent, unused;
    CUevent event;
    app_start(0);
    CUfunction empty = app_kernel("empty_kernel");
    if (argc > 1 && !strcmp(argv[1], "context")) {
        CUcontext unseen;
        CUstream there;
        if (((__typeof__(&cuCtxCreate_v4))real_symbol("cuCtxCreate_v4"))(&unseen, NULL, 0, 0))
            return 1;
        OK(cuCtxSetCurrent, unseen);
        OK(cuStreamCreate, &there, CU_STREAM_DEFAULT);
        LAUNCH(empty, NULL);
        OK(cuStreamDestroy_v2, there);
        OK(cuCtxSetCurrent, app_context);
    }
    __typeof__(&cuStreamCreate) create = (__typeof__(&cuStreamCreate))real_symbol("cuStreamCreate");
    __typeof__(&cuStreamCreateWithPriority) create_priority =
        (__typeof__(&cuStreamCreateWithPriority))real_symbol("cuStreamCreateWithPriority");
    __typeof__(&cuEventCreate) create_event =
        (__typeof__(&cuEventCreate))real_symbol("cuEventCreate");
    if (create(&plain, CU_STREAM_DEFAULT) || create_priority(&urgent, CU_STREAM_NON_BLOCKING, -4) ||
        create(&unused, 0) || create_event(&event, 0))
        return 1;
    NOTE("plain", "%p", (void *)plain);
    NOTE("urgent", "%p", (void *)urgent);
    NOTE("unused", "%p", (void *)unused);
    for (int i = 0; i < 6; i++) LAUNCH(empty, plain);
    SAY(cuStreamQuery,
        (CUstream)(size_t)0xdeadbeef0); /* a handle that the driver refuses is nobody's stream */
    OK(cuEventRecord, event, urgent);
    OK(cuStreamWaitEvent, plain, event, 0);
    OK(cuStreamSynchronize, plain);
    OK(cuStreamDestroy_v2, plain);
    OK(cuStreamDestroy_v2, urgent);
    if (argc > 1 && !strcmp(argv[1], "destroy")) OK(cuStreamDestroy_v2, unused);
    OK(cuEventDestroy_v2, event);
    app_report();
    return 0;
}
