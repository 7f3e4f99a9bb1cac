/* Loading the driver, contexts and devices, errors, versions. */
#include "tests/fakecuda/cudart/rt.h"

#include <dlfcn.h>
#include <pthread.h>

struct driver driver;
struct stream_driver families[2];

static cudaError_t started = cudaErrorInitializationError;
static TLS cudaError_t last_error;
static TLS int current_device;
static CUcontext primaries[64];
static pthread_mutex_t primaries_lock = PTHREAD_MUTEX_INITIALIZER;

enum { PER_THREAD_SINCE = 7000 };

static bool look_up(void *pointer, const char *name, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status;
    return driver.get_proc_address(name, pointer, version, flags, &status) == CUDA_SUCCESS &&
           *(void **)pointer;
}

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *unused;
    bool all = true;
    CUresult result;

    if (!library) {
        started = cudaErrorInsufficientDriver;
        return;
    }
    *(void **)&driver.get_proc_address = dlsym(library, "cuGetProcAddress_v2");
    if (!driver.get_proc_address) {
        started = cudaErrorInsufficientDriver;
        return;
    }
    *(void **)&driver.enter = dlsym(library, "custream_fakecuda_runtime_enter");
    *(void **)&driver.leave = dlsym(library, "custream_fakecuda_runtime_leave");
    /* The order in which the real one begins. */
    look_up(&unused, "", 0, 0);
    look_up(&unused, "cuGetProcAddress", 11030, 0);
    look_up(&unused, "cuGetProcAddress", 12000, 0);
#define FIND(name, version) all &= look_up(&driver.p_##name, #name, version, \
    CU_GET_PROC_ADDRESS_DEFAULT);
    ENTRIES(FIND)
#undef FIND
#define FIND(name, version) \
    all &= look_up(&families[0].p_##name, #name, version, CU_GET_PROC_ADDRESS_DEFAULT) && \
           look_up(&families[1].p_##name, #name, version > PER_THREAD_SINCE ? version : \
           PER_THREAD_SINCE, \
                   CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    STREAM_ENTRIES(FIND)
#undef FIND
    all &= look_up(&driver.p_cuEventElapsedTime, "cuEventElapsedTime", 2000, 0) &&
           look_up(&driver.p_synchronize, "cuCtxSynchronize", 2000, 0);
    result = all ? driver.p_cuInit(0) : CUDA_ERROR_NOT_FOUND;
    started = all ? E(result) : cudaErrorInsufficientDriver;
}

cudaError_t rt_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return started;
}

static cudaError_t make_current(int device)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&primaries_lock);
    if (!primaries[device]) result = driver.p_cuDevicePrimaryCtxRetain(&primaries[device], device);
    pthread_mutex_unlock(&primaries_lock);
    if (!result) result = driver.p_cuCtxSetCurrent(primaries[device]);
    return E(result);
}

cudaError_t rt_context(void)
{
    cudaError_t error = rt_start();
    CUcontext context = NULL;

    if (error) return error;
    if (driver.p_cuCtxGetCurrent(&context) == CUDA_SUCCESS && context) return cudaSuccess;
    return make_current(current_device);
}

cudaError_t rt_done(cudaError_t error)
{
    if (error && error != cudaErrorNotReady) last_error = error;
    return error;
}

/* ---- Devices ---- */

EXPORT cudaError_t CUDARTAPI cudaGetDeviceCount(int *count)
{
    cudaError_t error = rt_start();
    if (error) {
        *count = 0;
        return rt_done(error);
    }
    return rt_done(E(driver.p_cuDeviceGetCount(count)));
}

EXPORT cudaError_t CUDARTAPI cudaGetDevice(int *device)
{
    cudaError_t error = rt_start();
    CUcontext context = NULL;

    if (error) return rt_done(error);
    if (driver.p_cuCtxGetCurrent(&context) == CUDA_SUCCESS && context)
        return rt_done(E(driver.p_cuCtxGetDevice(device)));
    *device = current_device;
    return cudaSuccess;
}

