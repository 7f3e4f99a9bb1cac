/*
 * ThreadSanitizer in the program sees our calls of the C library, and not the atomics that order them: it would report races where there are none, and
 * end the process with its own status. It asks this function which libraries' calls to leave alone. One that the program defines has precedence.
 */
#include "shim/base/compiler.h"

#ifndef __SANITIZE_THREAD__ /* else it sees the atomics too */
CS_EXPORT const char *__tsan_default_suppressions(void);
CS_EXPORT const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:libcustream_shim.so\ncalled_from_lib:libcustream_shim_dlsym.so\n";
}
#endif
