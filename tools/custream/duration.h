/* Times that somebody types. */
#ifndef CS_TOOLS_DURATION_H
#define CS_TOOLS_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* "1.5", "20ms", "2m", "1h" in nanoseconds, up to three years; `behind` is its end. False: none. */
bool duration_read(const char *text, const char **behind, int64_t *ns);
/* The value of --OPTION, which lasts; false: the complaint was printed. */
bool duration_take(const char *command, const char *option, const char *text, int64_t *ns);

#endif
