#include "shim/base/perfetto.h"

#include <stdio.h>

#include "shim/base/json.h"
#include "shim/base/perfetto_inside.h"

/* --- the wire --- */

char *cs_pf_nested_long(char *start, char *at)
{
    const size_t n = (size_t)(at - start);
    char length[10];
    const size_t more = (size_t)(cs_pf_varint(length, n) - length) - 1;
    memmove(start + more, start, n);
    memcpy(start - 1, length, more + 1);
    return at + more;
}

/* A text from outside: what is no UTF-8 is replaced. Three times its length at most. */
static char *put_clean(char *at, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + n;
    while (p < end) {
        const int k = cs_utf8_length(p, end);
        if (k) memcpy(at, p, (size_t)k), at += k;
        else memcpy(at, "\xef\xbf\xbd", 3), at += 3;
        p += k ? k : 1;
    }
    return at;
}

char *cs_pf_put_text(char *at, unsigned field, const char *text, size_t n)
{
    char *start = cs_pf_nest(at, field);
    return cs_pf_nested(start, put_clean(start, text, n));
}

/* --- what has been told --- */

const char *cs_pf_text_at(cs_u64 place) { return (const char *)(uintptr_t)place; }

static cs_u64 hash_of(const char *text, size_t n, cs_u64 h)
{
    static const cs_u64 factor = 0x9e3779b97f4a7c15u;
    cs_u64 piece;
    for (; n >= 8; text += 8, n -= 8) {
        memcpy(&piece, text, 8);
        h = (h ^ piece) * factor;
        h ^= h >> 29;
    }
    piece = n;
    memcpy(&piece, text, n); /* at most seven bytes; the eighth stays as it is */
    h = (h ^ piece ^ (cs_u64)n << 56) * factor;
    h ^= h >> 32;
    h *= factor;
    return h ^ h >> 29;
}

cs_u64 cs_pf_key_of(const struct cs_pf_text *text, unsigned kind)
{
    const cs_u64 seed = (cs_u64)(kind + 1) * 0xd6e8feb86659fd93u;
    const cs_u64 numbered[] = {text->number, (uintptr_t)text->text_of}; /* one after the other: numbers are small, and functions stand close together */
    const cs_u64 key = text->text_of ? hash_of((const char *)numbered, sizeof numbered, seed) : hash_of(text->text, text->length, seed);
    return key ? key : 1;
}

struct cs_pf_entry *cs_pf_entry(struct cs_pf *pf, const struct cs_pf_text *text, unsigned of)
{
    const cs_u64 key = cs_pf_key_of(text, of);
    size_t i = key % CS_PF_ENTRIES;
    while (pf->entries[i].key && pf->entries[i].key != key) i = (i + 1) % CS_PF_ENTRIES;
    return &pf->entries[i];
}

static bool is_room(const struct cs_pf *pf, size_t length)
{
    return !pf->plain && pf->count < CS_PF_ENTRIES / 4 * 3 && pf->news_used + 3 * length + 256 <= sizeof pf->news;
}

/* A number of which a sequence gives its own, or the file. */
static cs_u32 *next_of(struct cs_pf *pf, enum cs_pf_kind kind, unsigned sequence)
{
    return kind <= CS_PF_KNOWS_KEY ? &pf->told[sequence].next[kind] : &pf->next[kind - CS_PF_KNOWS_FIELD];
}

cs_u32 cs_pf_number(struct cs_pf *pf, enum cs_pf_kind kind, const void *what, size_t n, bool *is_new)
{
    const struct cs_pf_text text = {what, n, 0, NULL, NULL};
    struct cs_pf_entry *entry = cs_pf_entry(pf, &text, cs_pf_of(kind, 0));
    *is_new = !entry->number;
    if (entry->number || !is_room(pf, 512)) return entry->number;
    pf->count++;
    *entry = (struct cs_pf_entry){cs_pf_key_of(&text, cs_pf_of(kind, 0)), ++*next_of(pf, kind, 0), 0};
    return entry->number;
}

/* --- news --- */

