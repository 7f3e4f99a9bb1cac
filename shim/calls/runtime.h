/*
 * What the table of the runtime's functions says, as C: a number and a name a symbol.
 *
 * The numbers go on where those of the driver's calls end, so that one field of a record holds either; nothing that goes through the driver's calls meets
 * them. cuda_runtime_api.h is included as a program's compiler sees it: cuda_api.h's switch would turn its names into those of the siblings.
 */
#ifndef CS_CALLS_RUNTIME_H
#define CS_CALLS_RUNTIME_H

#include "shim/calls/calls.h"

#pragma push_macro("__CUDA_API_VERSION_INTERNAL")
#undef __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>
#pragma pop_macro("__CUDA_API_VERSION_INTERNAL")

/* In no header that C can read. */
#if CUDART_VERSION < 12010
typedef struct CUkern_st *cudaKernel_t;
#endif
cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream);

/* CS_RUNTIME_SIBLINGS_x(entry, name, ...) applies entry(symbol, name, ...) to the row's symbol and to its sibling's; name is the row's own. */
#define CS_RUNTIME_SIBLINGS_ONE(entry, name, ...)  entry(name, name, __VA_ARGS__)
#define CS_RUNTIME_SIBLINGS_PTDS(entry, name, ...) entry(name, name, __VA_ARGS__) entry(name##_ptds, name, __VA_ARGS__)
#define CS_RUNTIME_SIBLINGS_PTSZ(entry, name, ...) entry(name, name, __VA_ARGS__) entry(name##_ptsz, name, __VA_ARGS__)

enum cs_runtime_call {
    CS_RUNTIME_BEFORE_FIRST = CS_CALL_COUNT - 1,
#define ENUMERATOR(symbol, ...)     CS_RUNTIME_##symbol,
#define RUNTIME(name, sibling, ...) CS_RUNTIME_SIBLINGS_##sibling(ENUMERATOR, name, )
#include "shim/calls/runtime.def"
#undef RUNTIME
#undef ENUMERATOR
    CS_RUNTIME_END
};
enum { CS_RUNTIME_COUNT = CS_RUNTIME_END - CS_CALL_COUNT };

static inline bool cs_call_is_runtime(unsigned call) { return call >= CS_CALL_COUNT; }

/* The symbol. */
const char *cs_runtime_name(unsigned call);

#endif
