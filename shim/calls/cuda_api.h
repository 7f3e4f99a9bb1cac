/*
 * cuda.h with every version of every call declared under its own symbol name.
 *
 * cuda.h maps cuMemcpyHtoD to cuMemcpyHtoD_v2 (or _v2_ptds) by macro; a library that implements or intercepts the calls needs the plain names.
 * __CUDA_API_VERSION_INTERNAL is NVIDIA's own switch for that: it declares the old versions and the _ptds/_ptsz siblings too.
 * Include this, never <cuda.h>, in shim/ and in the simulated GPU.
 */
#ifndef CS_CALLS_CUDA_API_H
#define CS_CALLS_CUDA_API_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#if CUDA_VERSION < 13050
#error "not the header that the build takes (tools/headers.txt): calls would be without a wrapper"
#endif

/* Declared in cudaProfiler.h, which not every package of headers has. */
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);

#endif
