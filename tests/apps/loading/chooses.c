/* A library with a function whose code is chosen when the library is bound, by the environment.
 * That is before libraries in front of it are bound. */
#include <stdlib.h>

static int usual(void) { return 1; }
static int other(void) { return 2; }
static int (*choose(void))(void) { return getenv("LOADING_OTHER") ? other : usual; }
int chosen(void) __attribute__((ifunc("choose")));

int use(void) { return chosen(); }
