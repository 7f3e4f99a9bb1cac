/*
 * Events as packets of Perfetto's own format (protobuf, perfetto_trace.proto). Used by whoever writes a .pftrace: one thread for one struct cs_pf.
 *
 * Where a function appends, the caller has made room: CS_PF_EVENT_MAX bytes for an event with what it brings along. One event is built at a time: an
 * opening function, then keys with values, then cs_pf_close.
 *
 * What is told once and then has a short number: categories, names, keys and words. Such news go in packets before the event that needs them, so that each
 * prefix of the file that ends with a packet is a trace. A file begins with none of them known (cs_pf_begin).
 *
 * Keys are fields of one message, "debug", which extends TrackEvent; words are values of one enum. The file brings its own descriptors of both, which grow
 * with what is told: readers merge them. An argument takes two bytes or three so, where a DebugAnnotation takes six.
 */
#ifndef CS_BASE_PERFETTO_H
#define CS_BASE_PERFETTO_H

#include <string.h>

#include "shim/base/compiler.h"

/* --- numbers of the format that writer and reader share --- */

/* The wire: the lower three bits of a tag. */
enum { CS_WIRE_VARINT, CS_WIRE_64, CS_WIRE_BYTES, CS_WIRE_32 = 5 };

enum { /* Trace, TracePacket */
    CS_PF_PACKET = 1,
    CS_PF_CHROME_EVENTS = 5, CS_PF_CLOCK_SNAPSHOT = 6, CS_PF_TIMESTAMP = 8, CS_PF_SEQUENCE = 10, CS_PF_TRACK_EVENT = 11, CS_PF_INTERNED = 12,
    CS_PF_SEQUENCE_FLAGS = 13, CS_PF_RENDER_STAGE = 53, CS_PF_CLOCK_ID = 58, CS_PF_DEFAULTS = 59, CS_PF_TRACK = 60, CS_PF_EXTENSION_DESCRIPTOR = 72
};
enum { /* TrackEvent, DebugAnnotation, LegacyEvent */
    CS_PF_CATEGORY_IID = 3, CS_PF_ANNOTATION = 4, CS_PF_LEGACY = 6, CS_PF_TYPE = 9, CS_PF_NAME_IID = 10, CS_PF_TRACK_UUID = 11, CS_PF_CATEGORY = 22,
    CS_PF_NAME = 23, CS_PF_COUNTER_VALUE = 30, CS_PF_FLOW = 36, CS_PF_FLOW_ENDS = 42, CS_PF_COUNTER_DOUBLE = 44, CS_PF_ARGS = 1500,
    CS_PF_NOTE_NAME_IID = 1, CS_PF_NOTE_BOOL = 2, CS_PF_NOTE_UINT = 3, CS_PF_NOTE_INT = 4, CS_PF_NOTE_DOUBLE = 5, CS_PF_NOTE_STRING = 6,
    CS_PF_NOTE_POINTER = 7, CS_PF_NOTE_JSON = 9, CS_PF_NOTE_NAME = 10, CS_PF_NOTE_DICT = 11, CS_PF_NOTE_ARRAY = 12, CS_PF_NOTE_STRING_IID = 17,
    CS_PF_PHASE = 2, CS_PF_UNSCOPED_ID = 6, CS_PF_BIND_ID = 8, CS_PF_LOCAL_ID = 10, CS_PF_BIND_ENCLOSING = 12, CS_PF_BIND_WAY = 13, CS_PF_INSTANT_SCOPE = 14
};
enum { CS_PF_BIND_IN = 1, CS_PF_BIND_OUT }; /* LegacyEvent.FlowDirection */
enum { CS_PF_SAYS_BARE = 2 }; /* SEQ_NEEDS_INCREMENTAL_STATE, which is so of all events and is said by slices without arguments alone */
enum cs_pf_type { CS_PF_BEGIN = 1, CS_PF_END, CS_PF_INSTANT, CS_PF_COUNTER }; /* TrackEvent.Type; 0: a LegacyEvent tells */
enum { /* InternedData */
    CS_PF_INTERNED_CATEGORY = 1, CS_PF_INTERNED_NAME = 2, CS_PF_INTERNED_KEY = 3, CS_PF_INTERNED_STRING = 29
};
enum { /* TrackDescriptor, ThreadDescriptor, ProcessDescriptor, CounterDescriptor */
    CS_PF_UUID = 1, CS_PF_TRACK_NAME = 2, CS_PF_PROCESS = 3, CS_PF_THREAD = 4, CS_PF_PARENT = 5, CS_PF_COUNTER_TRACK = 8, CS_PF_CHILD_ORDER = 11,
    CS_PF_RANK = 12, CS_PF_DESCRIPTION = 14, CS_PF_PROCESS_ORDER = 19, CS_PF_THREAD_ORDER = 20,
    CS_PF_PID = 1, CS_PF_TID = 2, CS_PF_SORT = 3, CS_PF_THREAD_NAME = 5, CS_PF_PROCESS_NAME = 6, CS_PF_LABEL = 8, CS_PF_UNIT_NAME = 6
};
enum { CS_PF_CLOCK_BOOT = 6, CS_PF_CLOCK_REAL = 1, CS_PF_CLOCK_STEPS = 64 }; /* STEPS: since the packet before, of the same sequence */
enum { CS_PF_FIELD_UINT = 4, CS_PF_FIELD_SINT = 18, CS_PF_FIELD_DOUBLE = 1, CS_PF_FIELD_BOOL = 8, CS_PF_FIELD_STRING = 9, CS_PF_FIELD_ENUM = 14 }; /* FieldDescriptorProto */

