/* Finding the driver, as any program does; and what it last answered to each thread. */
#define _GNU_SOURCE
#include "shim/api/driver.h"
#include "shim/api/sized.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct api_driver api_driver;

/* Written under the lock, once, before `ready`. */
static _Atomic bool ready;
static bool makes_contexts = true;
static char *path;

static const struct entry {
    const char *name;
    size_t offset;
    bool needed;
} entries[] = {
#define NEEDED(name) {#name, offsetof(struct api_driver, name), true},
#define WANTED(name) {#name, offsetof(struct api_driver, name), false},
#include "shim/api/driver.def"
#undef NEEDED
#undef WANTED
};

static bool load(struct api_driver *driver, const char *named)
{
    void *library = named ? dlopen(named, RTLD_NOW | RTLD_LOCAL) : dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!library && !named) library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < CS_COUNT(entries); i++) {
        void *found = dlsym(library, entries[i].name);
        if (!found && entries[i].needed) return false;
        *(void **)((char *)driver + entries[i].offset) = found;
    }
    return library;
}

bool api_makes_contexts(void) { return makes_contexts; }

static bool is_same(const custream_init_options_t *options)
{
    bool path_is = options->driver && path ? !strcmp(options->driver, path) : options->driver == path;
    return path_is && makes_contexts == (options->make_context != 0);
}

/* CUDA does not live on in the child of a process that has used it: nothing there calls it. */
static _Atomic bool forked;
static void in_child(void)
{
    cs_lock_forget(&api_lock);
    if (cs_load(&ready)) cs_store(&forked, true);
}
__attribute__((constructor)) static void at_start(void) { pthread_atfork(NULL, NULL, in_child); }

bool api_forked(void) { return cs_load(&forked); }

/* Threads that come at once may all open the driver, which is one and the same; what the first to be done was asked for counts. */
static status init(const custream_init_options_t *options)
{
    struct api_driver found;
    CHECK(!api_forked(), CUSTREAM_NOT_SUPPORTED);
    if (!cs_load_acq(&ready)) {
        char *copy = options && options->driver ? strdup(options->driver) : NULL;
        if (!load(&found, copy) || api_result(found.cuInit(0)) != CUSTREAM_SUCCESS) return free(copy), CUSTREAM_NOT_SUPPORTED; /* a driver may come later */
        cs_lock_take(&api_lock);
        bool first = !cs_load(&ready);
        if (first) {
            api_driver = found;
            path = copy;
            makes_contexts = !options || options->make_context;
            cs_store_rel(&ready, true);
        }
        cs_lock_drop(&api_lock);
        if (first) return CUSTREAM_SUCCESS;
        free(copy);
    }
    return options && !is_same(options) ? CUSTREAM_INVALID_VALUE : CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_init(const custream_init_options_t *options)
{
    custream_init_options_t chosen = api_init_defaults;
    TRY(api_take(&chosen, options));
    return init(options ? &chosen : NULL);
}

status api_ready(void)
{
    if (CS_UNLIKELY(api_forked())) return CUSTREAM_NOT_SUPPORTED;
    return CS_LIKELY(cs_load_acq(&ready)) ? CUSTREAM_SUCCESS : init(NULL);
}

/* --- what it answered --- */

static status status_of(CUresult result)
{
    switch ((int)result) {
    case CUDA_SUCCESS: return CUSTREAM_SUCCESS;
    case CUDA_ERROR_NOT_READY: return CUSTREAM_NOT_READY;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_DEVICE: return CUSTREAM_INVALID_VALUE;
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED: return CUSTREAM_INVALID_HANDLE;
    case CUDA_ERROR_INVALID_CONTEXT: return CUSTREAM_NO_CONTEXT;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_NOT_SUPPORTED: return CUSTREAM_NOT_SUPPORTED;
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: return CUSTREAM_CAPTURE_UNSUPPORTED;
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: return CUSTREAM_CAPTURE_INVALIDATED;
    case CUDA_ERROR_ILLEGAL_STATE:
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_CAPTURED_EVENT:
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: return CUSTREAM_CAPTURE_STATE;
    default: return CUSTREAM_DRIVER;
    }
}

status api_result(CUresult result)
{
    struct api_thread *thread = api_thread();
    if (thread) thread->last = result;
    return status_of(result);
}

status api_ended(CUresult result)
{
    bool was_gone = result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_DEINITIALIZED;
    return api_result(was_gone ? CUDA_SUCCESS : result);
}

CS_EXPORT status custream_last_driver_error(int *cuda)
{
    NEED(cuda);
    struct api_thread *thread = api_thread();
    *cuda = thread ? (int)thread->last : 0;
    return CUSTREAM_SUCCESS;
}
