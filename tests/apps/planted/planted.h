/*
 * Programs that know why the GPU idles in them, or why their streams do not overlap: what `custream report` must find.
 *
 * Each is a function of one of the files here and a row of the table in main.c. It plants one thing, several times, and measures it on the host. The mended
 * twin does the same work without it. The same source runs on a real GPU: its kernels are PTX, and their names are words that the simulated GPU knows.
 */
#ifndef PLANTED_H
#define PLANTED_H

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                                                                   \
    do {                                                                                                                                             \
        CUresult rc_ = (call);                                                                                                                       \
        if (rc_ != CUDA_SUCCESS) fprintf(stderr, "planted: %s gave %d\n", #call, (int)rc_), exit(1);                                                 \
    } while (0)

enum { ROUNDS = 6, WORK_US = 2000, PAUSE_US = 6000 }; /* how often a thing is planted; a kernel's time; how long the GPU is kept idle */

/* What a program measured: at least that much is in its trace, but for that of a twin, which main() sets to 0. */
extern struct measured {
    int64_t idle_ns; /* the device's idle time of the planted cause; a host function adds to it on the driver's thread */
    int64_t cost_ns; /* of the planted finding, where that is something else than idle time */
} measured;

int64_t now_ns(void);           /* CLOCK_MONOTONIC */
int64_t rest(unsigned us);      /* sleeps; returns for how many ns */

/* --- the device --- */

enum kernel { FIRST, SECOND, THIRD, KERNELS };

void device_use(int ordinal);   /* makes its primary context current; ends the program with status 5 where there is no such device */
void device_done(void);         /* all its work has ended */
void launch(enum kernel kernel, unsigned us, CUstream stream);
CUstream blocking_stream(void); /* ordered with the legacy default stream */
CUstream free_stream(void);     /* CU_STREAM_NON_BLOCKING */
CUevent event_new(void);
CUdeviceptr device_memory(void); /* of copy_bytes */
void *pinned_memory(void);
extern size_t copy_bytes;

/* A host function on the stream that sleeps PAUSE_US and adds that to measured.idle_ns. */
void pause_on(CUstream stream);

/* Streams wait for the gate until it opens: so that all work is enqueued before any begins, however slow the host is. */
struct gate {
    volatile uint32_t *open;
};
struct gate gate_new(void);
void gate_wait(struct gate gate, CUstream stream);
void gate_open(struct gate gate);

/* --- the programs --- */

typedef void program(bool mended);
program own_code, blocked_stream, blocked_context, blocked_event, blocked_copy, frees, launch_bound;
program event_device, event_chain, event_gate, event_host, legacy_holds, holds_legacy, own_order, host_function, graph_edge, memory_value, unknown;
program copies, synchronous_copies, pageable_copies, one_engine;
program legacy_serial, legacy_blocking, device_sync, early_record, never_recorded, wait_for_nothing, many_events, many_streams, priorities, spinning, failing;

#endif
