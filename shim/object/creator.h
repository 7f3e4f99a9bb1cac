/*
 * Who made an object: the library of the first caller outside the CUDA runtime.
 *
 * A program with a static cudart, or of the driver API, calls the wrapper itself, and the return address tells. Behind a shared libcudart the stack
 * is unwound by libgcc's unwinder, only at creations; where that is not loaded the runtime is named.
 */
#ifndef CS_OBJECT_CREATOR_H
#define CS_OBJECT_CREATOR_H

#include "shim/object/names.h"

bool cs_creator_init(void);

/* Has the unwinder loaded, once. For a thread that is in the loader anyway: a runtime looks the driver's functions up before it makes anything. */
void cs_creator_in_loader(void);

/* File name without directories, as an interned name; 0 if it can't be told. Call it from the thread that makes the object. */
cs_name cs_creator_of(const void *return_address);

/* The place in the program: the return address of the first caller that is none of the runtime's, be it linked into the program itself, nor of the stubs
 * that nvcc makes of kernels, as far as names of functions tell. The first time a place is met its module's file may be opened (base/place.h). Likewise. */
const void *cs_creator_place(const void *return_address);

#endif
