/*
 * STREAMS: how many real streams carry the work of those that were asked for. shares.c and serial.c say how; sync waits for each operation, in steer.c.
 */
#include "shim/policy/policies.h"

CUresult cs_sharing_create(struct cs_creation *c)
{
    if (c->policy->sharing.kind == CS_SHARING_POOL) cs_shares_create(c);
    return CUDA_SUCCESS;
}

void cs_sharing_created(struct cs_creation *c, struct cs_stream *stream)
{
    if (c->policy && c->policy->sharing.kind == CS_SHARING_SERIAL) cs_serial_created(c, stream);
}