EXPORT cudaError_t CUDARTAPI cudaSetDevice(int device)
{
    cudaError_t error = rt_start();
    int count = 0;

    if (error) return rt_done(error);
    driver.p_cuDeviceGetCount(&count);
    if (device < 0 || device >= count) return rt_done(cudaErrorInvalidDevice);
    current_device = device;
    return rt_done(make_current(device));
}

PLAIN(cudaDeviceReset, (void), ())
{
    int device;
    cudaError_t error = E(driver.p_cuCtxGetDevice(&device));

    if (error) return error;
    pthread_mutex_lock(&primaries_lock);
    primaries[device] = NULL;
    pthread_mutex_unlock(&primaries_lock);
    driver.p_cuCtxSetCurrent(NULL);
    return E(driver.p_cuDevicePrimaryCtxReset(device));
}

PLAIN(cudaDeviceSynchronize, (void), ()) { return E(driver.p_synchronize()); }
PLAIN(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), (least, greatest))
{
    return E(driver.p_cuCtxGetStreamPriorityRange(least, greatest));
}
PLAIN(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attribute, int device),
    (value, attribute, device))
{
    return E(driver.p_cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device));
}

/* ---- Errors and versions ---- */

EXPORT cudaError_t CUDARTAPI cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}
EXPORT cudaError_t CUDARTAPI cudaPeekAtLastError(void) { return last_error; }

EXPORT const char *CUDARTAPI cudaGetErrorString(cudaError_t error)
{
    const char *text = NULL;
    return driver.p_cuGetErrorString && !driver.p_cuGetErrorString((CUresult)error, &text) && text
               ? text
               : "unrecognized error code";
}
EXPORT const char *CUDARTAPI cudaGetErrorName(cudaError_t error)
{
    const char *text = NULL;
    return driver.p_cuGetErrorName && !driver.p_cuGetErrorName((CUresult)error, &text) && text
               ? text
               : "unrecognized error code";
}

EXPORT cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}
EXPORT cudaError_t CUDARTAPI cudaDriverGetVersion(int *version)
{
    *version = 0;
    rt_start();
    return driver.p_cuDriverGetVersion ? rt_done(E(driver.p_cuDriverGetVersion(version)))
                                       : cudaSuccess;
}

static cudaError_t entry_point(const char *name, void **pointer, unsigned version,
    unsigned long long flags, bool per_thread, enum cudaDriverEntryPointQueryResult *status)
{
    CUdriverProcAddressQueryResult found;
    cudaError_t error = rt_start();

    if (error) return rt_done(error);
    if (flags == cudaEnableDefault && per_thread) flags = cudaEnablePerThreadDefaultStream;
    error = E(driver.get_proc_address(name, pointer, (int)version, flags, &found));
    if (status) *status = (enum cudaDriverEntryPointQueryResult)found;
    return rt_done(error);
}

#define ENTRY_POINT(suffix, per_thread) \
    EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion##suffix(const char *name, void \
    **pointer, unsigned version, \
                                                                          unsigned long long \
                                                                          flags, enum \
                                                                          cudaDriverEntryPointQueryResult *status); \
    EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion##suffix(const char *name, void \
    **pointer, unsigned version, \
                                                                          unsigned long long \
                                                                          flags, enum \
                                                                          cudaDriverEntryPointQueryResult *status) { \
        return entry_point(name, pointer, version, flags, per_thread, status); \
    } \
    EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPoint##suffix(const char *name, void \
    **pointer, unsigned long long flags, \
                                                                 enum \
                                                                 cudaDriverEntryPointQueryResult \
                                                                 *status); \
    EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPoint##suffix(const char *name, void \
    **pointer, unsigned long long flags, \
                                                                 enum \
                                                                 cudaDriverEntryPointQueryResult \
                                                                 *status) { \
        return entry_point(name, pointer, CUDART_VERSION, flags, per_thread, status); \
    }
ENTRY_POINT(, false)
ENTRY_POINT(_ptsz, true)