/* Sequences of packets, each with times and numbers of its own. What begins on the host, and on GPUs: the second of the two is for what began before the last
 * one of the first, as a slice does that encloses others. Then counters, the rest, and one sequence per lane, whose track is understood: of the ends of its
 * slices, and once there are many, of their begins too. */
enum cs_pf_sequence {
    CS_PF_HOST = 1, CS_PF_HOST_EARLIER, CS_PF_GPU, CS_PF_GPU_EARLIER, CS_PF_COUNTS, CS_PF_OTHER, CS_PF_LANE,
    CS_PF_LANES = 4096, /* lanes beyond have none */
    CS_PF_SEQUENCES = CS_PF_LANE + CS_PF_LANES
};

/* Texts of the two packets that hold what stands around the events, as JSON. */
#define CS_PF_HEADER  "custream"
#define CS_PF_TRAILER "custream-end"

/* --- the wire --- */

static inline char *cs_pf_varint(char *at, cs_u64 n)
{
    for (; CS_UNLIKELY(n >= 128); n >>= 7) *at++ = (char)(n | 128);
    *at++ = (char)n;
    return at;
}
/* Fields have up to 2047 here, and nearly all of them are constants: then this is one store. */
static inline char *cs_pf_tag(char *at, unsigned field, unsigned wire)
{
    const unsigned tag = field << 3 | wire;
    if (tag < 128) return *at = (char)tag, at + 1;
    if (tag >= 1 << 14) return cs_pf_varint(at, tag);
    const cs_u16 both = (cs_u16)((tag & 127) | 128 | tag >> 7 << 8); /* the machine's order is the format's */
    return (char *)memcpy(at, &both, 2) + 2;
}
static inline char *cs_pf_uint(char *at, unsigned field, cs_u64 n) { return cs_pf_varint(cs_pf_tag(at, field, CS_WIRE_VARINT), n); }
static inline char *cs_pf_bytes(char *at, unsigned field, const void *text, size_t n)
{
    at = cs_pf_varint(cs_pf_tag(at, field, CS_WIRE_BYTES), n);
    return (char *)memcpy(at, text, n) + n;
}
char *cs_pf_put_text(char *at, unsigned field, const char *text, size_t n); /* with what is no UTF-8 replaced: up to 3 bytes for one */
static inline char *cs_pf_double(char *at, unsigned field, double number)
{
    at = cs_pf_tag(at, field, CS_WIRE_64);
    return (char *)memcpy(at, &number, 8) + 8; /* the machine's order is the format's */
}
static inline cs_u64 cs_pf_zigzag(cs_i64 n) { return (cs_u64)n << 1 ^ (cs_u64)(n >> 63); }

