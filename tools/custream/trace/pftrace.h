/* Reads a trace in Perfetto's own format as its JSON form: header, rows, trailer. A file of the
 * library's gives exactly what the JSON form says. Another tool's file gives what a JSON trace can
 * say: slices, instants, counters, arrows, and names. */
#ifndef CS_TRACE_PFTRACE_H
#define CS_TRACE_PFTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pftrace;
struct yyjson_val;

/* Whether a file that begins with these bytes is in Perfetto's own format. */
bool pftrace_is(const char *bytes, size_t n);

/* `texts`: in rows, times are microseconds and numbers with decimals are raw texts, as in JSON;
 * else times are whole nanoseconds, and numbers with decimals are doubles. */
struct pftrace *pftrace_new(bool texts);
void pftrace_feed(struct pftrace *p, const char *bytes, size_t n);
/* Says that all bytes were fed. Only then is the last packet read, as no packet follows it. */
void pftrace_end(struct pftrace *p);

enum pftrace_piece {
    PFTRACE_NONE, /* no whole piece is left in the bytes that were fed */
    PFTRACE_HEAD, /* the text before the list of events: "{...," */
    PFTRACE_ROW,  /* an event as an object. A raw text where a name should stand holds whole members
                     as JSON; the value behind it is to be ignored */
    PFTRACE_TAIL, /* the text behind the events: "],...}" */
};
/* The subtype of a row's string whose text stays in place as long as the trace is read. For such
 * texts, the same address means the same text. */
enum { PFTRACE_STAYS = 2 << 3 };
struct pftrace_found {
    struct yyjson_val *row;
    const char *text;
    size_t length;
};
/* Returns the kind of the next piece. `found` has the piece, until the next call. */
enum pftrace_piece pftrace_next(struct pftrace *p, struct pftrace_found *found);

/* Whether a damaged file is only torn, as by a kill in the middle of a write: no packets stand
 * behind the damage. If so, the file then ends before the damage and counts as undamaged. All bytes
 * must have been fed. */
bool pftrace_tear(struct pftrace *p);
bool pftrace_is_headed(const struct pftrace *p);
/* Whether the file is whole. Another tool's file has no mark at its end, so it is whole behind any
 * packet. */
bool pftrace_is_whole(const struct pftrace *p);
/* Returns at which byte, from 1, the file is damaged; 0: it is not. */
uint64_t pftrace_damaged(const struct pftrace *p);
/* Returns at which byte, from 1, another trace begins or events follow the end; 0: neither. */
uint64_t pftrace_joined(const struct pftrace *p);
/* Returns how many of the fed bytes stand behind the last packet that was read. */
uint64_t pftrace_rest(const struct pftrace *p);
void pftrace_free(struct pftrace *p);

#endif
