/*
 * Events of the timeline: the one place that knows how they look in the file. The writer thread's alone.
 *
 * A file has one of two formats: JSON in the Chrome trace event format, or packets of Perfetto's own (event_packets.h, base/perfetto.h). Each function here
 * begins with the question which it is. Nobody else asks.
 *
 * Callers say what there is: a lane, times in ns, a category, a name, keys and values. None of them hands over text of the format. A draft is an event on its
 * way into the output, passed on by value so that it stays in a register:
 *
 *     struct cs_draft e = cs_slice(cs_draft(), "cs_stream", cs_title("capture"), cs_lane_at(pid, tid), from_ns, to_ns);
 *     e = cs_arg_uint(e, "cs.stream", stream->lane);
 *     cs_commit(cs_args_end(e));
 *
 * All that goes into one draft is in the file together or not at all, and has to fit CS_EVENT_MAX bytes (out/output.h).
 */
#ifndef CS_TRACE_EVENT_H
#define CS_TRACE_EVENT_H

#include "shim/base/json.h"
#include "shim/object/names.h"
#include "shim/out/output.h"
#include "shim/trace/event_packets.h"

struct cs_draft {
    char *at;
};
CS_HOT struct cs_draft cs_draft(void) { return (struct cs_draft){cs_output_room()}; } /* room for one event; what is in it counts with the commit */
CS_HOT void cs_commit(struct cs_draft e) { cs_output_commit(e.at); }
CS_HOT void cs_commit_record(struct cs_draft e) { cs_output_commit_told(e.at); } /* the event of the record that is being read */

/* Where an event stands. */
struct cs_lane {
    cs_u32 pid, tid;
};
CS_HOT struct cs_lane cs_lane_at(cs_u32 pid, cs_u32 tid) { return (struct cs_lane){pid, tid}; }

/* What an event is called: a text of ours, without quotes, backslashes or control characters; one from outside, of which at most so many bytes count; a
 * kernel by its mangled name, as people read it. */
struct cs_title {
    const char *text;
    cs_u32 max;     /* 0: ours */
    cs_name kernel; /* where text is NULL */
};
CS_HOT struct cs_title cs_title(const char *ours) { return (struct cs_title){ours, 0, 0}; }
CS_HOT struct cs_title cs_title_given(const char *text, cs_u32 max) { return (struct cs_title){text, max, 0}; }
CS_HOT struct cs_title cs_title_kernel(cs_name name) { return (struct cs_title){NULL, 0, name}; }

/* --- kinds of events: each opens its arguments, which cs_args_end closes with the event --- */

struct cs_draft cs_slice(struct cs_draft, const char *category, struct cs_title, struct cs_lane, cs_u64 from_ns, cs_u64 to_ns); /* lasts 1 ns at least */
enum cs_instant_of { CS_INSTANT_THREAD, CS_INSTANT_PROCESS };
struct cs_draft cs_instant(struct cs_draft, enum cs_instant_of, const char *category, struct cs_title, struct cs_lane, cs_u64 ns);
struct cs_draft cs_counter(struct cs_draft, struct cs_title, struct cs_lane, cs_u64 ns); /* its arguments are its values from then on */
enum cs_end { CS_END_FIRST, CS_END_LAST, CS_END_ONLY_LAST };
struct cs_draft cs_span_end(struct cs_draft, enum cs_end, const char *category, struct cs_title, struct cs_lane, cs_u64 ns, cs_u64 id); /* may lie over others */

/* The last comma becomes a brace. */
CS_HOT struct cs_draft cs_args_end(struct cs_draft e)
{
    if (CS_UNLIKELY(cs_packets)) return (struct cs_draft){cs_packets_close(e.at)};
    return (struct cs_draft){cs_put_literal(e.at - (e.at[-1] == ','), "}}")};
}

/* The same, of a slice that is an end of an arrow too: the arrow of that number leads from the slice that is its first end to each that is its last. The first
 * one begins earlier, and is in the file before them. Its category is ac2g. ONLY_LAST: no other slice is a last end of it. */
struct cs_draft cs_args_end_bound(struct cs_draft, enum cs_end, cs_u64 id);

