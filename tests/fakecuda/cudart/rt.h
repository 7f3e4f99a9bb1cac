/*
 * A small stand-in for libcudart.so.13: enough of the runtime for programs of the tests, reaching
 * the driver exactly as the real one does.
 *
 * The real one cannot start on a driver without its private tables. This one takes the same public
 * route: dlopen("libcuda.so.1"), dlsym("cuGetProcAddress_v2"), every other entry point through
 * that, those with a default stream twice: legacy (flags 0) and per-thread (flags 2).
 */
#ifndef FAKECUDART_RT_H
#define FAKECUDART_RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "tests/fakecuda/driver/trace.h"

#define EXPORT __attribute__((visibility("default")))
#define TLS    __thread __attribute__((tls_model("initial-exec")))

/* The driver's entry points, by base name and the first version that has this prototype
 * (cudaTypedefs.h). */
#define ENTRIES(E) \
    E(cuInit, 2000) E(cuDriverGetVersion, 2020) E(cuDeviceGetCount, 2000) \
    E(cuDeviceGetName, 2000) E(cuDeviceGetAttribute, 2000) \
    E(cuDeviceTotalMem, 3020) E(cuDevicePrimaryCtxRetain, 7000) E(cuDevicePrimaryCtxReset, 11000) \
    E(cuCtxGetCurrent, 4000) E(cuCtxSetCurrent, 4000) \
    E(cuCtxGetDevice, 2000) E(cuCtxGetStreamPriorityRange, 5050) E(cuStreamCreate, 2000) \
    E(cuStreamCreateWithPriority, 5050) \
    E(cuStreamDestroy, 4000) E(cuEventCreate, 2000) E(cuEventDestroy, 4000) E(cuEventQuery, 2000) \
    E(cuEventSynchronize, 2000) \
    E(cuMemAlloc, 3020) E(cuMemFree, 3020) E(cuMemAllocHost, 3020) E(cuMemHostAlloc, 2020) \
    E(cuMemFreeHost, 2000) E(cuMemAllocManaged, 6000) \
    E(cuMemGetInfo, 3020) E(cuLibraryLoadData, 12000) E(cuLibraryGetKernel, 12000) \
    E(cuLibraryUnload, 12000) E(cuGraphCreate, 10000) \
    E(cuGraphDestroy, 10000) E(cuGraphInstantiateWithFlags, 11040) E(cuGraphExecDestroy, 10000) \
    E(cuGraphGetNodes, 10000) \
    E(cuThreadExchangeStreamCaptureMode, 10010) E(cuGetErrorName, 6000) E(cuGetErrorString, 6000)
/* The same with two families. */
#define STREAM_ENTRIES(E) \
    E(cuStreamSynchronize, 2000) E(cuStreamQuery, 2000) E(cuStreamWaitEvent, 3020) \
    E(cuStreamGetPriority, 5050) E(cuStreamGetFlags, 5050) \
    E(cuStreamGetId, 12000) E(cuStreamAddCallback, 5000) E(cuStreamBeginCapture, 10010) \
    E(cuStreamEndCapture, 10000) \
    E(cuStreamIsCapturing, 10000) E(cuEventRecord, 2000) E(cuEventRecordWithFlags, 11010) \
    E(cuMemcpyHtoD, 3020) E(cuMemcpyDtoH, 3020) \
    E(cuMemcpyDtoD, 3020) E(cuMemcpy, 4000) E(cuMemcpyAsync, 4000) E(cuMemcpyHtoDAsync, 3020) \
    E(cuMemcpyDtoHAsync, 3020) \
    E(cuMemcpyDtoDAsync, 3020) E(cuMemsetD8, 3020) E(cuMemsetD8Async, 3020) \
    E(cuMemAllocAsync, 11020) E(cuMemFreeAsync, 11020) \
    E(cuLaunchKernel, 4000) E(cuLaunchHostFunc, 10000) E(cuGraphLaunch, 10000) \
    E(cuGraphUpload, 11010)

/* Two macros, so that cuMemAlloc becomes the cuMemAlloc_v2 that its type is; fields are named
 * before that. */
#define FIELD(name, version) __typeof__(&name) p_##name;
struct driver {
    ENTRIES(FIELD)
    __typeof__(&cuEventElapsedTime) p_cuEventElapsedTime;
    CUresult (*p_synchronize)(void);
    CUresult (*get_proc_address)(
        const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
    __typeof__(&custream_fakecuda_runtime_enter)
        enter; /* NULL, as the next: the driver is not the simulated one */
    __typeof__(&custream_fakecuda_runtime_leave) leave;
};
struct stream_driver {
    STREAM_ENTRIES(FIELD)
};
#undef FIELD

extern struct driver driver;
extern struct stream_driver families[2]; /* legacy, per-thread */

cudaError_t rt_start(void); /* loads the driver once; does not touch a context */
cudaError_t rt_context(
    void); /* and makes the thread's device's primary context current, where there is none */
cudaError_t rt_done(cudaError_t error); /* remembers the error for cudaGetLastError */
CUfunction rt_function(
    const void *host); /* the kernel registered for a host function, loaded at first use; NULL */

/* A tracer is told once the driver is there; the context comes before, so that what it takes is not
 * the call's. */
#define RT_CALL_(name_, body) \
    struct fake_trace_call traced_ = {.name = name_}; \
    cudaError_t error_ = rt_context(); \
    if (!error_ && driver.enter) driver.enter(&traced_); \
    if (!error_) error_ = body; \
    if (traced_.tracer && driver.leave) driver.leave(&traced_, error_); \
    return rt_done(error_)

/* A call with a sibling: CALL(name, suffix, (parameters), (arguments)) { body }; in the body `d` is
 * the family that it goes to. */
#define CALL(name, suffix, parameters, arguments) \
    static cudaError_t body_##name(const struct stream_driver *d, PARAMETERS_ parameters); \
    EXPORT cudaError_t CUDARTAPI name parameters { \
        RT_CALL_(#name, body_##name(&families[0], PARAMETERS_ arguments)); \
    } \
    EXPORT cudaError_t CUDARTAPI name##suffix parameters; \
    EXPORT cudaError_t CUDARTAPI name##suffix parameters { \
        RT_CALL_(#name #suffix, body_##name(&families[1], PARAMETERS_ arguments)); \
    } \
    static cudaError_t body_##name(const struct stream_driver *d, PARAMETERS_ parameters)
#define PARAMETERS_(...) __VA_ARGS__

/* One without: PLAIN(name, (parameters), (arguments)) { body }. */
#define PLAIN(name, parameters, arguments) \
    static cudaError_t body_##name parameters; \
    EXPORT cudaError_t CUDARTAPI name parameters { \
        RT_CALL_(#name, body_##name arguments); \
    } \
    static cudaError_t body_##name parameters

#define E(call) ((cudaError_t)(call)) /* the codes that matter here have the same numbers */

#endif
