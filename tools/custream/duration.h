/* Times that somebody types. */
#ifndef CS_TOOLS_DURATION_H
#define CS_TOOLS_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* "1.5", "1.5s", "20ms", "300us", "2m", "1h": nanoseconds, of at most three years; `behind` is
 * where it ends. False: it is none. */
bool duration_read(const char *text, const char **behind, int64_t *ns);
/* The value of --OPTION, which lasts; false: the complaint was printed. */
bool duration_take(const char *command, const char *option, const char *text, int64_t *ns);

#endif
