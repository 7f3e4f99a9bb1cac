/*
 * libcupti_count.so: what CUPTI says the program called. Preloaded beside the shim, it is the
 * second opinion that the trace is compared with.
 *
 * It subscribes to CUPTI's driver-API callbacks before the program's first line, counts each call
 * by its exact symbol, and writes
 * {"calls": {name: count}, "nested": {name: count}, "own": {name: count}} to CUPTI_COUNT_OUT (%p is
 * the pid) when the process ends. "nested" are calls that arrived while the same thread was inside
 * another one: made by the driver or by CUPTI, not by the program. "own" are the shim's own
 * questions to the driver, told by the stack: the driver was entered from the shim, and not from
 * the sections in which its wrappers stand.
 *
 * CUPTI_COUNT_LIB is the libcupti to open; a program that links one gets this same instance, since
 * the loader goes by the soname. The shim knows nothing of this library: it never calls CUPTI from
 * here, and this calls no driver function.
 */
#define _GNU_SOURCE /* _dl_find_object, struct link_map */
#include <cupti.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unwind.h>

enum { MAX_ID = 4096 };

static _Atomic uint64_t calls[MAX_ID], nested[MAX_ID], own[MAX_ID]; /* by callback id, any thread */
static const char *names[MAX_ID]; /* written once by start(), before any callback */
static _Atomic int finished; /* our destructor has run: what comes now is written out at once */
static atomic_flag writing = ATOMIC_FLAG_INIT;
static pid_t owner; /* a forked child has our counts but is not the program */

/* Initial-exec: a callback may come while a thread's dynamic TLS is being torn down. */
static _Thread_local int depth __attribute__((tls_model("initial-exec")));

static void expand(char *to, size_t size, const char *path)
{
    const char *mark = strstr(path, "%p");
    if (mark) snprintf(to, size, "%.*s%d%s", (int)(mark - path), path, (int)getpid(), mark + 2);
    else snprintf(to, size, "%s", path);
}

static void write_counts(int fd, const char *key, _Atomic uint64_t *counts, const char *end)
{
    const char *separator = "";
    dprintf(fd, "\"%s\": {", key);
    for (int i = 0; i < MAX_ID; i++) {
        uint64_t n = atomic_load(&counts[i]);
        if (!n) continue;
        if (names[i]) dprintf(fd, "%s\n  \"%s\": %llu", separator, names[i], (unsigned long long)n);
        else dprintf(fd, "%s\n  \"callback %d\": %llu", separator, i, (unsigned long long)n);
        separator = ",";
    }
    dprintf(fd, "}%s\n", end);
}

static void write_file(void)
{
    char path[4096];
    const char *out = getenv("CUPTI_COUNT_OUT");
    uint64_t total = 0;
    for (int i = 0; i < MAX_ID; i++) total += atomic_load(&calls[i]);
    /* Helpers that a program starts (compilers, shells) are preloaded too: a process without calls
     * leaves no file. */
    if (!out || !*out || !total || getpid() != owner) return;
    while (atomic_flag_test_and_set(&writing)) continue;
    expand(path, sizeof path, out);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd >= 0) {
        dprintf(fd, "{");
        write_counts(fd, "calls", calls, ",");
        write_counts(fd, "nested", nested, ",");
        write_counts(fd, "own", own, "}");
        close(fd);
    }
    atomic_flag_clear(&writing);
}

/* The sections of the shim's file that hold the code of its wrappers, as offsets from its base. */
static struct {
    uintptr_t from, behind;
} wrappers[4];
static unsigned wrapper_sections;

static void read_sections(const char *file, size_t size)
{
    const ElfW(Ehdr) *head = (const void *)file;
    if (size < sizeof *head || !head->e_shnum ||
        head->e_shoff + head->e_shnum * sizeof(ElfW(Shdr)) > size)
        return;
    const ElfW(Shdr) *section = (const void *)(file + head->e_shoff);
    const char *section_names = file + section[head->e_shstrndx].sh_offset;
    for (unsigned i = 0; i < head->e_shnum && wrapper_sections < 4; i++) {
        if (strncmp(section_names + section[i].sh_name, "cs_wrappers", 11)) continue;
        wrappers[wrapper_sections].from = section[i].sh_addr;
        wrappers[wrapper_sections++].behind = section[i].sh_addr + section[i].sh_size;
    }
}