/* Slices of which there are very many: what does not change of one is made once a file. */
struct cs_slice_head {
    char text[4 * CS_JSON_BLOCK];
    cs_u16 length;
    const char *category, *name;
    cs_u32 pid;
};
void cs_slice_head_make(struct cs_slice_head *head, const char *category, const char *name, cs_u32 pid); /* texts of ours */
struct cs_draft cs_slice_made(struct cs_draft, const struct cs_slice_head *, cs_u32 tid, cs_u64 from_ns, cs_u64 to_ns);

/* --- events without arguments: these are whole --- */

struct cs_draft cs_slice_bare(struct cs_draft, const char *category, struct cs_title, struct cs_lane, cs_u64 from_ns, cs_u64 to_ns);

/* From the slice that is there at the first end to the one at the last; both ends in one file. The id is the arrow's own in the file (trace/gpu.h). */
struct cs_draft cs_arrow_end(struct cs_draft, enum cs_end, const char *category, cs_u64 id, struct cs_lane, cs_u64 ns);
CS_HOT struct cs_draft cs_arrow(struct cs_draft e, const char *category, cs_u64 id, struct cs_lane from, cs_u64 from_ns, struct cs_lane to, cs_u64 to_ns)
{
    return cs_arrow_end(cs_arrow_end(e, CS_END_FIRST, category, id, from, from_ns), CS_END_LAST, category, id, to, to_ns);
}

/* Of a process or a thread: what it is called, where it stands among the others, what else is to be said of it. Of a name 512 bytes count. Of these, a name takes
 * more arguments, and ends with cs_args_end. */
enum cs_meta_of { CS_META_PROCESS, CS_META_THREAD };
struct cs_draft cs_meta_name(struct cs_draft, enum cs_meta_of, struct cs_lane, const char *name);
struct cs_draft cs_meta_order(struct cs_draft, enum cs_meta_of, struct cs_lane, cs_u32 order);
struct cs_draft cs_meta_label(struct cs_draft, struct cs_lane, const char *label);

/* --- arguments: a key, then its value. cs_arg_uint(e, "key", n) and so on do both for a key that is a literal --- */

/* The number that the key has in a file of packets is kept where it is used. */
#define cs_arg_key(e, literal)                                                                                                \
    ({                                                                                                                        \
        static struct cs_pf_key cs_kept;                                                                                      \
        struct cs_draft cs_keyed = e;                                                                                         \
        CS_UNLIKELY(cs_packets) ? cs_packets_key(literal, sizeof(literal) - 1, &cs_kept), cs_keyed                             \
                                : (struct cs_draft){cs_put_literal(cs_keyed.at, "\"" literal "\":")};                         \
    })
struct cs_draft cs_arg_named(struct cs_draft, const char *key); /* a text of ours */

/* A key made once. */
struct cs_key {
    char text[CS_JSON_BLOCK];
    unsigned char length;
    const char *name;
    struct cs_pf_key kept;
};
void cs_key_make(struct cs_key *key, const char *name); /* a text of ours, which stays */
CS_HOT struct cs_draft cs_arg_made(struct cs_draft e, struct cs_key *key)
{
    if (CS_UNLIKELY(cs_packets)) return cs_packets_key(key->name, key->length - 3, &key->kept), e;
    return (struct cs_draft){cs_put_blocks(e.at, key->text, key->length)};
}

