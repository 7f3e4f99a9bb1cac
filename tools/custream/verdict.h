/* What the trailer of a trace says of it, as data: shim/base/verdict.h makes words of that. */
#ifndef CS_TOOLS_VERDICT_H
#define CS_TOOLS_VERDICT_H

#include "shim/base/verdict.h"

struct cJSON;

/* The texts are the trailer's, but for a list that goes into `room`. */
void verdict_read(struct cs_verdict *verdict, const struct cJSON *trailer, char *room, size_t size);

#endif
