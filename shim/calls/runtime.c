#include "shim/calls/runtime.h"

static const char *const names[CS_RUNTIME_COUNT] = {
#define NAME(symbol, ...)           #symbol,
#define RUNTIME(name, sibling, ...) CS_RUNTIME_SIBLINGS_##sibling(NAME, name, )
#include "shim/calls/runtime.def"
#undef RUNTIME
#undef NAME
};

const char *cs_runtime_name(unsigned call) { return call >= CS_CALL_COUNT && call < CS_RUNTIME_END ? names[call - CS_CALL_COUNT] : ""; }