/* A message within another: its tag and a byte for its length; then, when all of it is there, its length, for which it moves if it is long. */
static inline char *cs_pf_nest(char *at, unsigned field) { return cs_pf_tag(at, field, CS_WIRE_BYTES) + 1; } /* the start for the next */
char *cs_pf_nested_long(char *start, char *at);
static inline char *cs_pf_nested(char *start, char *at)
{
    if (CS_UNLIKELY(at - start >= 128)) return cs_pf_nested_long(start, at);
    start[-1] = (char)(at - start);
    return at;
}

/* --- a file --- */

/* Which end of an arrow a slice is: the first; one of its last; its only last. */
enum cs_pf_end { CS_PF_NO_END, CS_PF_FIRST, CS_PF_LAST, CS_PF_ONLY_LAST };

enum { CS_PF_EVENT_MAX = 32 << 10, CS_PF_TEXT_MAX = 4096, CS_PF_ENTRIES = 1 << 16, CS_PF_SIDE = 16 << 10 };

struct cs_pf_entry {
    cs_u64 key; /* 0: none */
    cs_u32 number, seen; /* 0: not told; how often it was asked for before */
};

/* Where a text is used again and again: its number, once it has been told. OF_UINT: as a field for numbers. */
enum { CS_PF_OF_UINT = 3 << 13 | CS_PF_FIELD_UINT };
struct cs_pf_key {
    cs_u32 file;
    cs_u16 of, field;
};

/* A thread's row. */
struct cs_pf_lane {
    cs_u32 pid, tid;
    cs_u32 sequence; /* 0: none */
    cs_u64 track;    /* 0: no lane stands here */
};

struct cs_pf_told {
    cs_u64 last_ns;
    cs_u32 slices; /* of a lane: up to so many that it is said to have many */
    cs_u32 next[3]; /* numbers that have been given, of categories, names and keys */
};

struct cs_pf {
    struct cs_pf_entry *entries; /* CS_PF_ENTRIES of them, the caller's, zero */
    cs_u32 count, file;          /* used; which file this is */
    cs_u32 next[4];              /* numbers that have been given, by kind */
    cs_u32 descriptors;
    cs_u64 wall_ns;
    cs_u32 gpu_pids;             /* pids below it are GPUs */
    struct cs_pf_told told[CS_PF_SEQUENCES];
    struct cs_pf_lane lanes[256]; /* those of late, by what they are called */
    struct cs_pf_numbered {
        cs_u64 number;
        const char *(*text_of)(cs_u64 number);
        struct cs_pf_key key;
    } numbered[512]; /* texts of late that have a number of the caller's */
    struct cs_pf_named {
        cs_u64 category, name; /* the caller's numbers of both */
        const char *(*text_of)(cs_u64 name);
        cs_u32 file;
        cs_u16 sequence;
        unsigned char length;
        char bytes[9];
    } named[512]; /* what events of late are called, as it is written */
    bool plain;                  /* nothing may be told that is not told again: what is written is written over later */
    /* of the event that is being written */
    char *packet, *event, *args;
    unsigned sequence;
    bool ends, bare;
    cs_u32 lane_sequence;
    cs_u64 track, end_ns;
    struct {
        cs_u64 ns;
        cs_u32 pid, tid, values;
        size_t length;
        char name[512];
    } counter;
    const char *key;
    size_t key_length;
    struct cs_pf_key *key_kept;
    cs_u64 flow;
    enum cs_pf_end flow_end;
    size_t news_used, side_used;
    char news[CS_PF_SIDE], side[CS_PF_SIDE];
};

/* A text, or with a number of the caller's own that stands for it (then it is looked at only when that is new: text_of gives it). */
struct cs_pf_text {
    const char *text;
    size_t length;
    cs_u64 number;
    const char *(*text_of)(cs_u64 number);
    struct cs_pf_key *kept; /* NULL: the text may be another one the next time */
};

const char *cs_pf_text_at(cs_u64 place); /* of a text that stays where it is, as its number */

/* Forgets what was told; `zero`: the entries are zero already. */
void cs_pf_begin(struct cs_pf *pf, cs_u32 gpu_pids);
/* The packets that a file begins with. `header`: n bytes at `at`, which move: text as JSON. Room for 1 KiB more. */
char *cs_pf_head(struct cs_pf *pf, char *at, size_t n, cs_u64 wall_ns);
/* The packet that it ends with: its text stands from what is returned up to the end of the file; then the lengths are known. 64 bytes. */
char *cs_pf_tail(char *at);
void cs_pf_tail_ends(char *text, char *end);

