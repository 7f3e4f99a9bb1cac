/*
 * Functions of the CUDA runtime, under the names by which the shim knows them: cs_run_cudaX. Each is also exported under the runtime's symbol and
 * versions, and inside the library that name must not be used.
 */
#ifndef CS_WRAP_RUNTIME_H
#define CS_WRAP_RUNTIME_H

#include "shim/calls/runtime.h"

/* Whether their slices are wanted. Once, before the mode leaves COLD. */
void cs_runtime_begin(bool shown);

/* The header says of some that they are old; programs call them all the same. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define DECLARED(symbol, name, ...)          extern CS_EXPORT __typeof__(name) cs_run_##symbol;
#define RUNTIME(name, sibling, versions, ...) CS_RUNTIME_SIBLINGS_##sibling(DECLARED, name, )
#include "shim/calls/runtime.def"
#undef RUNTIME
#undef DECLARED
#pragma GCC diagnostic pop

#endif
