/*
 * Events and their arguments (perfetto.h). An event is written in place; what it is the first to tell goes in front of it when it is closed.
 */
#include "shim/base/perfetto_inside.h"

static struct cs_pf_text shown(const struct cs_pf_text *text)
{
    if (!text->text_of) return *text;
    const char *is = text->text_of(text->number);
    return (struct cs_pf_text){is, strnlen(is, CS_PF_TEXT_MAX), 0, NULL, NULL};
}

static char *put_shown(char *at, unsigned field, const struct cs_pf_text *text)
{
    const struct cs_pf_text is = shown(text);
    return cs_pf_put_text(at, field, is.text, is.length);
}

/* --- an event's frame --- */

/* Since the one before, of the same sequence; one that is earlier has its own clock. */
static inline char *put_time(struct cs_pf *pf, char *at, cs_u64 *last_ns, cs_u64 ns)
{
    if (CS_UNLIKELY(ns < *last_ns || pf->plain)) return cs_pf_uint(cs_pf_uint(at, CS_PF_CLOCK_ID, CS_PF_CLOCK_BOOT), CS_PF_TIMESTAMP, ns);
    at = cs_pf_uint(at, CS_PF_TIMESTAMP, ns - *last_ns);
    *last_ns = ns;
    return at;
}

static inline char *packet_begin(struct cs_pf *pf, char *at, unsigned sequence, cs_u64 ns)
{
    pf->packet = cs_pf_nest(at, CS_PF_PACKET);
    pf->sequence = sequence;
    pf->args = NULL;
    pf->ends = pf->bare = false;
    pf->flow_end = CS_PF_NO_END;
    pf->side_used = 0;
    return put_time(pf, pf->packet, &pf->told[sequence].last_ns, ns);
}

static inline char *event_begin(struct cs_pf *pf, char *at, unsigned sequence, cs_u64 ns)
{
    at = cs_pf_uint(packet_begin(pf, at, sequence, ns), CS_PF_SEQUENCE, sequence);
    return pf->event = cs_pf_nest(at, CS_PF_TRACK_EVENT);
}

/* The sequence of a packet, its event, which is so long, and the event's type: of slices, which are nearly all there is, in one store. */
static inline char *put_typed(char *at, unsigned sequence, unsigned length, enum cs_pf_type type, char **event)
{
    const bool two = sequence >= 128;
    const cs_u64 number = two ? (sequence & 127) | 128 | sequence >> 7 << 8 : sequence;
    const cs_u64 rest = (CS_PF_TRACK_EVENT << 3 | CS_WIRE_BYTES) | length << 8 | (cs_u64)(CS_PF_TYPE << 3 | CS_WIRE_VARINT | type << 8) << 16;
    const cs_u64 all = (CS_PF_SEQUENCE << 3 | CS_WIRE_VARINT) | number << 8 | rest << (two ? 24 : 16); /* the machine's order is the format's */
    memcpy(at, &all, 8);
    *event = at + 4 + two;
    return at + 6 + two;
}
_Static_assert(CS_PF_SEQUENCES <= 1 << 14 && CS_PF_TYPE < 16 && CS_PF_TRACK_EVENT < 16 && CS_PF_SEQUENCE < 16, "the lengths of tags and numbers there");

/* The category of an event may be empty: none. There may be no name: of what ends another event. */
static char *put_names_slowly(struct cs_pf *pf, char *at, unsigned sequence, const struct cs_pf_text *category, const struct cs_pf_text *name, bool *numbers)
{
    const bool some = category->length || category->text_of;
    cs_u32 number = some ? cs_pf_learn(pf, CS_PF_KNOWS_CATEGORY, sequence, category) : 0;
    *numbers = number;
    if (number) at = cs_pf_uint(at, CS_PF_CATEGORY_IID, number);
    else if (some) at = put_shown(at, CS_PF_CATEGORY, category);
    if (!name->text && !name->text_of) return at;
    number = cs_pf_learn(pf, CS_PF_KNOWS_NAME, sequence, name);
    *numbers &= number != 0;
    return number ? cs_pf_uint(at, CS_PF_NAME_IID, number) : put_shown(at, CS_PF_NAME, name);
}

