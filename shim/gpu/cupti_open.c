/*
 * Finding CUPTI: the one that CUSTREAM_CUPTI names, one that the process has loaded already (two copies would take the records from each other), what
 * the loader finds by name, one beside the CUDA runtime in use (a toolkit, or PyPI's wheels), an installed toolkit.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/environment.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/module.h"
#include "shim/base/realdl.h"
#include "shim/gpu/cupti.h"
#include "shim/object/names.h"

/* CUPTI_API_VERSION of CUDA 12.0; and the first that may have moved what we read. */
enum { OLDEST = 18, TOO_NEW = 140000 };

enum { COPIES = 8 }; /* that a process may have at the most, one after the other */
static const struct cs_cupti none;
static struct cs_cupti copies[COPIES]; /* each is filled before anyone sees it, and then stays */
const struct cs_cupti *_Atomic cs_cupti_opened = &none;

static const char *const sonames[] = {"libcupti.so.13", "libcupti.so.12"};

static void *open_beside(const char *library, const char *way, const char *soname)
{
    struct cs_image image;
    char file[64];
    snprintf(file, sizeof file, "%s%s", way, soname);
    return cs_image_find(library, &image) ? cs_open_beside(image.symbols, file) : NULL;
}

static void *open_in_toolkit(const char *root, const char *soname)
{
    static const char *const folders[] = {"extras/CUPTI/lib64", "lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"};
    char path[PATH_MAX];
    void *library = NULL;
    for (size_t i = 0; root && *root && !library && i < CS_COUNT(folders); i++)
        if (snprintf(path, sizeof path, "%s/%s/%s", root, folders[i], soname) < (int)sizeof path) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void *open_by_name(const char *soname)
{
    const char *runtime = strcmp(soname, sonames[0]) ? "libcudart.so.12" : "libcudart.so.13";
    void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    if (!library) library = open_beside(runtime, "", soname);
    if (!library) library = open_beside(runtime, "../../cuda_cupti/lib/", soname);
    if (!library) library = open_in_toolkit(cs_toolkit(0), soname);
    if (!library) library = open_in_toolkit(cs_toolkit(1), soname);
    return library ? library : open_in_toolkit("/usr/local/cuda", soname);
}

static void *open_library(void)
{
    void *library = NULL;
    for (size_t i = 0; !library && i < CS_COUNT(sonames); i++) library = dlopen(sonames[i], RTLD_NOW | RTLD_NOLOAD | RTLD_LOCAL);
    for (size_t i = 0; !library && i < CS_COUNT(sonames); i++) library = open_by_name(sonames[i]);
    return library;
}

static const char *publish(const struct cs_cupti *found)
{
    static size_t count;
    size_t i = 0;
    while (i < count && memcmp(&copies[i], found, sizeof *found)) i++;
    if (i == COPIES) return "the process has had more copies of it than custream keeps apart";
    if (i == count) copies[count++] = *found;
    cs_store_rel(&cs_cupti_opened, &copies[i]);
    return NULL;
}

static const char *fill(void *library)
{
    struct cs_cupti cupti = {0};
    char text[256];
    static const struct {
        const char *name;
        size_t offset;
        bool required;
    } functions[] = {
#define FUNCTION(name, required) {#name, offsetof(struct cs_cupti, name), required},
        CS_CUPTI_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    for (size_t i = 0; i < CS_COUNT(functions); i++) {
        void *found = cs_real_dlsym(library, functions[i].name);
        *(void **)((char *)&cupti + functions[i].offset) = found;
        if (found || !functions[i].required) continue;
        snprintf(text, sizeof text, "the library has no %s", functions[i].name);
        return cs_name_text(cs_name_add(text));
    }
    cs_u32 version = 0;
    CUptiResult result = cupti.cuptiGetVersion(&version);
    if (result == CUPTI_SUCCESS && version >= OLDEST && version < TOO_NEW) return publish(&cupti);
    snprintf(text, sizeof text, "its version %u is not one that custream reads (CUDA 12 and 13)", version);
    return cs_name_text(cs_name_add(text));
}

const char *cs_cupti_open(void)
{
    char text[512];
    const char *path = cs_option_text(CS_OPTION_CUPTI);
    const bool no_file = cs_is_no_file(path);
    void *library = no_file ? NULL : *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : open_library();
    if (library) return fill(library);
    const char *error = *path && !no_file ? dlerror() : NULL;
    if (no_file) snprintf(text, sizeof text, "%s: not a file", path);
    else snprintf(text, sizeof text, "%s", error ? error : "no libcupti.so.13 or libcupti.so.12 was found (CUSTREAM_CUPTI names one)");
    return cs_name_text(cs_name_add(text)); /* it stays */
}
