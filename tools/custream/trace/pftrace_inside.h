/* Between the files pftrace*.c. */
#ifndef CS_TOOLS_PFTRACE_INSIDE_H
#define CS_TOOLS_PFTRACE_INSIDE_H

#include <yyjson.h>

#include "shim/base/perfetto.h"
#include "tools/custream/trace/pftrace.h"
#include "tools/custream/trace/value.h"

/* --- the wire --- */

struct message {
    const unsigned char *at, *end;
};
struct field {
    unsigned number, wire;
    uint64_t value;         /* of a number */
    struct message message; /* of bytes */
};
/* False at the end, and where the rest is damaged. */
bool field_next(struct message *message, struct field *field);
bool varint_next(struct message *message, uint64_t *value);
static inline double field_double(const struct field *field)
{
    double number;
    memcpy(&number, &field->value, 8);
    return number;
}

/* --- rows --- */

/* An event that is being made. Texts are copied; names of members are not, and live as long as the
 * file's reader. */
struct pf_row {
    yyjson_val *values;
    size_t count, capacity;
    char *bytes;
    size_t length, room;
};
void row_key(struct pf_row *row, const char *name, size_t n);
#define row_name(row, literal) row_key(row, literal, sizeof(literal) - 1)
void row_text(struct pf_row *row, struct message text);
void row_raw(struct pf_row *row,
    struct message
        text); /* JSON as it is. In place of a name: whole members, and a value that says nothing */
void row_uint(struct pf_row *row, uint64_t number);
void row_int(struct pf_row *row, int64_t number);
void row_double(struct pf_row *row, double number);
void row_bool(struct pf_row *row, bool yes);
void row_null(struct pf_row *row);
size_t row_open(struct pf_row *row); /* an object or a list, up to row_close */
void row_close(struct pf_row *row, size_t opened, bool list);
void row_clear(struct pf_row *row);
void row_free(struct pf_row *row);

/* --- numbers that stand for something --- */

struct map {
    struct map_entry {
        uint64_t key;
        void *value; /* NULL: none */
    } *entries;
    size_t count, capacity; /* a power of two */
};
void *map_get(const struct map *map, uint64_t key);
void **map_put(struct map *map, uint64_t key);
void map_free(struct map *map, void (*free_value)(void *));

/* --- what a file has told --- */

struct string {
    size_t length;
    char text[];
};
struct string *string_new(struct message message);
static inline struct message string_message(const struct string *s)
{
    const unsigned char *at = s ? (const unsigned char *)s->text : (const unsigned char *)"";
    return (struct message){at, at + (s ? s->length : 0)};
}

enum { TEXT_CATEGORY, TEXT_NAME, TEXT_KEY, TEXT_STRING, TEXTS };
struct sequence {
    struct map texts[TEXTS];
    struct map clocks;     /* of its own, from 64 on: struct clock */
    uint64_t clock, track; /* as its packets have them where they say nothing */
};
struct clock {
    uint64_t at, boot; /* it was at `at` when the trace's clock was at `boot`; one that steps: at
                          the packet before */
    uint64_t unit;
    bool steps;
};

struct open {
    struct pf_row row;
    size_t duration; /* its place in the row */
    uint64_t ns;
};
struct track {
    enum { TRACK_UNKNOWN, TRACK_THREAD, TRACK_PROCESS, TRACK_COUNTER, TRACK_OTHER } kind;
    uint64_t pid, tid, parent, uuid;
    struct string *name, *unit;
    bool announced; /* TRACK_OTHER: its name */
    struct open *open;
    size_t open_count, open_capacity;
};

struct argument { /* a field of the message of arguments */
    struct string *name;
    unsigned type;
    bool list;
};

struct pftrace {
    struct rope
        rest; /* bytes of a packet that has not come as a whole; rest.at[0..done) have been read */
    size_t done;
    struct map sequences, tracks, fields, words, clocks;
    struct pf_row
        *rows; /* of the packet that was read last: rows[given..made) have not been told */
    size_t given, made, row_capacity;
    size_t counter_args; /* the place of these in the row of a counter that may get more, which is
                            the last */
    struct rope head, tail; /* text that stands before and behind the rows, until it is told */
    bool texts;             /* times are as JSON has them, else whole nanoseconds */
    bool headed, ours, ended, counter_open, torn, all,
        inflates; /* ours: its header is there. all: no bytes come any more */
    uint64_t read, damaged, joined;
};

struct packet {
    struct sequence *sequence;
    uint64_t ns, flags;
    struct message event, track, interned;
};

/* pftrace_track.c */
struct track *track_get(struct pftrace *p, uint64_t uuid);
void track_read(struct pftrace *p, struct message message);
void track_lane(struct pftrace *p,
    struct track *track); /* pid and tid are known from then on, and its name is told */
/* pftrace_args.c */
void extension_read(struct pftrace *p, struct message message);
void args_field(struct pftrace *p, struct pf_row *to, struct message args);
void args_note(const struct sequence *sequence, struct pf_row *to, struct message note);
/* pftrace_event.c */
void event_read(struct pftrace *p, const struct packet *packet);
/* pftrace.c */
struct pf_row *row_new(struct pftrace *p); /* one that will be told */
void row_lane(struct pf_row *to, const struct track *track);
void row_time(const struct pftrace *p, struct pf_row *to, uint64_t ns);

#endif
