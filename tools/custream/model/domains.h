/* Which streams the legacy default stream orders. */
#ifndef CS_MODEL_DOMAINS_H
#define CS_MODEL_DOMAINS_H

#include "tools/custream/model/run.h"

/* By stream: the number of its context of a device, where its legacy default stream and its blocking streams wait for each other; NONE: it is non-blocking, or its
 * flags or context are not known, and nothing is said of the legacy stream. The caller's to free. */
uint32_t *legacy_domains(const struct run *run, size_t *count);

/* Whether the program had more than one context in its time: which one was current at a call is not in the trace. */
bool run_has_contexts(const struct run *run);

#endif
