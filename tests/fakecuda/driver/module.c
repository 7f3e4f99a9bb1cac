/*
 * Modules, libraries, kernels and functions. Any image loads, and any name is a function of it; the
 * name says what it does:
 *
 *   sleep_us_N...   runs for N microseconds
 *   sleep...        runs for as many microseconds as its first parameter, 32 bits, says
 *   fill...         (uint32_t *out, uint32_t value, uint32_t count)
 *   add...          (uint32_t *out, const uint32_t *a, const uint32_t *b, uint32_t count)
 *   step31...       (uint32_t *x, uint32_t k, uint32_t us): x = x * 31 + k after that many
 * microseconds, so that the order of several shows mix31...        (uint32_t *x, const uint32_t *y,
 * uint32_t us): x = x * 31 + y missing...      is not there: CUDA_ERROR_NOT_FOUND
 *
 * Everything else is an empty kernel of CUSTREAM_FAKE_KERNEL_NS nanoseconds, 0 by default. Names
 * are searched for these words in this order, since C++ mangles them.
 */
#include "tests/fakecuda/driver/fake.h"

#include <stdio.h>

struct fake_module {
    void *handle;
    bool library;
    struct fake_function *functions;
    struct global {
        struct global *next;
        char *name;
        CUdeviceptr address;
    } *globals;
};

enum { GLOBAL_BYTES = 65536 };

static struct fake_handles modules, functions;

struct fake_function *fake_function_get(CUfunction handle)
{
    return fake_handle_get(&functions, handle);
}

/* ---- What functions do ---- */

static void effect_fill(void **p)
{
    uint32_t *out = *(uint32_t **)p[0], value = *(uint32_t *)p[1], count = *(uint32_t *)p[2];
    for (uint32_t i = 0; i < count; i++) out[i] = value;
}

static void effect_add(void **p)
{
    uint32_t *out = *(uint32_t **)p[0], *a = *(uint32_t **)p[1], *b = *(uint32_t **)p[2],
             count = *(uint32_t *)p[3];
    for (uint32_t i = 0; i < count; i++) out[i] = a[i] + b[i];
}

static void effect_step31(void **p)
{
    uint32_t *x = *(uint32_t **)p[0];
    *x = *x * 31 + *(uint32_t *)p[1];
}

static void effect_mix31(void **p)
{
    uint32_t *x = *(uint32_t **)p[0];
    *x = *x * 31 + **(uint32_t **)p[1];
}

static const struct {
    const char *word;
    void (*effect)(void **parameters);
    unsigned parameters;
    unsigned char bytes[4];
    int microseconds_at;
} behaviours[] = {
    {"sleep_us_", NULL, 0, {0}, -1},
    {"sleep", NULL, 1, {4}, 0},
    {"fill", effect_fill, 3, {8, 4, 4}, -1},
    {"add", effect_add, 4, {8, 8, 8, 4}, -1},
    {"step31", effect_step31, 3, {8, 4, 4}, 2},
    {"mix31", effect_mix31, 3, {8, 8, 4}, 2},
};

static void behave(struct fake_function *function)
{
    function->duration = (uint64_t)fake_setting("CUSTREAM_FAKE_KERNEL_NS", 0);
    function->microseconds_at = -1;
    for (unsigned i = 0; i < COUNT_OF(behaviours); i++) {
        const char *found = strstr(function->name, behaviours[i].word);

        if (!found) continue;
        if (i == 0)
            function->duration = strtoull(found + strlen(behaviours[i].word), NULL, 10) * 1000;
        function->effect = behaviours[i].effect;
        function->parameters = behaviours[i].parameters;
        memcpy(function->bytes, behaviours[i].bytes, sizeof function->bytes);
        function->microseconds_at = behaviours[i].microseconds_at;
        return;
    }
}

static struct fake_function *function_of(struct fake_module *module, const char *name)
{
    struct fake_function *function;

