/*
 * A trace in Perfetto's own format, read as the text of the JSON form: one event a line, as the library writes them. So nobody else knows that there are two.
 *
 * Bytes go in as they come; whole packets become text. What the library writes comes back as it was said. Of other tools' files it is what a JSON trace can
 * say: slices, instants, counters, arrows, and what they are called; packets that say something else are counted.
 */
#ifndef CS_TOOLS_PFTRACE_H
#define CS_TOOLS_PFTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pftrace;

/* Whether a file that begins so is one. */
bool pftrace_is(const char *bytes, size_t n);

struct pftrace *pftrace_new(void);
void pftrace_feed(struct pftrace *p, const char *bytes, size_t n);
/* No bytes come any more: of a file that was cut short the last row is whole, and the end is missing. */
void pftrace_end(struct pftrace *p);
/* Of a file that is damaged there, and of which all bytes have come: whether it is torn, as by a kill in the middle of a write. Then no packets stand behind that. */
bool pftrace_tear(struct pftrace *p);
/* The text that has come of it since; it stays until the next call. NULL: none. */
const char *pftrace_text(struct pftrace *p, size_t *n);
/* Packets that no JSON trace has anything for. And: the file is damaged at this byte, 0: it is not. */
uint64_t pftrace_left_out(const struct pftrace *p);
uint64_t pftrace_damaged(const struct pftrace *p);
/* Another trace begins at this byte, or events stand behind the end; 0: neither. */
uint64_t pftrace_joined(const struct pftrace *p);
/* Bytes behind the last whole packet. */
uint64_t pftrace_rest(const struct pftrace *p);
void pftrace_free(struct pftrace *p);

#endif
