/* The shared parts of the planted programs, by the driver API: the device, its kernels, streams,
 * host functions, gates. */
#ifndef PLANTED_DEVICE_H
#define PLANTED_DEVICE_H

#include "tests/apps/planted/planted.h"

#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>

#define MUST(call) \
    do { \
        CUresult rc_ = (call); \
        if (rc_ != CUDA_SUCCESS) fprintf(stderr, "planted: %s gave %d\n", #call, (int)rc_), \
        exit(1); \
    } while (0)

void device_done(void); /* all its work has ended */
void launch(enum kernel kernel, unsigned us, CUstream stream);
void launch_blocks(enum kernel kernel, unsigned grid, unsigned block, unsigned us, CUstream stream);
CUstream blocking_stream(void); /* ordered with the legacy default stream */
CUstream free_stream(void);     /* CU_STREAM_NON_BLOCKING */
CUevent event_new(void);
CUdeviceptr device_memory(void); /* of copy_bytes */
void *pinned_memory(void);

void pause_on(CUstream stream); /* pause_now() as a host function */

/* Streams wait for the gate until it opens: so that all work is enqueued before any begins, however
 * slow the host is. */
struct gate {
    volatile uint32_t *open;
};
struct gate gate_new(void);
void gate_wait(struct gate gate, CUstream stream);
void gate_open(struct gate gate);

#endif
