/* Between the files pftrace*.c. */
#ifndef CS_TOOLS_PFTRACE_INSIDE_H
#define CS_TOOLS_PFTRACE_INSIDE_H

#include "shim/base/perfetto.h"
#include "tools/custream/pftrace.h"

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

/* --- text --- */

struct rope {
    char *at;
    size_t length, capacity;
};
char *rope_room(struct rope *text, size_t n); /* where n bytes may go; rope_used says how many did */
static inline void rope_used(struct rope *text, const char *end) { text->length = (size_t)(end - text->at); }
void rope_put(struct rope *text, const char *bytes, size_t n);
void rope_print(struct rope *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define rope_literal(text, literal) rope_put(text, literal, sizeof(literal) - 1)
void rope_uint(struct rope *text, uint64_t n);
void rope_int(struct rope *text, int64_t n);
void rope_double(struct rope *text, double number);
void rope_us(struct rope *text, uint64_t ns);
void rope_quoted(struct rope *text, struct message string);

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
    struct map clocks; /* of its own, from 64 on: struct clock */
    uint64_t clock, track; /* as its packets have them where they say nothing */
};
struct clock {
    uint64_t at, boot; /* it was at `at` when the trace's clock was at `boot`; one that steps: at the packet before */
    uint64_t unit;
    bool steps;
};

struct open {
    struct rope head, tail; /* of the row, what is before and behind its duration */
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
    struct rope rest;  /* bytes of a packet that has not come as a whole */
    struct rope out, given;
    struct map sequences, tracks, fields, words, clocks;
    bool headed, ours, ended, rows, counter_open, torn; /* ours: its header is there */
    uint64_t read, damaged, joined, left_out;
};

struct packet {
    struct sequence *sequence;
    uint64_t ns, flags;
    struct message event, track, interned;
};

/* pftrace_track.c */
struct track *track_get(struct pftrace *p, uint64_t uuid);
void track_read(struct pftrace *p, struct message message);
void track_lane(struct pftrace *p, struct track *track); /* pid and tid are known from then on, and its name is told */
/* pftrace_args.c */
void extension_read(struct pftrace *p, struct message message);
void args_field(struct pftrace *p, struct rope *to, struct message args);
void args_note(struct pftrace *p, const struct sequence *sequence, struct rope *to, struct message note);
/* pftrace_event.c */
void event_read(struct pftrace *p, const struct packet *packet);
void row_begin(struct pftrace *p); /* what goes to p->out is a row from here on */
void row_lane(struct rope *to, const struct track *track);

#endif