static int find_wrappers(struct dl_phdr_info *info, size_t length, void *unused)
{
    struct stat status;
    (void)length, (void)unused;
    if (!strstr(info->dlpi_name, "/libcustream_shim")) return 0;
    int fd = open(info->dlpi_name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status)) return 1;
    char *file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (file == MAP_FAILED) return 1;
    read_sections(file, (size_t)status.st_size);
    munmap(file, (size_t)status.st_size);
    return 1;
}

static int is_wrapper(uintptr_t offset)
{
    for (unsigned i = 0; i < wrapper_sections; i++)
        if (offset >= wrappers[i].from && offset < wrappers[i].behind) return 1;
    return 0;
}

/* The first frame outside the driver and CUPTI is the one that made the call. */
static _Unwind_Reason_Code visit(struct _Unwind_Context *frame, void *data)
{
    int *own = data;
    struct dl_find_object object;
    void *at = (void *)(_Unwind_GetIP(frame) - 1);
    if (_dl_find_object(at, &object)) return _URC_END_OF_STACK;
    const char *slash = strrchr(object.dlfo_link_map->l_name, '/'),
               *name = slash ? slash + 1 : object.dlfo_link_map->l_name;
    if (!strncmp(name, "libcuda.so", 10) || !strncmp(name, "libcupti", 8)) return _URC_NO_REASON;
    if (!strncmp(name, "libcustream_shim", 16))
        *own = !is_wrapper((uintptr_t)at - object.dlfo_link_map->l_addr);
    return _URC_END_OF_STACK;
}

static int is_own(void)
{
    int own = 0;
    _Unwind_Backtrace(visit, &own);
    return own;
}

static void on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    const CUpti_CallbackData *call = data;
    (void)user;
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API || id >= MAX_ID) return;
    if (call->callbackSite == CUPTI_API_EXIT) {
        if (depth) depth--;
        return;
    }
    atomic_fetch_add_explicit(depth++    ? &nested[id]
                              : is_own() ? &own[id]
                                         : &calls[id],
        1, memory_order_relaxed);
    /* Libraries call the driver from their own destructors, after ours: count those too. */
    if (atomic_load_explicit(&finished, memory_order_relaxed)) write_file();
}

static void *open_cupti(void)
{
    const char *path = getenv("CUPTI_COUNT_LIB");
    void *lib = path && *path ? dlopen(path, RTLD_NOW) : NULL;
    if (!lib) lib = dlopen("libcupti.so.13", RTLD_NOW);
    if (!lib) lib = dlopen("libcupti.so.12", RTLD_NOW);
    return lib;
}

static void start(void)
{
    static CUpti_SubscriberHandle subscriber;
    if (owner || !getenv("CUPTI_COUNT_OUT")) return;
    owner = getpid();
    dl_iterate_phdr(find_wrappers, NULL);
    void *lib = open_cupti();
    if (!lib) {
        fprintf(stderr, "cupti_count: %s\n", dlerror());
        return;
    }
    __typeof__(&cuptiSubscribe) subscribe =
        (__typeof__(&cuptiSubscribe))dlsym(lib, "cuptiSubscribe");
    __typeof__(&cuptiEnableDomain) enable =
        (__typeof__(&cuptiEnableDomain))dlsym(lib, "cuptiEnableDomain");
    __typeof__(&cuptiGetCallbackName) name =
        (__typeof__(&cuptiGetCallbackName))dlsym(lib, "cuptiGetCallbackName");
    if (!subscribe || !enable || !name) {
        fprintf(stderr, "cupti_count: libcupti lacks the callback calls\n");
        return;
    }
    for (unsigned i = 1; i < MAX_ID; i++)
        if (name(CUPTI_CB_DOMAIN_DRIVER_API, i, &names[i]) != CUPTI_SUCCESS) names[i] = NULL;
    CUptiResult rc = subscribe(&subscriber, on_call, NULL);
    if (rc == CUPTI_SUCCESS) rc = enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
    if (rc != CUPTI_SUCCESS) fprintf(stderr, "cupti_count: subscribing: error %d\n", (int)rc);
}

__attribute__((constructor)) static void at_load(void) { start(); }

__attribute__((destructor)) static void at_unload(void)
{
    write_file();
    atomic_store(&finished, 1);
}

/* The driver calls this at cuInit when CUDA_INJECTION64_PATH names this library: the other way in,
 * should a preload be too early. */
__attribute__((visibility("default"))) int InitializeInjection(void)
{
    start();
    return 1;
}
