/*
 * Which copy of the CUDA runtime a call is for: the one that the loader would have bound it to, had we not been in front of it (docs/runtime-level.md).
 *
 * Any thread; also before constructors have run. Takes no lock that the loader holds while it runs constructors, leaves dlerror() and errno alone, and
 * loads nothing.
 */
#ifndef CS_WRAP_RUNTIME_COPY_H
#define CS_WRAP_RUNTIME_COPY_H

#include "shim/calls/runtime.h"

/* The function of that name in the copy for the module that holds `caller`; where that is not certain, for the one that holds the address `of`, if that imports anything
 * of cudart. `of` is the caller itself for calls without a host function or variable. Never NULL: where no copy is there, a function that says so. */
void *cs_runtime_function(enum cs_runtime_call call, const void *of, const void *caller);

#endif
