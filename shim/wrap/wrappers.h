/*
 * The wrappers under the names by which the shim itself knows them. Each is also exported under the driver's symbol; inside the library that name
 * must not be used, since it may resolve to somebody else's.
 */
#ifndef CS_WRAP_WRAPPERS_H
#define CS_WRAP_WRAPPERS_H

#include "shim/calls/calls.h"

#define DECLARED(symbol, ...)    extern CS_EXPORT __typeof__(symbol) cs_wrap_##symbol;
#define CALL(name, sibling, ...) CS_SIBLINGS_##sibling(DECLARED, name, )
#include "shim/calls/calls.def"
#undef CALL
DECLARED(cuGetProcAddress)
DECLARED(cuGetProcAddress_v2)
#undef DECLARED

/* The wrapper under the driver's name, with a version that is hidden and the first of the library. Such a symbol answers the references of programs that
 * are linked to the driver, which name no version, and is passed over by dlsym: what RTLD_DEFAULT, RTLD_NEXT and the program's own handle find, with us
 * and without, stays the loader's business (glibc, check_match in elf/dl-lookup.c). */
#define CS_EXPORTED(symbol) __asm__(".symver cs_wrap_" #symbol ", " #symbol "@CUSTREAM");

#endif