static CS_COLD char *put_names_anew(struct cs_pf *pf, char *at, unsigned sequence, const struct cs_pf_text *category, const struct cs_pf_text *name, struct cs_pf_named *named)
{
    bool numbers;
    char *end = put_names_slowly(pf, at, sequence, category, name, &numbers);
    if (!numbers || (size_t)(end - at) > sizeof named->bytes) return end;
    *named = (struct cs_pf_named){category->number, name->number, name->text_of, pf->file, (cs_u16)sequence, (unsigned char)(end - at), {0}};
    memcpy(named->bytes, at, (size_t)(end - at));
    return end;
}

static inline char *put_names(struct cs_pf *pf, char *at, unsigned sequence, const struct cs_pf_text *category, const struct cs_pf_text *name)
{
    bool numbers;
    if (category->text_of != cs_pf_text_at || !name->text_of) return put_names_slowly(pf, at, sequence, category, name, &numbers);
    struct cs_pf_named *named = &pf->named[((name->number * 0x9e3779b97f4a7c15u >> 32) + sequence * 37) % CS_COUNT(pf->named)];
    if (CS_UNLIKELY(named->name != name->number || named->category != category->number || named->text_of != name->text_of || named->sequence != sequence || named->file != pf->file))
        return put_names_anew(pf, at, sequence, category, name, named);
    memcpy(at, named->bytes, sizeof named->bytes);
    return at + named->length;
}

/* A lane's own, where it has had many slices and this one lies within none of them. Else of two the one whose last event is not later. */
static inline unsigned sequence_of(struct cs_pf *pf, const struct cs_pf_lane *lane, cs_u64 ns)
{
    enum { MANY = 256 };
    struct cs_pf_told *own = &pf->told[lane->sequence];
    if (CS_LIKELY(own->slices >= MANY && ns >= own->last_ns)) return lane->sequence;
    own->slices += own->slices < MANY && lane->sequence;
    const unsigned sequence = lane->pid < pf->gpu_pids ? CS_PF_GPU : CS_PF_HOST;
    return sequence + (ns < pf->told[sequence].last_ns && ns >= pf->told[sequence + 1].last_ns);
}

char *cs_pf_slice(struct cs_pf *pf, char *at, const struct cs_pf_text *category, const struct cs_pf_text *name, cs_u32 pid, cs_u32 tid, cs_u64 from_ns, cs_u64 to_ns)
{
    const struct cs_pf_lane *lane = cs_pf_lane(pf, pid, tid);
    const unsigned sequence = sequence_of(pf, lane, from_ns);
    pf->track = lane->track;
    pf->lane_sequence = lane->sequence;
    at = put_typed(packet_begin(pf, at, sequence, from_ns), sequence, 0, CS_PF_BEGIN, &pf->event);
    if (sequence != lane->sequence) at = cs_pf_uint(at, CS_PF_TRACK_UUID, lane->track);
    at = put_names(pf, at, sequence, category, name);
    pf->ends = true;
    pf->end_ns = to_ns;
    return at;
}

static inline char *end_of_slice(struct cs_pf *pf, char *at)
{
    const cs_u32 sequence = pf->lane_sequence ? pf->lane_sequence : CS_PF_OTHER;
    char *packet = cs_pf_nest(at, CS_PF_PACKET), *event;
    at = put_time(pf, packet, &pf->told[sequence].last_ns, pf->end_ns);
    at = put_typed(at, sequence, 2, CS_PF_END, &event);
    if (CS_UNLIKELY(!pf->lane_sequence)) at = cs_pf_nested(event, cs_pf_uint(at, CS_PF_TRACK_UUID, pf->track));
    return cs_pf_nested(packet, at);
}