CS_HOT struct cs_draft cs_value_next(char *at) { return *at = ',', (struct cs_draft){at + 1}; }
CS_HOT struct cs_draft cs_value_uint(struct cs_draft e, cs_u64 n)
{
    return CS_UNLIKELY(cs_packets) ? (struct cs_draft){cs_packets_uint(e.at, n)} : cs_value_next(cs_put_uint(e.at, n));
}
CS_HOT struct cs_draft cs_value_int(struct cs_draft e, cs_i64 n)
{
    return CS_UNLIKELY(cs_packets) ? (struct cs_draft){cs_packets_int(e.at, n)} : cs_value_next(cs_put_int(e.at, n));
}
CS_HOT struct cs_draft cs_value_hex(struct cs_draft e, cs_u64 n)
{
    return CS_UNLIKELY(cs_packets) ? (struct cs_draft){cs_packets_hex(e.at, n)} : cs_value_next(cs_put_hex(e.at, n));
}
CS_HOT struct cs_draft cs_value_us(struct cs_draft e, cs_u64 ns)
{
    return CS_UNLIKELY(cs_packets) ? (struct cs_draft){cs_packets_us(e.at, ns)} : cs_value_next(cs_put_us(e.at, ns));
}
CS_HOT struct cs_draft cs_value_word(struct cs_draft e, const char *ours) /* a text as in cs_title */
{
    if (CS_UNLIKELY(cs_packets)) return (struct cs_draft){cs_packets_word(e.at, ours)};
    *e.at = '"';
    char *at = cs_put_text(e.at + 1, ours);
    *at = '"';
    return cs_value_next(at + 1);
}
CS_HOT struct cs_draft cs_value_constant(struct cs_draft e, const char *ours) /* the same, of a text that stays where it is */
{
    return CS_UNLIKELY(cs_packets) ? (struct cs_draft){cs_packets_constant(e.at, ours)} : cs_value_word(e, ours);
}
CS_HOT struct cs_draft cs_value_uints(struct cs_draft e, const cs_u32 *numbers, size_t n) /* a list, of one number at least */
{
    if (CS_UNLIKELY(cs_packets)) return (struct cs_draft){cs_packets_uints(e.at, numbers, n)};
    char *at = e.at;
    for (size_t i = 0; i < n; i++) *at = i ? ',' : '[', at = cs_put_uint(at + 1, numbers[i]);
    *at = ']';
    return cs_value_next(at + 1);
}
struct cs_draft cs_value_double(struct cs_draft, double number);
struct cs_draft cs_value_bool(struct cs_draft, bool yes);
struct cs_draft cs_value_text(struct cs_draft, const char *text, size_t max); /* a text from outside */
struct cs_draft cs_value_kernel(struct cs_draft, cs_name kernel);
struct cs_draft cs_value_kernel_brief(struct cs_draft, cs_name kernel);

#define cs_arg_uint(e, literal, n)                                                                                            \
    ({                                                                                                                        \
        static struct cs_pf_key cs_kept;                                                                                      \
        struct cs_draft cs_keyed = e;                                                                                         \
        const cs_u64 cs_number = n;                                                                                           \
        CS_UNLIKELY(cs_packets) ? (struct cs_draft){cs_packets_arg_uint(cs_keyed.at, literal, sizeof(literal) - 1, &cs_kept, cs_number)}  \
                                : cs_value_next(cs_put_uint(cs_put_literal(cs_keyed.at, "\"" literal "\":"), cs_number));     \
    })
#define cs_arg_int(e, key, n)          cs_value_int(cs_arg_key(e, key), n)
#define cs_arg_hex(e, key, n)          cs_value_hex(cs_arg_key(e, key), n)
#define cs_arg_us(e, key, ns)          cs_value_us(cs_arg_key(e, key), ns) /* or any other number of thousandths */
#define cs_arg_bool(e, key, yes)       cs_value_bool(cs_arg_key(e, key), yes)
#define cs_arg_word(e, key, ours)      cs_value_word(cs_arg_key(e, key), ours)
#define cs_arg_constant(e, key, ours)  cs_value_constant(cs_arg_key(e, key), ours)
#define cs_arg_text(e, key, text, max) cs_value_text(cs_arg_key(e, key), text, max)
#define cs_arg_kernel(e, key, name)    cs_value_kernel(cs_arg_key(e, key), name)
#define cs_arg_uints(e, key, list, n)  cs_value_uints(cs_arg_key(e, key), list, n)

/* --- the list that events stand in, for the frame of the file (trace/totals.h) --- */

/* `header`: where the text of the header begins, up to `at`. With the list's first event: the host's process comes before the others. */
char *cs_events_begin(char *header, char *at, cs_u32 pid);
void cs_trailer_begins(void); /* what is written from here on is written over by what comes next */
char *cs_events_end(char *at);
void cs_trailer_ends(char *end); /* its last byte is the one before */

#endif
