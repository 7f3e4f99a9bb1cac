/*
 * Kernels: what nvcc's start-up code registers, and launches of it.
 *
 * A host function is known by its address. A program without nvcc registers its own:
 * __cudaRegisterFatBinary(any pointer), then
 * __cudaRegisterFunction(handle, address of a function of its own, ..., "name of the kernel", ...).
 * The name says what the simulated GPU does.
 */
#include "tests/fakecuda/cudart/rt.h"

#include <pthread.h>

struct binary {
    const void *image;
    CUlibrary library; /* loaded at the first launch from it */
};

struct entry {
    struct entry *next;
    const void *host;
    char *name;
    struct binary *binary;
    CUkernel kernel;
};
static struct entry *entries;
static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT void **CUDARTAPI __cudaRegisterFatBinary(void *image);
EXPORT void **CUDARTAPI __cudaRegisterFatBinary(void *image)
{
    struct binary *binary = calloc(1, sizeof *binary);
    if (binary) binary->image = image;
    return (void **)binary;
}
EXPORT void CUDARTAPI __cudaRegisterFatBinaryEnd(void **handle);
EXPORT void CUDARTAPI __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }

EXPORT void CUDARTAPI __cudaUnregisterFatBinary(void **handle);
EXPORT void CUDARTAPI __cudaUnregisterFatBinary(void **handle)
{
    struct binary *binary = (struct binary *)handle;

    pthread_mutex_lock(&entries_lock);
    for (struct entry **link = &entries; *link;) {
        struct entry *entry = *link;

        if (entry->binary != binary) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        free(entry->name);
        free(entry);
    }
    pthread_mutex_unlock(&entries_lock);
    if (binary && binary->library) driver.p_cuLibraryUnload(binary->library);
    free(binary);
}

EXPORT void CUDARTAPI __cudaRegisterFunction(void **handle, const char *host, char *device,
    const char *name, int limit, void *tid, void *bid, void *block, void *grid, int *size);
EXPORT void CUDARTAPI __cudaRegisterFunction(void **handle, const char *host, char *device,
    const char *name, int limit, void *tid, void *bid, void *block, void *grid, int *size)
{
    struct entry *entry = calloc(1, sizeof *entry);

    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)size;
    if (!entry) return;
    entry->host = host;
    entry->name = strdup(name);
    entry->binary = (struct binary *)handle;
    pthread_mutex_lock(&entries_lock);
    entry->next = entries;
    entries = entry;
    pthread_mutex_unlock(&entries_lock);
}

CUfunction rt_function(const void *host)
{
    struct entry *entry;

    pthread_mutex_lock(&entries_lock);
    for (entry = entries; entry && entry->host != host; entry = entry->next) continue;
    if (entry && !entry->kernel) {
        struct binary *binary = entry->binary;
        CUresult result = CUDA_SUCCESS;

        if (!binary->library)
            result = driver.p_cuLibraryLoadData(
                &binary->library, binary->image, NULL, NULL, 0, NULL, NULL, 0);
        if (!result) driver.p_cuLibraryGetKernel(&entry->kernel, binary->library, entry->name);
    }
    pthread_mutex_unlock(&entries_lock);
    return entry ? (CUfunction)entry->kernel : NULL;
}

static cudaError_t launch(const struct stream_driver *d, CUfunction f, dim3 grid, dim3 block,
    void **arguments, size_t shared, cudaStream_t stream)
{
    if (!f) return cudaErrorInvalidDeviceFunction;
    return E(d->p_cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
        (unsigned)shared, stream, arguments, NULL));
}

CALL(cudaLaunchKernel, _ptsz,
    (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
        cudaStream_t stream),
    (function, grid, block, arguments, shared, stream))
{
    return launch(d, rt_function(function), grid, block, arguments, shared, stream);
}

/* The front end of CUDA 13 resolves the kernel once and launches it by its handle. */
CALL(__cudaLaunchKernel, _ptsz,
    (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
        cudaStream_t stream),
    (kernel, grid, block, arguments, shared, stream))
{
    return launch(d, (CUfunction)kernel, grid, block, arguments, shared, stream);
}
PLAIN(__cudaGetKernel, (cudaKernel_t * kernel, const void *host), (kernel, host))
{
    *kernel = (cudaKernel_t)rt_function(host);
    return *kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

/* What <<<...>>> leaves between the caller and the kernel's stub. */
static TLS struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} pushed;

EXPORT unsigned CUDARTAPI __cudaPushCallConfiguration(
    dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
EXPORT unsigned CUDARTAPI __cudaPushCallConfiguration(
    dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared = shared;
    pushed.stream = stream;
    return 0;
}
EXPORT cudaError_t CUDARTAPI __cudaPopCallConfiguration(
    dim3 *grid, dim3 *block, size_t *shared, void *stream);
EXPORT cudaError_t CUDARTAPI __cudaPopCallConfiguration(
    dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    *(cudaStream_t *)stream = pushed.stream;
    return cudaSuccess;
}
