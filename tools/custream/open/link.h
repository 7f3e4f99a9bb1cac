/* The link that opens a trace in Perfetto's UI, with lanes pinned. */
#ifndef CS_OPEN_LINK_H
#define CS_OPEN_LINK_H

#include <stddef.h>

/* `name` as one part of a path, as `/NAME` in a URL. To be freed. */
char *link_part(const char *name);

/* UI#!/?url=TRACE, with commands that pin the lanes of these names, in this order. To be freed. */
char *link_make(const char *ui, const char *trace, const char *const *pinned, size_t count);

#endif
