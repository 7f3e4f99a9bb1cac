/*
 * A trace in Perfetto's own format, read as what the JSON form says: its header, rows, its trailer.
 * What the library writes comes back as it was said. Of other tools' files it is what a JSON trace
 * can say: slices, instants, counters, arrows, and what they are called.
 */
#ifndef CS_TRACE_PFTRACE_H
#define CS_TRACE_PFTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pftrace;
struct yyjson_val;

/* Whether a file that begins so is one. */
bool pftrace_is(const char *bytes, size_t n);

/* `texts`: times in rows are as JSON has them, in microseconds; else they are whole nanoseconds. */
struct pftrace *pftrace_new(bool texts);
void pftrace_feed(struct pftrace *p, const char *bytes, size_t n);
/* No bytes come any more: of a file that was cut short the last row is whole, and the end is
 * missing. */
void pftrace_end(struct pftrace *p);

enum pftrace_piece {
    PFTRACE_NONE, /* none is whole in what was fed */
    PFTRACE_HEAD, /* the text before the list of events: "{...," */
    PFTRACE_ROW,  /* an event as an object. A name in it may be a raw text: whole members, and its
                     value says nothing */
    PFTRACE_TAIL, /* the text behind the events: "],...}" */
};
struct pftrace_found {
    struct yyjson_val *row;
    const char *text;
    size_t length;
};
/* What stands next in the file. It holds until the next call. */
enum pftrace_piece pftrace_next(struct pftrace *p, struct pftrace_found *found);

/* Of a file that is damaged there, and of which all bytes have come: whether it is torn, as by a
 * kill in the middle of a write. Then no packets stand behind that. */
bool pftrace_tear(struct pftrace *p);
bool pftrace_is_headed(const struct pftrace *p);
bool pftrace_is_whole(
    const struct pftrace *p); /* no file of another tool says where it ends: behind any packet */
/* The file is damaged at this byte; 0: it is not. */
uint64_t pftrace_damaged(const struct pftrace *p);
/* Another trace begins at this byte, or events stand behind the end; 0: neither. */
uint64_t pftrace_joined(const struct pftrace *p);
/* Bytes behind the last whole packet. */
uint64_t pftrace_rest(const struct pftrace *p);
void pftrace_free(struct pftrace *p);

#endif