    for (function = module->functions; function; function = function->next)
        if (strcmp(function->name, name) == 0) return function;
    function = calloc(1, sizeof *function);
    if (!function) abort();
    function->name = strdup(name);
    function->module = module;
    function->handle = fake_handle_new(&functions, function);
    behave(function);
    function->next = module->functions;
    module->functions = function;
    return function;
}

/* ---- Modules and libraries ---- */

static CUresult load(void **out, const void *image, bool library)
{
    struct fake_context *context;
    struct fake_module *module;

    if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    if (!library) FAKE_TRY(fake_current(&context));
    module = calloc(1, sizeof *module);
    if (!module) return CUDA_ERROR_OUT_OF_MEMORY;
    module->library = library;
    *out = module->handle = fake_handle_new(&modules, module);
    return CUDA_SUCCESS;
}

static CUresult load_file(void **out, const char *path, bool library)
{
    FILE *file = path ? fopen(path, "rb") : NULL;

    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    fclose(file);
    return load(out, path, library);
}

static CUresult unload(void *handle)
{
    struct fake_module *module;

    FAKE_LOCKED;
    module = fake_handle_get(&modules, handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    while (module->functions) {
        struct fake_function *function = module->functions;
        module->functions = function->next;
        fake_handle_free(&functions, function->handle);
        free(function->name);
        free(function);
    }
    while (module->globals) {
        struct global *global = module->globals;
        module->globals = global->next;
        fake_memory_free(global->address);
        free(global->name);
        free(global);
    }
    fake_handle_free(&modules, handle);
    free(module);
    return CUDA_SUCCESS;
}

static CUresult get(void **out, void *handle, const char *name)
{
    struct fake_module *module;

    if (!out || !name || !*name) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    module = fake_handle_get(&modules, handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    if (strstr(name, "missing")) return CUDA_ERROR_NOT_FOUND;
    *out = function_of(module, name)->handle;
    return CUDA_SUCCESS;
}

static CUresult get_global(CUdeviceptr *address, size_t *bytes, void *handle, const char *name)
{
    struct fake_module *module;
    struct global *global;

    if (!name) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    module = fake_handle_get(&modules, handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    for (global = module->globals; global; global = global->next)
        if (strcmp(global->name, name) == 0) break;
    if (!global) {
        CUdeviceptr memory;
        FAKE_TRY(fake_memory_new(GLOBAL_BYTES, CU_MEMORYTYPE_DEVICE, 0, &memory));
        global = calloc(1, sizeof *global);
        if (!global) abort();
        *global = (struct global){module->globals, strdup(name), memory};
        module->globals = global;
    }
    if (address) *address = global->address;
    if (bytes) *bytes = GLOBAL_BYTES;
    return CUDA_SUCCESS;
}

API(cuModuleLoad, (CUmodule * module, const char *path), (module, path))
{
    return load_file((void **)module, path, false);
}
API(cuModuleLoadData, (CUmodule * module, const void *image), (module, image))
{
    return load((void **)module, image, false);
}
API(cuModuleLoadFatBinary, (CUmodule * module, const void *image), (module, image))
{
    return load((void **)module, image, false);
}
API(cuModuleLoadDataEx,
    (CUmodule * module, const void *image, unsigned count, CUjit_option *options, void **values),
    (module, image, count, options, values))
{
    (void)count, (void)options, (void)values;
    return load((void **)module, image, false);
}
IMPL(cuModuleUnload)(CUmodule module) { return unload(module); }
IMPL(cuModuleGetFunction)(CUfunction *function, CUmodule module, const char *name)
{
    return get((void **)function, module, name);
}
API(cuModuleGetGlobal_v2, (CUdeviceptr * address, size_t *bytes, CUmodule module, const char *name),
    (address, bytes, module, name))
{
    return get_global(address, bytes, module, name);
}
API(cuModuleGetLoadingMode, (CUmoduleLoadingMode * mode), (mode))
{
    if (!mode) return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

API(cuLibraryLoadData,
    (CUlibrary * library, const void *code, CUjit_option *jit, void **jit_values,
        unsigned jit_count, CUlibraryOption *options, void **values, unsigned count),
    (library, code, jit, jit_values, jit_count, options, values, count))
{
    (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    return load((void **)library, code, true);
}
API(cuLibraryLoadFromFile,
    (CUlibrary * library, const char *path, CUjit_option *jit, void **jit_values,
        unsigned jit_count, CUlibraryOption *options, void **values, unsigned count),
    (library, path, jit, jit_values, jit_count, options, values, count))
{
    (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    return load_file((void **)library, path, true);
}
IMPL(cuLibraryUnload)(CUlibrary library) { return unload(library); }
IMPL(cuLibraryGetKernel)(CUkernel *kernel, CUlibrary library, const char *name)
{
    return get((void **)kernel, library, name);
}
API(cuLibraryGetModule, (CUmodule * module, CUlibrary library), (module, library))
{
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    if (!fake_handle_get(&modules, library)) return CUDA_ERROR_INVALID_HANDLE;
    *module = (CUmodule)library; /* one object serves as both */
    return CUDA_SUCCESS;
}
API(cuLibraryGetGlobal, (CUdeviceptr * address, size_t *bytes, CUlibrary library, const char *name),
    (address, bytes, library, name))
{
    return get_global(address, bytes, library, name);
}

/* ---- Functions; a kernel and its function are one object ---- */

API(cuKernelGetFunction, (CUfunction * function, CUkernel kernel), (function, kernel))
{
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    if (!fake_function_get((CUfunction)kernel)) return CUDA_ERROR_INVALID_HANDLE;
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

static CUresult name_of(const char **name, void *handle)
{
    struct fake_function *function;

    if (!name) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    function = fake_function_get(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    *name = function->name;
    return CUDA_SUCCESS;
}
API(cuFuncGetName, (const char **name, CUfunction function), (name, function))
{
    return name_of(name, function);
}
API(cuKernelGetName, (const char **name, CUkernel kernel), (name, kernel))
{
    return name_of(name, kernel);
}

API(cuFuncGetModule, (CUmodule * module, CUfunction handle), (module, handle))
{
    struct fake_function *function;

    if (!module) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    function = fake_function_get(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    *module = function->module->handle;
    return CUDA_SUCCESS;
}

static CUresult attribute_of(int *value, CUfunction_attribute attribute, void *handle)
{
    if (!value || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    if (!fake_function_get(handle)) return CUDA_ERROR_INVALID_HANDLE;
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
             : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS            ? 16
             : attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION         ? 90
             : attribute == CU_FUNC_ATTRIBUTE_BINARY_VERSION      ? 90
                                                                  : 0;
    return CUDA_SUCCESS;
}
API(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction function),
    (value, attribute, function))
{
    return attribute_of(value, attribute, function);
}
API(cuKernelGetAttribute,
    (int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device),
    (value, attribute, kernel, device))
{
    (void)device;
    return attribute_of(value, attribute, kernel);
}
API(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value),
    (function, attribute, value))
{
    int unused;
    (void)value;
    return attribute_of(&unused, attribute, function);
}
API(cuKernelSetAttribute,
    (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device),
    (attribute, value, kernel, device))
{
    int unused;
    (void)value, (void)device;
    return attribute_of(&unused, attribute, kernel);
}
API(cuFuncSetCacheConfig, (CUfunction function, CUfunc_cache config), (function, config))
{
    (void)config;
    FAKE_LOCKED;
    return fake_function_get(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
API(cuFuncIsLoaded, (CUfunctionLoadingState * state, CUfunction function), (state, function))
{
    if (!state) return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    FAKE_LOCKED;
    return fake_function_get(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
API(cuFuncLoad, (CUfunction function), (function))
{
    FAKE_LOCKED;
    return fake_function_get(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

API(cuOccupancyMaxActiveBlocksPerMultiprocessor,
    (int *blocks, CUfunction function, int threads, size_t shared),
    (blocks, function, threads, shared))
{
    (void)shared;
    if (!blocks || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    if (!fake_function_get(function)) return CUDA_ERROR_INVALID_HANDLE;
    *blocks = 2048 / threads < 32 ? 2048 / threads : 32;
    return CUDA_SUCCESS;
}
