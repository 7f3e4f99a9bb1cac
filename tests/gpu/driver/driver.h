/*
 * What the parts of the driver-API program share: one line of output a call, and three ways to
 * reach a call.
 *
 * The program is run without the shim, with it, and with CUPTI counting; its output must be the
 * same each time. So it prints names, return codes and checksums, never pointers, ids or times, and
 * it only asks "is it done?" where the answer cannot depend on timing. The program is built twice:
 * as it stands, and with every call replaced by its per-thread sibling where it has one. So work
 * that touches the same memory from the null stream and from another is separated by a
 * synchronisation: which null stream it is makes a difference. A call that this device or driver
 * refuses prints its code and the program goes on: the code, too, must be the same with the shim.
 */
#ifndef GPU_DRIVER_H
#define GPU_DRIVER_H

#define __CUDA_API_VERSION_INTERNAL /* plain names of all versions: cuMemcpyHtoD is the 32-bit one \
                                       here, cuMemcpyHtoD_v2 today's */
#include <cuda.h>

#include <stdint.h>
#include <stdio.h>

#ifdef DRIVER_SIBLINGS
#include DRIVER_SIBLINGS /* from the call table: #define cuMemcpyHtoD_v2 cuMemcpyHtoD_v2_ptds, and so on for each call with a sibling */
#endif

struct gpu {
    CUdevice dev;
    CUcontext ctx;
    CUmodule mod;
    CUfunction empty, add, spin;
};

/* Where the calling thread prints; threads collect their lines and main prints them in a fixed
 * order. */
extern _Thread_local FILE *out;

extern const char *const kernels_ptx;

/* Print "name code" and return the code. */
CUresult step(const char *name, CUresult rc);

/* The call's address by dlsym on libcuda's own handle; NULL (and a line saying so) where this
 * driver lacks it. */
void *find(const char *name);

/* The call's address by cuGetProcAddress_v2; NULL (and a line saying so) where there is none. */
void *ask(const char *base, int version, cuuint64_t flags);

/* Sum of n words of device memory, read through the legacy default stream. */
uint32_t checksum(CUdeviceptr p, size_t n);

void print_sum(const char *what, CUdeviceptr p, size_t n);

/* The symbol that is called, so the sibling in the build that calls siblings. */
#define SYMBOL(name) SYMBOL_(name)
#define SYMBOL_(name) #name

/* Run `name` as the linker bound it. */
#define RUN(name, ...) step(SYMBOL(name), name(__VA_ARGS__))

/* Run `name` as dlsym finds it: for calls newer or older than some drivers, which must not keep the
 * program from starting. */
#define FOUND(name, ...) \
    ({ \
        __typeof__(&name) found_ = (__typeof__(&name))find(SYMBOL(name)); \
        found_ ? step(SYMBOL(name), found_(__VA_ARGS__)) : CUDA_ERROR_NOT_FOUND; \
    })

/* Run what cuGetProcAddress returns for `base`; `name` is the symbol that this should be, and gives
 * the type. */
#define ASKED(name, base, version, flags, ...) \
    ({ \
        __typeof__(&name) asked_ = (__typeof__(&name))ask(base, version, flags); \
        asked_ ? step(SYMBOL(name), asked_(__VA_ARGS__)) : CUDA_ERROR_NOT_FOUND; \
    })

/* One launch of raise(p, n, k), p[i] += k, as one line, and of a kernel that does nothing. */
#define ADD_ARGS(p, n, k) ((void *[]){&(CUdeviceptr){p}, &(unsigned){n}, &(unsigned){k}})
#define LAUNCH_ADD(g, p, n, k, stream) RUN(cuLaunchKernel, (g)->add, ((n) + 255) / 256, 1, 1, \
    256, 1, 1, 0, stream, ADD_ARGS(p, n, k), NULL)

/* Load the kernels into the current context; 0, or -1 where a call failed. Also after a reset,
 * which took the old ones away. */
int load_kernels(struct gpu *g);

/* The sections; main runs those named on its command line, in that order. */
void section_stream(struct gpu *g);
void section_launch(struct gpu *g);
void section_memop(struct gpu *g);
void section_thread(struct gpu *g);
void section_copy(struct gpu *g);
void section_set(struct gpu *g);
void section_memory(struct gpu *g);
void section_batch(struct gpu *g);
void section_capture(struct gpu *g);
void section_graph(struct gpu *g);
void section_context(struct gpu *g);
void section_green(struct gpu *g);
void section_lookup(struct gpu *g);
void section_odd(struct gpu *g);
void section_legacy(struct gpu *g);

#endif