char *cs_pf_news(struct cs_pf *pf, char **packet)
{
    return *packet = cs_pf_nest(pf->news + pf->news_used, CS_PF_PACKET);
}

void cs_pf_news_end(struct cs_pf *pf, char *packet, char *at) { pf->news_used = (size_t)(cs_pf_nested(packet, at) - pf->news); }

char *cs_pf_news_out(struct cs_pf *pf, char *at)
{
    memcpy(at, pf->news, pf->news_used);
    at += pf->news_used;
    pf->news_used = 0;
    return at;
}

static void tell_interned(struct cs_pf *pf, unsigned field, unsigned sequence, cs_u32 number, const char *text, size_t n)
{
    char *packet, *data, *entry, *at = cs_pf_uint(cs_pf_news(pf, &packet), CS_PF_SEQUENCE, sequence);
    data = cs_pf_nest(at, CS_PF_INTERNED);
    entry = cs_pf_nest(data, field);
    at = cs_pf_put_text(cs_pf_uint(entry, 1, number), 2, text, n);
    cs_pf_news_end(pf, packet, cs_pf_nested(data, cs_pf_nested(entry, at)));
}

/* google.protobuf's descriptor.proto. A reader takes a file of one name once, so each has its own. */
enum { FILE_NAME = 1, FILE_PACKAGE = 2, FILE_MESSAGE = 4, FILE_ENUM = 5, FILE_EXTENSION = 7, NAME = 1, MESSAGE_FIELD = 2, ENUM_VALUE = 2, VALUE_NUMBER = 2,
       FIELD_EXTENDEE = 2, FIELD_NUMBER = 3, FIELD_LABEL = 4, FIELD_TYPE = 5, FIELD_TYPE_NAME = 6, FIELD_OPTIONS = 8, OPTION_PACKED = 2,
       TYPE_MESSAGE = 11, OPTIONAL = 1, REPEATED = 3 };

struct descriptor {
    char *packet, *descriptor, *set, *file;
};

static char *descriptor_begin(struct cs_pf *pf, struct descriptor *d)
{
    char name[32];
    snprintf(name, sizeof name, "custream-%u", ++pf->descriptors);
    char *at = cs_pf_uint(cs_pf_news(pf, &d->packet), CS_PF_SEQUENCE, CS_PF_OTHER);
    d->descriptor = cs_pf_nest(at, CS_PF_EXTENSION_DESCRIPTOR);
    d->set = cs_pf_nest(d->descriptor, 1);
    d->file = cs_pf_nest(d->set, 1);
    return cs_pf_literal(cs_pf_literal(d->file, FILE_NAME, name), FILE_PACKAGE, "custream");
}

static void descriptor_end(struct cs_pf *pf, struct descriptor *d, char *at)
{
    at = cs_pf_nested(d->set, cs_pf_nested(d->file, at));
    cs_pf_news_end(pf, d->packet, cs_pf_nested(d->descriptor, at));
}

static void tell_word(struct cs_pf *pf, cs_u32 number, const char *text, size_t n)
{
    struct descriptor d;
    char *at = descriptor_begin(pf, &d), *message = cs_pf_nest(at, FILE_ENUM);
    at = cs_pf_literal(message, NAME, "Word");
    char *value = cs_pf_nest(at, ENUM_VALUE);
    at = cs_pf_uint(cs_pf_put_text(value, NAME, text, n), VALUE_NUMBER, number);
    descriptor_end(pf, &d, cs_pf_nested(message, cs_pf_nested(value, at)));
}

/* The message that holds the arguments; it has its name from how readers show a DebugAnnotation. */
static void tell_arguments(struct cs_pf *pf)
{
    struct descriptor d;
    char *at = descriptor_begin(pf, &d), *part = cs_pf_nest(at, FILE_MESSAGE);
    at = cs_pf_nested(part, cs_pf_literal(part, NAME, "Args"));
    part = cs_pf_nest(at, FILE_EXTENSION);
    at = cs_pf_literal(cs_pf_literal(part, NAME, "debug"), FIELD_EXTENDEE, ".perfetto.protos.TrackEvent");
    at = cs_pf_uint(cs_pf_uint(cs_pf_uint(at, FIELD_NUMBER, CS_PF_ARGS), FIELD_LABEL, OPTIONAL), FIELD_TYPE, TYPE_MESSAGE);
    descriptor_end(pf, &d, cs_pf_nested(part, cs_pf_literal(at, FIELD_TYPE_NAME, ".custream.Args")));
}

