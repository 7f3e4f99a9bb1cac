#include "shim/calls/real.h"

#include <string.h>

#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/module.h"
#include "shim/base/realdl.h"

static CUresult no_driver(void) { return CUDA_ERROR_NO_DEVICE; }

CUresult cs_real_missing(void)
{
    cs_log_once(CS_LOG_WARN, "the program called an entry point that this CUDA driver does not have; it got CUDA_ERROR_NOT_SUPPORTED");
    return CUDA_ERROR_NOT_SUPPORTED;
}

CS_READ_MOSTLY struct cs_real cs_real = {
#define POINTER(symbol, ...)     .symbol = (void *)no_driver,
#define CALL(name, sibling, ...) CS_SIBLINGS_##sibling(POINTER, name, )
#include "shim/calls/calls.def"
#undef CALL
#undef POINTER
    .cuGetProcAddress = (void *)no_driver,
    .cuGetProcAddress_v2 = (void *)no_driver,
};

static const struct entry {
    const char *name;
    size_t offset;
    bool required; /* a missing one becomes cs_real_missing */
} entries[] = {
#define ENTRY(symbol, ...)       {#symbol, offsetof(struct cs_real, symbol), true},
#define CALL(name, sibling, ...) CS_SIBLINGS_##sibling(ENTRY, name, )
#include "shim/calls/calls.def"
#undef CALL
#undef ENTRY
    {"cuGetProcAddress", offsetof(struct cs_real, cuGetProcAddress), true},
    {"cuGetProcAddress_v2", offsetof(struct cs_real, cuGetProcAddress_v2), true},
#define USED(name) {#name, offsetof(struct cs_real, name), false},
#include "shim/calls/used.def"
#undef USED
};

static bool is_own(const struct cs_image *image) { return !strncmp(image->soname, "libcustream", strlen("libcustream")); }

/* A library that the loader would have asked before the driver, had we not been in front of it. */
static bool is_passed_by(const struct cs_image *image, void *driver)
{
    if (image->dynamic == ((const struct cs_image *)driver)->dynamic) return true;
    for (size_t i = 0; i < CS_COUNT(entries) && !is_own(image); i++) {
        if (!entries[i].required || !cs_image_function(image, entries[i].name, "")) continue;
        cs_log(CS_LOG_WARN, "%s stands behind this library and defines %s: calls of the driver pass it by; preload it in front", image->soname, entries[i].name);
        return true;
    }
    return false;
}

/* libcustream_shim_dlsym.so has only look-ups, and stands in nobody's way. */
static bool stands_in_front(void)
{
    struct cs_image own;
    return cs_image_own(&own) && cs_image_symbol(&own, entries[0].name);
}

static const void *met; /* the driver's dynamic section */

bool cs_real_init(void)
{
    struct cs_image driver;
    if (!cs_image_find("libcuda.so.1", &driver)) return false;
    met = driver.dynamic;
    for (size_t i = 0; i < CS_COUNT(entries); i++) {
        void *found = cs_image_symbol(&driver, entries[i].name);
        if (!found && entries[i].required) found = (void *)cs_real_missing;
        *(void **)((char *)&cs_real + entries[i].offset) = found;
    }
    if (stands_in_front()) cs_image_each_behind(is_passed_by, &driver);
    return true;
}

bool cs_real_is_there(void)
{
    struct cs_module module;
    return met && cs_module_of(met, &module) && module.dynamic == met;
}

bool cs_real_stays(void) { return met && cs_module_stays(met); }

void cs_real_forget(void)
{
    met = NULL;
    for (size_t i = 0; i < CS_COUNT(entries); i++) *(void **)((char *)&cs_real + entries[i].offset) = entries[i].required ? (void *)no_driver : NULL;
}

/* --- before there is a driver --- */

struct elsewhere {
    const char *name;
    void *found;
};

static bool defines(const struct cs_image *image, void *data)
{
    struct elsewhere *elsewhere = data;
    if (!is_own(image)) elsewhere->found = cs_image_function(image, elsewhere->name, "");
    return elsewhere->found;
}

void *cs_real_or_elsewhere(void *real, const char *name, const void *caller)
{
    struct elsewhere elsewhere = {name, NULL};
    struct cs_module module;
    struct cs_image image;
    if (CS_LIKELY(real != (void *)no_driver)) return real;
    CS_KEEP_ERRNO;
    if (cs_image_each_behind(defines, &elsewhere)) return elsewhere.found;
    if (cs_module_of(caller, &module) && cs_module_image(&module, &image) && defines(&image, &elsewhere)) return elsewhere.found;
    return cs_image_each(defines, &elsewhere) ? elsewhere.found : real;
}

static const char *_Atomic result_names[1024]; /* CUDA's codes end at CUDA_ERROR_UNKNOWN, 999 */

void cs_result_seen(CUresult result)
{
    CS_KEEP_ERRNO;
    const char *name = NULL;
    if ((unsigned)result >= CS_COUNT(result_names) || cs_load(&result_names[result]) || !cs_real.cuGetErrorName) return;
    if (cs_real.cuGetErrorName(result, &name) != CUDA_SUCCESS) name = NULL;
    if (!name && result == CUDA_ERROR_DEINITIALIZED) name = "CUDA_ERROR_DEINITIALIZED"; /* by then the driver tells no names any more */
    if (name) cs_store_rel(&result_names[result], name);
}

const char *cs_result_name(CUresult result) { return (unsigned)result < CS_COUNT(result_names) ? cs_load_acq(&result_names[result]) : NULL; }
