/*
 * Programs that know why the GPU idles in them, or why their streams do not overlap: what `custream
 * report` must find.
 *
 * Each is a function of one of the files here and a row of the table in main.c. It plants one
 * thing, several times, and measures it on the host. The mended twin does the same work without it.
 * The same source runs on a real GPU: its kernels are PTX, and their names are words that the
 * simulated GPU knows. tests/gpu/planted/ has the same programs in CUDA C++, with the runtime API,
 * and takes main.c and measure.c from here.
 */
#ifndef PLANTED_H
#define PLANTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How often a thing is planted; a kernel's time; how long the GPU is kept idle. A slow host takes a
 * millisecond more to wake and to launch again: it is of the same cause, and no program measures
 * it. So a pause is far longer than that. */
enum { ROUNDS = 6, WORK_US = 2000, PAUSE_US = 20000 };
enum {
    LAUNCHES = 500,
    BETWEEN_US = 15,
    SHORT_US = 1
}; /* of launch_bound(): how many; the host's own time between two; more than its kernel takes */

/* A program's own measurement: at least that much is in its trace, but for that of a twin, which
 * main() sets to 0. */
extern struct measured {
    int64_t idle_ns; /* the device's idle time of the planted cause; a host function adds to it on
                        the driver's thread */
    int64_t cost_ns; /* of the planted finding, where that is something else than idle time */
} measured;

extern size_t copy_bytes; /* the size of a copy */

int64_t now_ns(void);      /* CLOCK_MONOTONIC */
int64_t rest(unsigned us); /* sleeps; returns for how many ns */
void spin(unsigned us);    /* takes that long without sleeping */
void pause_now(
    void *unused); /* a host function: sleeps PAUSE_US and adds that to measured.idle_ns */

enum kernel { FIRST, SECOND, THIRD, KERNELS };

void device_use(int ordinal); /* makes its primary context current; ends the program with status 5
                                 where there is no such device */

typedef void program(bool mended);
program own_code, blocked_stream, blocked_context, blocked_event, blocked_copy, frees, launch_bound;
program event_device, event_chain, event_gate, event_host, legacy_holds, holds_legacy, own_order,
    host_function, graph_edge, memory_value, unknown;
program device_full;
program copies, synchronous_copies, pageable_copies, one_engine;
program legacy_serial, legacy_blocking, device_sync, spinning;
program early_record, never_recorded, wait_for_nothing, many_events, many_streams, priorities,
    failing;

#ifdef __cplusplus
}
#endif
#endif
