/*
 * Which copy of the CUDA runtime a call is for: the one that the loader would have bound it to, had we not been in front of it (docs/runtime-level.md).
 *
 * Any thread; also before constructors have run. Takes no lock that the loader holds while it runs constructors, leaves dlerror() and errno alone, and
 * loads nothing.
 */
#ifndef CS_HOOK_RUNTIME_COPY_H
#define CS_HOOK_RUNTIME_COPY_H

#include "shim/calls/runtime.h"

/* The function of that name in the copy for the module that holds the address `of`, or, where that imports nothing of cudart, for the one that holds
 * `caller`. Never NULL: where no copy is there, a function that says so. */
void *cs_runtime_function(enum cs_runtime_call call, const void *of, const void *caller);

#endif
