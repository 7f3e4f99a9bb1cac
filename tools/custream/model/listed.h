/* The lists of a trailer's totals that tell of an unexpected end: `inside`, threads in a call or a
 * host function; `awaited`, streams whose work had not ended. */
#ifndef CS_MODEL_LISTED_H
#define CS_MODEL_LISTED_H

#include "shim/calls/calls.h"
#include "tools/custream/model/load.h"

/* A thread that the trailer lists as being in a call or a host function. */
struct inside {
    const char *name, *call, *function;
    const struct cs_call_info *info; /* the call's row of the call table */
    double tid, since_us, device, event;
    uint32_t stream;
    bool all; /* the thread waits for all streams of its context */
};

/* Returns a number of the n-th entry of a list; NAN: the entry does not have it. */
double listed_number(const struct run *run, const char *list, unsigned n, const char *member);
/* Returns the stream that the n-th entry of a list names, by its GPU's ordinal and its own number;
 * NONE: the run has no such stream. */
uint32_t listed_stream(const struct run *run, const char *list, unsigned n);
/* Returns the threads of `inside`, which the caller frees. */
struct inside *inside_read(const struct run *run, size_t *count);

#endif
