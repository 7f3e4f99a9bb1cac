/*
 * NVTX: what a program says of itself reaches us through NVTX's injection interface.
 *
 * Each copy of NVTX 3 in the process (it is header-only: there is one in each library that uses it), and libnvToolsExt.so.1 too, asks
 * getenv("NVTX_INJECTION64_PATH") once, at its first call, for a library to load and to hand its table of functions to. We export getenv and answer with
 * our own path where the variable is not set. So nothing is in the environment, children see nothing of it, and a tool that set the variable has
 * precedence. (NVTX's other way in, a weak symbol, is hidden in the library that has it and can't be reached from outside.)
 */
#ifndef CS_WRAP_NVTX_H
#define CS_WRAP_NVTX_H

#include "shim/base/compiler.h"

/* Says, once the options are read, where ranges go if not to us. */
void cs_nvtx_say(void);

#endif