/* The older fields: newer ones take eight bytes a number. A terminating flow ends there, so that it is for arrows with one last end alone. */
static char *put_flow(const struct cs_pf *pf, char *at)
{
    if (pf->flow_end == CS_PF_FIRST) return cs_pf_uint(at, CS_PF_FLOW, pf->flow);
    if (pf->flow_end == CS_PF_ONLY_LAST) return cs_pf_uint(at, CS_PF_FLOW_ENDS, pf->flow);
    char *legacy = cs_pf_nest(at, CS_PF_LEGACY);
    return cs_pf_nested(legacy, cs_pf_uint(cs_pf_uint(legacy, CS_PF_BIND_ID, pf->flow), CS_PF_BIND_WAY, CS_PF_BIND_IN));
}

/* What the event is the first to tell goes in front of it. */
static CS_COLD char *news_before(struct cs_pf *pf, char *start, char *at)
{
    memmove(start + pf->news_used, start, (size_t)(at - start));
    at += pf->news_used;
    cs_pf_news_out(pf, start);
    return at;
}

char *cs_pf_close(struct cs_pf *pf, char *at)
{
    if (!pf->packet) return at; /* a counter: each of its values is an event */
    char *start = pf->packet - 2;
    if (pf->args) at = cs_pf_nested(pf->args, at);
    if (pf->side_used) at = (char *)memcpy(at, pf->side, pf->side_used) + pf->side_used;
    if (pf->flow_end) at = put_flow(pf, at);
    at = cs_pf_nested(pf->event, at);
    if (pf->bare) at = cs_pf_uint(at, CS_PF_SEQUENCE_FLAGS, CS_PF_SAYS_BARE);
    at = cs_pf_nested(pf->packet, at);
    if (pf->ends) at = end_of_slice(pf, at);
    pf->packet = NULL;
    return CS_LIKELY(!pf->news_used) ? at : news_before(pf, start, at);
}

static char *legacy_begin(struct cs_pf *pf, char *at, char phase, const struct cs_pf_text *category, const struct cs_pf_text *name, cs_u32 pid, cs_u32 tid, cs_u64 ns, char **legacy)
{
    const cs_u64 track = cs_pf_lane(pf, pid, tid)->track;
    at = cs_pf_uint(event_begin(pf, at, CS_PF_OTHER, ns), CS_PF_TRACK_UUID, track);
    at = put_names(pf, at, CS_PF_OTHER, category, name);
    *legacy = cs_pf_nest(at, CS_PF_LEGACY);
    return cs_pf_uint(*legacy, CS_PF_PHASE, (cs_u64)phase);
}

char *cs_pf_legacy(struct cs_pf *pf, char *at, char phase, const struct cs_pf_text *category, const struct cs_pf_text *name, cs_u32 pid, cs_u32 tid, cs_u64 ns, cs_u64 id)
{
    char *legacy;
    const bool arrow = phase == 's' || phase == 'f';
    at = legacy_begin(pf, at, phase, category, name, pid, tid, ns, &legacy);
    if (phase != 'B' && phase != 'E') at = cs_pf_uint(at, arrow ? CS_PF_UNSCOPED_ID : CS_PF_LOCAL_ID, id);
    if (phase == 'f') at = cs_pf_uint(at, CS_PF_BIND_ENCLOSING, 1);
    return cs_pf_nested(legacy, at);
}

char *cs_pf_instant(struct cs_pf *pf, char *at, enum cs_pf_scope scope, const struct cs_pf_text *category, const struct cs_pf_text *name, cs_u32 pid, cs_u32 tid, cs_u64 ns)
{
    char *legacy;
    if (scope) {
        at = legacy_begin(pf, at, 'i', category, name, pid, tid, ns, &legacy);
        return cs_pf_nested(legacy, cs_pf_uint(at, CS_PF_INSTANT_SCOPE, scope));
    }
    const cs_u64 track = cs_pf_lane(pf, pid, tid)->track;
    at = cs_pf_uint(event_begin(pf, at, CS_PF_OTHER, ns), CS_PF_TYPE, CS_PF_INSTANT);
    return put_names(pf, cs_pf_uint(at, CS_PF_TRACK_UUID, track), CS_PF_OTHER, category, name);
}

