/* Priorities. */
#ifndef CS_API_PRIORITY_H
#define CS_API_PRIORITY_H

#include "shim/api/context.h"

status api_clamp(int device, custream_priority_policy_t policy, int least, int greatest, int wanted, int *got);

#endif
