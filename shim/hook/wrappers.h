/*
 * The wrappers under the names by which the shim itself knows them. Each is also exported under the driver's symbol; inside the library that name
 * must not be used, since it may resolve to somebody else's.
 */
#ifndef CS_HOOK_WRAPPERS_H
#define CS_HOOK_WRAPPERS_H

#include "shim/calls/calls.h"

#define DECLARED(symbol, ...)    extern __typeof__(symbol) cs_wrap_##symbol;
#define CALL(name, sibling, ...) CS_SIBLINGS_##sibling(DECLARED, name, )
#include "shim/calls/calls.def"
#undef CALL
DECLARED(cuGetProcAddress)
DECLARED(cuGetProcAddress_v2)
#undef DECLARED

#endif