char *cs_pf_counter(struct cs_pf *pf, char *at, const struct cs_pf_text *name, cs_u32 pid, cs_u32 tid, cs_u64 ns)
{
    const struct cs_pf_text text = shown(name);
    pf->packet = NULL;
    pf->counter.ns = ns;
    pf->counter.pid = pid;
    pf->counter.tid = tid;
    pf->counter.values = 0;
    pf->counter.length = text.length < sizeof pf->counter.name ? text.length : sizeof pf->counter.name;
    memcpy(pf->counter.name, text.text, pf->counter.length);
    return at;
}

/* One value is one event. Those that belong to the one before have a category that says so. */
static char *counter_value(struct cs_pf *pf, char *at, bool is_integer, cs_i64 integer, double number)
{
    static const struct cs_pf_text more = {"+", 1, 0, NULL, NULL};
    const cs_u64 track = cs_pf_counter_track(pf);
    at = cs_pf_uint(event_begin(pf, at, CS_PF_COUNTS, pf->counter.ns), CS_PF_TYPE, CS_PF_COUNTER);
    at = cs_pf_uint(at, CS_PF_TRACK_UUID, track);
    const cs_u32 category = pf->counter.values++ ? cs_pf_learn(pf, CS_PF_KNOWS_CATEGORY, CS_PF_COUNTS, &more) : 0;
    if (category) at = cs_pf_uint(at, CS_PF_CATEGORY_IID, category);
    else if (pf->counter.values > 1) at = cs_pf_put_text(at, CS_PF_CATEGORY, more.text, more.length);
    at = is_integer ? cs_pf_uint(at, CS_PF_COUNTER_VALUE, (cs_u64)integer) : cs_pf_double(at, CS_PF_COUNTER_DOUBLE, number);
    return cs_pf_close(pf, at);
}

/* --- arguments --- */

static CS_COLD cs_u32 field_number_slowly(struct cs_pf *pf, unsigned type)
{
    const struct cs_pf_text key = {pf->key, pf->key_length, 0, NULL, pf->key_kept};
    return cs_pf_learn(pf, CS_PF_KNOWS_FIELD, type, &key);
}

static inline cs_u32 field_number(struct cs_pf *pf, unsigned type)
{
    const struct cs_pf_key *kept = pf->key_kept;
    return CS_LIKELY(kept && cs_pf_is(pf, kept, cs_pf_of(CS_PF_KNOWS_FIELD, type))) ? kept->field : field_number_slowly(pf, type);
}

/* A field of the message of arguments: where its value goes, or NULL: it cannot be told. */
static inline char *field(struct cs_pf *pf, char *at, unsigned type, unsigned wire)
{
    const cs_u32 number = field_number(pf, type);
    if (CS_UNLIKELY(!number)) return NULL;
    if (!pf->args) at = pf->args = cs_pf_nest(at, CS_PF_ARGS);
    return cs_pf_tag(at, number, wire);
}

/* A DebugAnnotation, for what has no type that fields have; it waits until the fields are written. */
struct note {
    char *start;
};

static char *note_begin(struct cs_pf *pf, struct note *note, size_t room)
{
    const bool stays = pf->key_kept;
    const struct cs_pf_text key = {pf->key, pf->key_length, stays ? (uintptr_t)pf->key : 0, stays ? cs_pf_text_at : NULL, NULL};
    if (pf->side_used + room + 3 * pf->key_length + 64 > sizeof pf->side) return NULL;
    note->start = cs_pf_nest(pf->side + pf->side_used, CS_PF_ANNOTATION);
    const cs_u32 number = cs_pf_learn(pf, CS_PF_KNOWS_KEY, pf->sequence, &key);
    return number ? cs_pf_uint(note->start, CS_PF_NOTE_NAME_IID, number) : cs_pf_put_text(note->start, CS_PF_NOTE_NAME, key.text, key.length);
}

static void note_end(struct cs_pf *pf, struct note *note, char *at) { pf->side_used = (size_t)(cs_pf_nested(note->start, at) - pf->side); }

static void note_uint(struct cs_pf *pf, unsigned kind, cs_u64 n)
{
    struct note note;
    char *at = note_begin(pf, &note, 16);
    if (at) note_end(pf, &note, cs_pf_uint(at, kind, n));
}

