/* Times that somebody types. */
#ifndef CS_TOOLS_DURATION_H
#define CS_TOOLS_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* "1.5", "1.5s", "20ms", "300us", "2m", "1h": nanoseconds, of at most three years; `behind` is where it ends. False: it is none. */
bool duration_read(const char *text, const char **behind, int64_t *ns);
/* The whole text is one, and lasts. */
bool duration_is(const char *text, int64_t *ns);

#endif
