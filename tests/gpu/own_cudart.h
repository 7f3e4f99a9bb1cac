// What own_cudart.cu exports. Results are cudaError_t of its own copy of the runtime.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

typedef int own_fill(unsigned *numbers, unsigned n, unsigned seed, cudaStream_t stream);
typedef int own_sum(const unsigned *numbers, unsigned n, cudaStream_t after, unsigned *sum);
typedef int own_error(int make); // the last error; make: of a call that fails now
typedef void *own_runtime();     // an address in its runtime
typedef const void *own_kernel();

#define MUST(call) \
    do { \
        int rc_ = (int)(call); \
        if (rc_) fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, rc_), exit(3); \
    } while (0)
