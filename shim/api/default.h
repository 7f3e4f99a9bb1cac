/* Default streams and pools. */
#ifndef CS_API_DEFAULT_H
#define CS_API_DEFAULT_H

#include "shim/api/event.h"

status api_default_event(custream_t stream, custream_event_t *event); /* the cached one of CUDA's default streams */
void api_pools_release(void);
void api_defaults_release(void);

#endif
