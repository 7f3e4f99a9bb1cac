/* The host's waits for the GPU, seen from the calls that came after them. */
#ifndef CS_MODEL_WAITS_H
#define CS_MODEL_WAITS_H

#include "tools/custream/model/run.h"

struct host_wait {
    uint32_t call;   /* the last one before it on the same thread that waited for the GPU; NONE */
    uint32_t stream; /* that it waited for; NONE: for several, or not known */
};

/* One by call of the run. The caller frees it. Ends the process where there is no memory. */
struct host_wait *host_waits_make(const struct run *run);

/* Whether the call waits until the GPU has done something: a synchronisation, or a copy that may wait for itself. */
bool call_waits(const struct call *call);

#endif