/* --- events --- */

char *cs_pf_slice(struct cs_pf *pf, char *at, const struct cs_pf_text *category, const struct cs_pf_text *name, cs_u32 pid, cs_u32 tid, cs_u64 from_ns, cs_u64 to_ns);
enum cs_pf_scope { CS_PF_OF_THREAD, CS_PF_OF_ALL, CS_PF_OF_PROCESS }; /* LegacyEvent.InstantEventScope, but for threads */
char *cs_pf_instant(struct cs_pf *pf, char *at, enum cs_pf_scope scope, const struct cs_pf_text *category, const struct cs_pf_text *name, cs_u32 pid, cs_u32 tid, cs_u64 ns);
char *cs_pf_counter(struct cs_pf *pf, char *at, const struct cs_pf_text *name, cs_u32 pid, cs_u32 tid, cs_u64 ns); /* its arguments are numbers */
/* 'b' and 'e', 's' and 'f', 'B' and 'E' of the JSON format. The last two have no number. */
char *cs_pf_legacy(struct cs_pf *pf, char *at, char phase, const struct cs_pf_text *category, const struct cs_pf_text *name, cs_u32 pid, cs_u32 tid, cs_u64 ns, cs_u64 id);
char *cs_pf_close(struct cs_pf *pf, char *at);
/* Before it is closed: a slice has no arguments, where JSON tells that from none of them. */
static inline void cs_pf_bare(struct cs_pf *pf) { pf->bare = true; }
/* Before it is closed: a slice is an end of an arrow. */
static inline void cs_pf_flow(struct cs_pf *pf, cs_u64 id, enum cs_pf_end end) { pf->flow = id, pf->flow_end = end; }

/* --- arguments --- */

/* `kept`: the text stays where it is, and ends with a zero. */
static inline void cs_pf_key(struct cs_pf *pf, const char *text, size_t n, struct cs_pf_key *kept) { pf->key = text, pf->key_length = n, pf->key_kept = kept; }
char *cs_pf_value_uint(struct cs_pf *pf, char *at, cs_u64 n);
/* Of an event that is no counter, under a key that is `kept`, where that is known to be a field: of numbers there are very many. NULL: it is not. */
static inline char *cs_pf_kept_uint(struct cs_pf *pf, char *at, const struct cs_pf_key *kept, cs_u64 n)
{
    if (CS_UNLIKELY(kept->file != pf->file || kept->of != CS_PF_OF_UINT || !pf->packet)) return NULL;
    if (!pf->args) at = pf->args = cs_pf_nest(at, CS_PF_ARGS);
    return cs_pf_varint(cs_pf_tag(at, kept->field, CS_WIRE_VARINT), n);
}
char *cs_pf_value_int(struct cs_pf *pf, char *at, cs_i64 n);
char *cs_pf_value_double(struct cs_pf *pf, char *at, double number);
char *cs_pf_value_bool(struct cs_pf *pf, char *at, bool yes);
char *cs_pf_value_pointer(struct cs_pf *pf, char *at, cs_u64 n);            /* shown as "0x1f" */
char *cs_pf_value_word(struct cs_pf *pf, char *at, const struct cs_pf_text *text); /* one that comes again */
char *cs_pf_value_text(struct cs_pf *pf, char *at, const char *text, size_t n);
char *cs_pf_value_uints(struct cs_pf *pf, char *at, const cs_u32 *numbers, size_t n);
char *cs_pf_value_json(struct cs_pf *pf, char *at, const char *json, size_t n); /* anything else */

/* --- what processes and threads are called; whole packets. `order`: NULL for none --- */

/* `more`: what the JSON form says besides the name: members, as JSON, of at most CS_PF_MORE bytes. */
enum { CS_PF_MORE = 1024 };
#define CS_PF_MORE_MARK "also " /* what they are behind of, in the description of a track */
char *cs_pf_thread(struct cs_pf *pf, char *at, cs_u32 pid, cs_u32 tid, const char *name, size_t n, const char *more, size_t more_n, const cs_i64 *order);
char *cs_pf_process(struct cs_pf *pf, char *at, cs_u32 pid, cs_u32 tid, const char *name, size_t n, const char *label, size_t label_n, const cs_i64 *order);

#endif
