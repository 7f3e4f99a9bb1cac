/* A library that looks symbols up; WHO names its function. DEFINES gives it definitions of its own,
 * AT_LOAD look-ups from its constructor. */
#define _GNU_SOURCE
#include "ask.h"

#define NAMED(who)  DEFINED(who)
#define DEFINED(who) void *ask_##who(const char *how, const char *name); ASK_DEFINE(who)
NAMED(WHO)

#ifdef DEFINES
#define EXPORT __attribute__((visibility("default")))
EXPORT int cuLaunchKernel(void);
EXPORT int cuLaunchKernel(void) { return 1; }
EXPORT int dlsym_sample(void);
EXPORT int dlsym_sample(void) { return 2; }
EXPORT double strtod(const char *text, char **end);
EXPORT double strtod(const char *text, char **end) { return (void)text, (void)end, 3.0; }
#endif

#ifdef AT_LOAD
__attribute__((constructor)) static void at_load(void)
{
    static const char *const names[] = {
        "cuLaunchKernel", "cuInit", "strtod", "dlsym_sample", "no_such_symbol"};
    for (int i = 0; i < 5; i++) {
#define ASKED_(who) ask_##who
#define ASKED(who)  ASKED_(who)
        ASKED(WHO)("default", names[i]);
        ASKED(WHO)("next", names[i]);
    }
}
#endif