static void tell_field(struct cs_pf *pf, cs_u32 number, unsigned type, const char *text, size_t n)
{
    struct descriptor d;
    if (number == 1) tell_arguments(pf);
    char *at = descriptor_begin(pf, &d), *message = cs_pf_nest(at, FILE_MESSAGE);
    at = cs_pf_literal(message, NAME, "Args");
    char *field = cs_pf_nest(at, MESSAGE_FIELD);
    at = cs_pf_uint(cs_pf_put_text(field, NAME, text, n), FIELD_NUMBER, number);
    at = cs_pf_uint(cs_pf_uint(at, FIELD_LABEL, type & CS_PF_LIST ? REPEATED : OPTIONAL), FIELD_TYPE, type & ~(unsigned)CS_PF_LIST);
    if ((type & ~(unsigned)CS_PF_LIST) == CS_PF_FIELD_ENUM) at = cs_pf_literal(at, FIELD_TYPE_NAME, ".custream.Word");
    if (type & CS_PF_LIST) at = cs_pf_bytes(at, FIELD_OPTIONS, (const char[]){OPTION_PACKED << 3, 1}, 2);
    descriptor_end(pf, &d, cs_pf_nested(message, cs_pf_nested(field, at)));
}

/* A key and a word are described only when they have come a few times: the description is long, and the first fields have the shortest numbers. Until then a key
 * is the name of an annotation. Readers replace these characters there, so that a key with one is described at once. */
static bool is_for_field(enum cs_pf_kind kind, const char *key, size_t n)
{
    return kind == CS_PF_KNOWS_FIELD && (memchr(key, '.', n) || memchr(key, '[', n) || memchr(key, ']', n));
}

static cs_u32 told(struct cs_pf *pf, struct cs_pf_entry *entry, enum cs_pf_kind kind, unsigned more, const struct cs_pf_text *text)
{
    static const unsigned fields[] = {[CS_PF_KNOWS_CATEGORY] = CS_PF_INTERNED_CATEGORY, [CS_PF_KNOWS_NAME] = CS_PF_INTERNED_NAME, [CS_PF_KNOWS_KEY] = CS_PF_INTERNED_KEY};
    static const cs_u32 patience[CS_PF_KINDS] = {[CS_PF_KNOWS_FIELD] = 3, [CS_PF_KNOWS_WORD] = 1};
    const char *shown = text->text_of ? text->text_of(text->number) : text->text;
    const size_t n = text->text_of ? strnlen(shown, CS_PF_TEXT_MAX) : text->length;
    cs_u32 *next = next_of(pf, kind, more);
    if (n > CS_PF_TEXT_MAX || !is_room(pf, n) || (kind == CS_PF_KNOWS_FIELD && *next == CS_PF_FIELDS)) return 0;
    if (!entry->key) *entry = (struct cs_pf_entry){cs_pf_key_of(text, cs_pf_of(kind, more)), 0, 0}, pf->count++;
    if (entry->seen++ < patience[kind] && !is_for_field(kind, shown, n)) return 0;
    entry->number = ++*next;
    if (kind <= CS_PF_KNOWS_KEY) tell_interned(pf, fields[kind], more, entry->number, shown, n);
    else if (kind == CS_PF_KNOWS_WORD) tell_word(pf, entry->number, shown, n);
    else tell_field(pf, entry->number, more, shown, n);
    return entry->number;
}

