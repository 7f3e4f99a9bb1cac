/*
 * Host functions and stream callbacks: run by the driver on a thread of its own, shown as slices there with their delay since they were enqueued.
 *
 * The wrapper hands the driver a trampoline and a node from a fixed pool; the node is given back when the function runs. While the stream
 * captures, the program's own function goes into the graph untouched, since a graph shows its host nodes to the program and runs them many times.
 * Delays that a policy puts in (policy/jitter.c) are slices of the same threads.
 */
#ifndef CS_WRAP_CALLBACK_H
#define CS_WRAP_CALLBACK_H

#include "shim/object/stream.h"

bool cs_callbacks_init(void);

struct cs_callback;

/* What to hand to the driver instead of a program's function and its data. NULL: hand over the program's own. */
struct cs_callback *cs_callback_new(struct cs_thread *thread, CUstream stream, bool per_thread, void *function, void *data, cs_u16 call);
/* The stream that a stream callback is told, where it isn't the driver's; and whether it is to be no slice, since calls are not recorded. */
void cs_callback_tells(struct cs_callback *callback, CUstream stream, bool hidden);
void cs_callback_refused(struct cs_callback *callback); /* the driver did not take it; NULL is fine */

void CUDA_CB cs_callback_host(void *callback);                                         /* a CUhostFn */
void CUDA_CB cs_callback_stream(CUstream stream, CUresult status, void *callback);    /* a CUstreamCallback */

#endif
