#include "custream.h"

#include "shim/base/compiler.h"

CS_EXPORT const char *custream_version(void) { return CUSTREAM_VERSION_STRING; }
