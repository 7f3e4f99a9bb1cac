/* Declarations that the files pftrace*.c share. */
#ifndef CS_TOOLS_PFTRACE_INSIDE_H
#define CS_TOOLS_PFTRACE_INSIDE_H

#include <string.h>
#include <yyjson.h>

#include "shim/base/perfetto.h"
#include "tools/custream/trace/numbers.h"
#include "tools/custream/trace/pftrace.h"
#include "tools/custream/trace/texts.h"
#include "tools/custream/trace/value.h"
#include "tools/custream/trace/wire.h"

/* --- rows --- */

/* An event that is being made. Its texts are copied into `bytes`, except those of row_staying(). */
struct pf_row {
    yyjson_val *values;
    size_t count, capacity;
    size_t inner; /* for the open object or list: how many values lie in its closed members */
    struct rope bytes;
};
void row_grow(struct pf_row *row);
static inline yyjson_val *row_value(struct pf_row *row)
{
    if (row->count == row->capacity) row_grow(row);
    return &row->values[row->count++];
}
/* Adds a text that stays where it is as long as the trace is read: no copy is made. */
static inline void row_staying(struct pf_row *row, struct message text)
{
    yyjson_val *value = row_value(row);
    unsafe_yyjson_set_tag(value, YYJSON_TYPE_STR, PFTRACE_STAYS, message_size(text));
    value->uni.str = (const char *)text.at;
}
static inline void row_word(struct pf_row *row, const char *word)
{
    row_staying(row, message_of(word, strlen(word)));
}
void row_text(struct pf_row *row, struct message text);
/* Adds JSON as it is. JSON in place of a name stands for whole members; a value has to follow,
 * which is ignored. */
void row_raw(struct pf_row *row, struct message text);
static inline void row_uint(struct pf_row *row, uint64_t number)
{
    unsafe_yyjson_set_uint(row_value(row), number);
}
static inline void row_int(struct pf_row *row, int64_t number)
{
    unsafe_yyjson_set_sint(row_value(row), number);
}
static inline void row_bool(struct pf_row *row, bool yes)
{
    unsafe_yyjson_set_bool(row_value(row), yes);
}
static inline void row_null(struct pf_row *row) { unsafe_yyjson_set_null(row_value(row)); }
/* Begins an object or a list, which row_close() ends. Returns its place in row->values. */
size_t row_open(struct pf_row *row);
void row_close(struct pf_row *row, size_t opened, bool list);
void row_free(struct pf_row *row);

/* --- what earlier packets said --- */

/* Records by number. They never move. */
struct records {
    struct numbers places;
    void **at;
    size_t count, capacity;
    struct recent { /* records that were asked for of late */
        uint64_t key;
        void *record;
    } recent[16];
};
void *record_find(struct records *records, struct recent *recent, uint64_t key, size_t size);
/* Returns the key's record; a new record is zeros. */
static inline void *record_of(struct records *records, uint64_t key, size_t size)
{
    struct recent *recent = &records->recent[key * UINT64_C(0x9e3779b97f4a7c15) >> 60];
    return recent->record && recent->key == key ? recent->record
                                                : record_find(records, recent, key, size);
}

struct sequence {
    struct numbers texts;          /* interned texts, by number and field of InternedData */
    uint64_t number, clock, track; /* clock, track: the defaults for packets that name none */
};
struct clock {
    uint64_t at, boot; /* one moment, as time on this clock and on the trace's clock (boot) */
    uint64_t unit;     /* nanoseconds; 0: nothing is known about the clock */
    bool steps;        /* each of its times counts from the time of the packet before */
};

struct track {
    enum { TRACK_OTHER, TRACK_THREAD, TRACK_PROCESS, TRACK_COUNTER } kind;
    uint64_t pid, tid, parent, uuid;
    text name, unit;
    bool announced; /* TRACK_OTHER: other_lane() has given it pid, tid and the row of its name */
    struct open {
        struct pf_row *row;
        size_t duration; /* dur's value is row->values[duration] */
        uint64_t ns;
    } *open;
    size_t open_count, open_capacity;
};

struct argument { /* a field of the message of arguments, as the file describes it */
    text name;
    unsigned type;
    bool list;
};

struct pftrace {
    struct rope rest; /* bytes that were fed; at[0..done) have been read */
    size_t done;
    struct texts told;
    struct records sequences, tracks, fields, clocks;
    struct numbers words;
    struct pf_row **rows; /* rows[given..made) have not been told */
    size_t given, made, row_capacity;
    size_t counter_args;    /* the place of args in the last row, while counter_open */
    struct rope head, tail; /* the text before and behind the rows, until it is told */
    bool texts;             /* times in rows are as in JSON; else they are whole nanoseconds */
    bool headed, ended, counter_open, torn, inflates;
    bool ours; /* the file has our header */
    bool all;  /* all bytes were fed */
    uint64_t read, damaged, joined;
};

/* Returns the text that has the number; "" for 0. It stays as long as the trace is read. */
static inline struct message told(const struct pftrace *p, text number)
{
    return message_of(text_of(&p->told, number), text_length(&p->told, number));
}
/* Returns the text to which the sequence has given the number. */
struct message interned(
    const struct pftrace *p, const struct sequence *sequence, unsigned kind, uint64_t number);
text told_number(struct pftrace *p, struct message message);

/* pftrace_row.c */
void row_double(const struct pftrace *p, struct pf_row *row, uint64_t bits);
void extension_read(struct pftrace *p, struct message message);
void args_field(struct pftrace *p, struct pf_row *to, struct message args);
void args_note(const struct pftrace *p, const struct sequence *sequence, struct pf_row *to,
    struct message note, unsigned depth);
/* pftrace_event.c */
void track_read(struct pftrace *p, struct message message);
void event_read(struct pftrace *p, const struct sequence *sequence, uint64_t ns, bool bare,
    struct message event);
/* pftrace.c */
/* Begins a row. If *row is NULL, allocates it; otherwise uses its memory again. */
struct pf_row *row_begin(struct pf_row **row);
struct pf_row **row_place(struct pftrace *p); /* the place of the next row that will be told */
struct pf_row *row_new(struct pftrace *p);    /* begins a row that will be told */
void row_time(const struct pftrace *p, struct pf_row *to, uint64_t ns);

#endif
