/*
 * The driver's own entry points, typed by cuda.h.
 *
 * cs_real.cuX is never NULL for a call of the table once cs_real_init() has succeeded: a symbol that this driver lacks points to a function
 * that returns CUDA_ERROR_NOT_SUPPORTED. The calls of used.def may be NULL.
 */
#ifndef CS_CALLS_REAL_H
#define CS_CALLS_REAL_H

#include "shim/calls/calls.h"

struct cs_real {
#define POINTER(symbol, ...)     __typeof__(&symbol) symbol;
#define CALL(name, sibling, ...) CS_SIBLINGS_##sibling(POINTER, name, )
#include "shim/calls/calls.def"
#undef CALL
#undef POINTER
    __typeof__(&cuGetProcAddress) cuGetProcAddress;
    __typeof__(&cuGetProcAddress_v2) cuGetProcAddress_v2;
#define USED(name) __typeof__(&name) name;
#include "shim/calls/used.def"
#undef USED
};
CS_HIDDEN extern struct cs_real cs_real;

/* What stands for a call that the driver lacks. */
CUresult cs_real_missing(void);

/* Looks all of them up in the driver that the process has loaded; false if it has loaded none. Before that, every call of the table answers
 * CUDA_ERROR_NO_DEVICE (see cs_real_or_elsewhere). One thread at a time; loads nothing. */
bool cs_real_init(void);

/* Whether that driver is still loaded; from now on it is, whoever closes it (takes the loader's lock); it is not, and all is as before it was met. */
bool cs_real_is_there(void);
bool cs_real_stays(void);
void cs_real_forget(void);

/* The entry point itself, unless no driver has been met: then the function to which the loader would have bound the caller, had we not been in front of it. A
 * library of another name may be the driver to its users (an emulator, one that takes calls to another machine), or open the driver when it is first called. */
void *cs_real_or_elsewhere(void *real, const char *name, const void *caller);

/* The driver's name of an error code, "CUDA_ERROR_INVALID_HANDLE"; NULL before the code has been seen. cs_result_seen asks the driver, on
 * the thread that got the code; the writer only reads, since it must call nothing of CUDA. */
const char *cs_result_name(CUresult result);
void cs_result_seen(CUresult result);

#endif
