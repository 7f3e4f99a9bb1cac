/*
 * Names of kernels as people read them, and as JSON. The writer thread's alone.
 *
 * The demangler is the C++ library's own, __cxa_demangle of the libstdc++ or libc++abi that the process has loaded. None is opened for it: a libstdc++
 * of ours, once loaded, would stand in for the newer one that a program brings along and loads later (conda's), whose libraries then fail to load.
 * Where there is none, or it refuses (libstdc++: names of more than 1,024 characters, as CUTLASS has), the name stays mangled, as PyTorch's profiler
 * has it then; the short form is there all the same.
 */
#ifndef CS_TRACE_DEMANGLE_H
#define CS_TRACE_DEMANGLE_H

#include "shim/object/names.h"

enum { CS_KERNEL_TEXT = 4096 }; /* bytes of a name that the timeline shows */

/* Both forms of a symbol's name, each cut to its room and ended with 0; one that was cut says so (cs_name_cut). A size of 0: not wanted.
 *   full   "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, ...>(int, ...)"
 *   brief  "at::native::vectorized_elementwise_kernel": no return type, template arguments or parameters
 * False where it is no C++ name, which then stands in both, or can't be demangled: then `full` is the name as it is. */
bool cs_demangle(const char *mangled, char *full, size_t full_size, char *brief, size_t brief_size);

/* An interned name as a JSON string with its quotes, made at its first use and kept: as it is demangled, and its short form. At most
 * 6 * CS_KERNEL_TEXT + 2 bytes each; in nearly all cases far less. */
char *cs_put_kernel(char *at, cs_name name);
char *cs_put_kernel_brief(char *at, cs_name name);

/* A number of the text that the first of these puts, as good as the text itself: two symbols may have one text. Of 0, that of "kernel". */
cs_u64 cs_kernel_key(cs_name name);

/* The same without quotes, made anew each time; it stays until the next call for the same form. */
const char *cs_kernel_text(cs_name name, bool brief);

#endif
