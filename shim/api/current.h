/* Current streams. */
#ifndef CS_API_CURRENT_H
#define CS_API_CURRENT_H

#include "shim/api/stream.h"

custream_t api_current_or(custream_t stream, status *why); /* the stream, or a reference to the current one; to be released if it was NULL */
void api_currents_release(void);

#endif
