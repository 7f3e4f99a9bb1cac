#define _GNU_SOURCE
#include "shim/base/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* glibc's struct dl_find_object, from 2.35 on. Looked up at run time, since the library also runs with older ones. It takes no lock. */
struct found_object {
    unsigned long long flags;
    void *begin, *end;
    struct link_map *map;
    void *frames; /* how to unwind its functions: a place in it */
    void *rest[11];
};
typedef int find_object_fn(void *address, struct found_object *found);
static find_object_fn *_Atomic find_object;

/* Two threads may look at once: each finds the same. */
static void look(void)
{
    static _Atomic bool looked;
    if (CS_LIKELY(cs_load_acq(&looked))) return;
    cs_store(&find_object, (find_object_fn *)cs_glibc_symbol("_dl_find_object"));
    cs_store_rel(&looked, true);
}

struct wanted {
    uintptr_t address;
    struct cs_module *module;
};

static int holds(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct wanted *wanted = data;
    bool inside = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && wanted->address - (info->dlpi_addr + p->p_vaddr) < p->p_memsz) inside = true;
    }
    if (inside) *wanted->module = (struct cs_module){info->dlpi_addr, cs_object_dynamic(info), info->dlpi_name};
    return inside;
}

bool cs_module_of(const void *address, struct cs_module *module)
{
    struct found_object object;
    if (!address) return false;
    look();
    find_object_fn *find = cs_load(&find_object);
    if (CS_LIKELY(find)) {
        if (find((void *)address, &object) || !object.map) return false;
        *module = (struct cs_module){object.map->l_addr, object.map->l_ld, object.map->l_name};
        return true;
    }
    struct wanted wanted = {(uintptr_t)address, module}; /* before glibc 2.35 */
    return cs_objects_each(holds, &wanted);
}

bool cs_module_is_same(const void *a, const void *b)
{
    struct cs_module of_a, of_b;
    return cs_module_of(a, &of_a) && cs_module_of(b, &of_b) && of_a.dynamic == of_b.dynamic;
}

bool cs_module_is_own(const struct cs_module *module) { return module->dynamic == _DYNAMIC; }

const char *cs_module_path(const struct cs_module *module)
{
    if (*module->name) return module->name;
    return program_invocation_name ? program_invocation_name : "";
}

const char *cs_module_file(const struct cs_module *module)
{
    const char *path = cs_module_path(module), *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Looked at first: a dlopen that fails would cost more than that. */
void *cs_open_beside(const void *address, const char *file)
{
    struct cs_module module;
    char path[PATH_MAX];
    const char *own = cs_module_of(address, &module) ? cs_module_path(&module) : "", *slash = strrchr(own, '/');
    if (!slash || snprintf(path, sizeof path, "%.*s/%s", (int)(slash - own), own, file) >= (int)sizeof path || access(path, R_OK)) return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

bool cs_is_no_file(const char *path)
{
    struct stat about;
    return strchr(path, '/') && !stat(path, &about) && !S_ISREG(about.st_mode);
}

bool cs_module_stays(const void *address)
{
    struct cs_module module;
    return cs_module_of(address, &module) && dlopen(cs_module_path(&module), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

bool cs_module_image(const struct cs_module *module, struct cs_image *image) { return cs_image_read(module->base, module->dynamic, module->name, image); }

cs_u64 cs_module_number(const void *address)
{
    struct found_object object;
    look();
    find_object_fn *find = cs_load(&find_object);
    if (!find || find((void *)address, &object)) return 0;
    cs_u64 h = (uintptr_t)object.map;
    h = (h ^ h >> 29) * 0xff51afd7ed558ccdu + (uintptr_t)object.begin;
    h = (h ^ h >> 29) * 0xff51afd7ed558ccdu + (uintptr_t)object.end;
    return (h ^ h >> 29) * 0xff51afd7ed558ccdu + (uintptr_t)object.frames;
}