cs_u32 cs_pf_learn_slowly(struct cs_pf *pf, enum cs_pf_kind kind, unsigned more, const struct cs_pf_text *text)
{
    const unsigned of = cs_pf_of(kind, more);
    struct cs_pf_entry *entry = cs_pf_entry(pf, text, of);
    const cs_u32 number = entry->number ? entry->number : told(pf, entry, kind, more, text);
    struct cs_pf_numbered *numbered = cs_pf_numbered(pf, text, of);
    if (!number || number > UINT16_MAX) return number;
    if (text->kept) *text->kept = (struct cs_pf_key){pf->file, (cs_u16)of, (cs_u16)number};
    if (text->text_of) *numbered = (struct cs_pf_numbered){text->number, text->text_of, {pf->file, (cs_u16)of, (cs_u16)number}};
    return number;
}

/* --- a file --- */

void cs_pf_begin(struct cs_pf *pf, cs_u32 gpu_pids)
{
    struct cs_pf_entry *entries = pf->entries;
    const cs_u32 file = pf->file + 1;
    if (pf->count) memset(entries, 0, CS_PF_ENTRIES * sizeof *entries);
    memset(pf, 0, offsetof(struct cs_pf, news));
    pf->entries = entries;
    pf->file = file;
    pf->gpu_pids = gpu_pids;
}

static size_t frame(char *to, const char *name, size_t n)
{
    const size_t named = strlen(name) + 2;
    char text[10], inner[10], outer[10], *at = to;
    const size_t text_n = (size_t)(cs_pf_varint(text, n) - text) + 1 + n, inner_n = named + text_n;
    const size_t bundle = (size_t)(cs_pf_varint(inner, inner_n) - inner) + 1 + inner_n;
    cs_pf_varint(outer, bundle);
    at = cs_pf_varint(cs_pf_tag(at, CS_PF_PACKET, CS_WIRE_BYTES), (size_t)(cs_pf_varint(outer, bundle) - outer) + 1 + bundle);
    at = cs_pf_varint(cs_pf_tag(at, CS_PF_CHROME_EVENTS, CS_WIRE_BYTES), bundle);
    at = cs_pf_varint(cs_pf_tag(at, 2, CS_WIRE_BYTES), inner_n); /* metadata */
    at = cs_pf_literal(at, 1, name);
    at = cs_pf_varint(cs_pf_tag(at, 2, CS_WIRE_BYTES), n);
    return (size_t)(at - to);
}

char *cs_pf_head(struct cs_pf *pf, char *at, size_t n, cs_u64 wall_ns)
{
    char before[64];
    const size_t length = frame(before, CS_PF_HEADER, n);
    memmove(at + length, at, n);
    memcpy(at, before, length);
    pf->wall_ns = wall_ns;
    for (unsigned sequence = CS_PF_HOST; sequence < CS_PF_LANE; sequence++) cs_pf_sequence_begins(pf, sequence, 0);
    cs_pf_root_tell(pf);
    return cs_pf_news_out(pf, at + length + n);
}

/* Lengths of five bytes each, whatever they are. */
enum { WIDE = 5, TAIL = 3 * (1 + WIDE) + 2 + sizeof CS_PF_TRAILER - 1 + 1 + WIDE };

static char *put_wide(char *at, cs_u64 n)
{
    for (int i = 0; i < WIDE; i++, n >>= 7) *at++ = (char)((n & 127) | (i < WIDE - 1 ? 128 : 0));
    return at;
}

static char *put_tail(char *at, size_t n)
{
    const size_t inner = 2 + sizeof CS_PF_TRAILER - 1 + 1 + WIDE + n;
    at = put_wide(cs_pf_tag(at, CS_PF_PACKET, CS_WIRE_BYTES), 2 * (1 + WIDE) + inner);
    at = put_wide(cs_pf_tag(at, CS_PF_CHROME_EVENTS, CS_WIRE_BYTES), 1 + WIDE + inner);
    at = put_wide(cs_pf_tag(at, 2, CS_WIRE_BYTES), inner);
    at = cs_pf_literal(at, 1, CS_PF_TRAILER);
    return put_wide(cs_pf_tag(at, 2, CS_WIRE_BYTES), n);
}

char *cs_pf_tail(char *at) { return put_tail(at, 0); }
void cs_pf_tail_ends(char *text, char *end) { put_tail(text - TAIL, (size_t)(end - text)); }
