/*
 * CUDA's driver. It is reached by its exported symbols, looked up as any program does: with the preload library in the process that gives its wrappers,
 * so what the API does is recorded, and steered by policy, as the program's own calls are. What only the preload library can tell is asked through link.h.
 */
#ifndef CS_API_DRIVER_H
#define CS_API_DRIVER_H

#include "shim/api/thread.h"

struct api_driver {
#define NEEDED(name) __typeof__(&name) name;
#define WANTED(name) __typeof__(&name) name;
#include "shim/api/driver.def"
#undef NEEDED
#undef WANTED
};
extern struct api_driver api_driver;

status api_ready(void); /* custream_init with the defaults, where nobody has called it */
bool api_makes_contexts(void);
bool api_forked(void);

/* The answer of a call of the driver: kept as the thread's last one. */
status api_result(CUresult result);
#define CUDA(name, ...) api_result(api_driver.name(__VA_ARGS__))
/* The same of what ends an object: one that has gone already, with its context or with the driver, has ended. */
status api_ended(CUresult result);
#define CUDA_ENDS(name, ...) api_ended(api_driver.name(__VA_ARGS__))

#endif