static void note_text(struct cs_pf *pf, unsigned kind, const char *text, size_t n)
{
    struct note note;
    char *at = note_begin(pf, &note, 3 * n + 16);
    if (at) note_end(pf, &note, cs_pf_put_text(at, kind, text, n));
}

char *cs_pf_value_uint(struct cs_pf *pf, char *at, cs_u64 n)
{
    if (!pf->packet) return counter_value(pf, at, n <= INT64_MAX, (cs_i64)n, (double)n);
    char *to = field(pf, at, CS_PF_FIELD_UINT, CS_WIRE_VARINT);
    if (to) return cs_pf_varint(to, n);
    note_uint(pf, CS_PF_NOTE_UINT, n);
    return at;
}

char *cs_pf_value_int(struct cs_pf *pf, char *at, cs_i64 n)
{
    if (!pf->packet) return counter_value(pf, at, true, n, 0);
    char *to = field(pf, at, CS_PF_FIELD_SINT, CS_WIRE_VARINT);
    if (to) return cs_pf_varint(to, cs_pf_zigzag(n));
    note_uint(pf, CS_PF_NOTE_INT, (cs_u64)n);
    return at;
}

char *cs_pf_value_double(struct cs_pf *pf, char *at, double number)
{
    struct note note;
    if (!pf->packet) return counter_value(pf, at, false, 0, number);
    char *to = field(pf, at, CS_PF_FIELD_DOUBLE, CS_WIRE_64);
    if (to) return (char *)memcpy(to, &number, 8) + 8;
    if ((to = note_begin(pf, &note, 16))) note_end(pf, &note, cs_pf_double(to, CS_PF_NOTE_DOUBLE, number));
    return at;
}

char *cs_pf_value_bool(struct cs_pf *pf, char *at, bool yes)
{
    char *to = field(pf, at, CS_PF_FIELD_BOOL, CS_WIRE_VARINT);
    if (to) return cs_pf_varint(to, yes);
    note_uint(pf, CS_PF_NOTE_BOOL, yes);
    return at;
}

char *cs_pf_value_pointer(struct cs_pf *pf, char *at, cs_u64 n)
{
    note_uint(pf, CS_PF_NOTE_POINTER, n);
    return at;
}

char *cs_pf_value_word(struct cs_pf *pf, char *at, const struct cs_pf_text *text)
{
    const cs_u32 word = cs_pf_learn(pf, CS_PF_KNOWS_WORD, 0, text);
    char *to = word ? field(pf, at, CS_PF_FIELD_ENUM, CS_WIRE_VARINT) : NULL;
    if (to) return cs_pf_varint(to, word);
    const struct cs_pf_text is = shown(text);
    return cs_pf_value_text(pf, at, is.text, is.length);
}

char *cs_pf_value_text(struct cs_pf *pf, char *at, const char *text, size_t n)
{
    const cs_u32 number = field_number(pf, CS_PF_FIELD_STRING);
    if (!number) return note_text(pf, CS_PF_NOTE_STRING, text, n), at;
    if (!pf->args) at = pf->args = cs_pf_nest(at, CS_PF_ARGS);
    return cs_pf_put_text(at, number, text, n);
}

char *cs_pf_value_uints(struct cs_pf *pf, char *at, const cs_u32 *numbers, size_t n)
{
    struct note note;
    char *to = field(pf, at, CS_PF_FIELD_UINT | CS_PF_LIST, CS_WIRE_BYTES), *start = to ? to + 1 : NULL;
    if (start) {
        for (to = start; n; n--) to = cs_pf_varint(to, *numbers++);
        return cs_pf_nested(start, to);
    }
    if (!(to = note_begin(pf, &note, 12 * n))) return at;
    for (; n; n--) {
        start = cs_pf_nest(to, CS_PF_NOTE_ARRAY);
        to = cs_pf_nested(start, cs_pf_uint(start, CS_PF_NOTE_UINT, *numbers++));
    }
    note_end(pf, &note, to);
    return at;
}

char *cs_pf_value_json(struct cs_pf *pf, char *at, const char *json, size_t n)
{
    note_text(pf, CS_PF_NOTE_JSON, json, n);
    return at;
}
