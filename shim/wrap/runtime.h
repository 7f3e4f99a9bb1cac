/*
 * Functions of the CUDA runtime, under the names by which the shim knows them: cs_run_cudaX. Each is also exported under the runtime's symbol and
 * versions, and inside the library that name must not be used.
 */
#ifndef CS_WRAP_RUNTIME_H
#define CS_WRAP_RUNTIME_H

#include "shim/calls/runtime.h"

/* Whether slices of the runtime's calls are wanted. Once, before the mode leaves COLD. */
void cs_runtime_begin(bool shown);

/* runtime_copy.c: the function of that name in the copy for the module that holds `caller`; where that is not certain, for the one that holds the address
 * `of`, if that imports anything of cudart. `of` is the caller itself for calls without a host function or variable. Never NULL: where no copy is there, a
 * function that says so. */
void *cs_runtime_function(enum cs_runtime_call call, const void *of, const void *caller);

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
