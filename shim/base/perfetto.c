#include "shim/base/perfetto.h"

#include <stdio.h>

#include "shim/base/json.h"
#include "shim/base/perfetto_inside.h"

/* --- the wire --- */

char *cs_pf_nest(char *at, unsigned field) { return cs_pf_tag(at, field, CS_WIRE_BYTES) + 1; }

char *cs_pf_nested(char *start, char *at)
{
    const size_t n = (size_t)(at - start);
    if (n < 128) return start[-1] = (char)n, at;
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

static cs_u64 key_of(const struct cs_pf_text *text, unsigned kind)
{
    const cs_u64 seed = (cs_u64)(kind + 1) * 0xd6e8feb86659fd93u;
    const cs_u64 key = text->text_of ? hash_of((const char *)&text->number, sizeof text->number, seed ^ (cs_u64)(uintptr_t)text->text_of)
                                     : hash_of(text->text, text->length, seed);
    return key ? key : 1;
}

static struct cs_pf_entry *entry_of(struct cs_pf *pf, cs_u64 key)
{
    size_t i = key % CS_PF_ENTRIES;
    while (pf->entries[i].key && pf->entries[i].key != key) i = (i + 1) % CS_PF_ENTRIES;
    return &pf->entries[i];
}

static bool is_room(const struct cs_pf *pf, size_t length)
{
    return !pf->plain && pf->count < CS_PF_ENTRIES / 4 * 3 && pf->news_used + 3 * length + 256 <= sizeof pf->news;
}

/* --- news --- */

char *cs_pf_news(struct cs_pf *pf, char **packet)
{
    return *packet = cs_pf_nest(pf->news + pf->news_used, CS_PF_PACKET);
}

void cs_pf_news_end(struct cs_pf *pf, char *packet, char *at) { pf->news_used = (size_t)(cs_pf_nested(packet, at) - pf->news); }

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

static char *put_literal_field(char *at, unsigned field, const char *text) { return cs_pf_bytes(at, field, text, strlen(text)); }

static char *descriptor_begin(struct cs_pf *pf, struct descriptor *d)
{
    char name[32];
    snprintf(name, sizeof name, "custream-%u", ++pf->descriptors);
    char *at = cs_pf_uint(cs_pf_news(pf, &d->packet), CS_PF_SEQUENCE, CS_PF_OTHER);
    d->descriptor = cs_pf_nest(at, CS_PF_EXTENSION_DESCRIPTOR);
    d->set = cs_pf_nest(d->descriptor, 1);
    d->file = cs_pf_nest(d->set, 1);
    return put_literal_field(put_literal_field(d->file, FILE_NAME, name), FILE_PACKAGE, "custream");
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
    at = put_literal_field(message, NAME, "Word");
    char *value = cs_pf_nest(at, ENUM_VALUE);
    at = cs_pf_uint(cs_pf_put_text(value, NAME, text, n), VALUE_NUMBER, number);
    descriptor_end(pf, &d, cs_pf_nested(message, cs_pf_nested(value, at)));
}

/* The message that holds the arguments; it has its name from how readers show a DebugAnnotation. */
static void tell_arguments(struct cs_pf *pf)
{
    struct descriptor d;
    char *at = descriptor_begin(pf, &d), *part = cs_pf_nest(at, FILE_MESSAGE);
    at = cs_pf_nested(part, put_literal_field(part, NAME, "Args"));
    part = cs_pf_nest(at, FILE_EXTENSION);
    at = put_literal_field(put_literal_field(part, NAME, "debug"), FIELD_EXTENDEE, ".perfetto.protos.TrackEvent");
    at = cs_pf_uint(cs_pf_uint(cs_pf_uint(at, FIELD_NUMBER, CS_PF_ARGS), FIELD_LABEL, OPTIONAL), FIELD_TYPE, TYPE_MESSAGE);
    descriptor_end(pf, &d, cs_pf_nested(part, put_literal_field(at, FIELD_TYPE_NAME, ".custream.Args")));
}

static void tell_field(struct cs_pf *pf, cs_u32 number, unsigned type, const char *text, size_t n)
{
    struct descriptor d;
    if (number == 1) tell_arguments(pf);
    char *at = descriptor_begin(pf, &d), *message = cs_pf_nest(at, FILE_MESSAGE);
    at = put_literal_field(message, NAME, "Args");
    char *field = cs_pf_nest(at, MESSAGE_FIELD);
    at = cs_pf_uint(cs_pf_put_text(field, NAME, text, n), FIELD_NUMBER, number);
    at = cs_pf_uint(cs_pf_uint(at, FIELD_LABEL, type & CS_PF_LIST ? REPEATED : OPTIONAL), FIELD_TYPE, type & ~(unsigned)CS_PF_LIST);
    if ((type & ~(unsigned)CS_PF_LIST) == CS_PF_FIELD_ENUM) at = put_literal_field(at, FIELD_TYPE_NAME, ".custream.Word");
    if (type & CS_PF_LIST) at = cs_pf_bytes(at, FIELD_OPTIONS, (const char[]){OPTION_PACKED << 3, 1}, 2);
    descriptor_end(pf, &d, cs_pf_nested(message, cs_pf_nested(field, at)));
}

cs_u32 cs_pf_learn(struct cs_pf *pf, enum cs_pf_kind kind, unsigned more, const struct cs_pf_text *text)
{
    static const unsigned fields[] = {[CS_PF_KNOWS_CATEGORY] = CS_PF_INTERNED_CATEGORY, [CS_PF_KNOWS_NAME] = CS_PF_INTERNED_NAME, [CS_PF_KNOWS_KEY] = CS_PF_INTERNED_KEY};
    const unsigned of = kind * 256 + more;
    if (text->kept && text->kept->file == pf->file && text->kept->type == of) return text->kept->field;
    struct cs_pf_entry *entry = entry_of(pf, key_of(text, of));
    if (entry->key && text->kept && entry->number <= UINT16_MAX) *text->kept = (struct cs_pf_key){pf->file, (cs_u16)of, (cs_u16)entry->number};
    if (entry->key) return entry->number;
    const char *shown = text->text_of ? text->text_of(text->number) : text->text;
    const size_t n = text->text_of ? strnlen(shown, CS_PF_TEXT_MAX) : text->length;
    if (n > CS_PF_TEXT_MAX || !is_room(pf, n)) return 0;
    cs_u32 *next = &pf->next[kind <= CS_PF_KNOWS_KEY ? kind * 3 + (more == CS_PF_OTHER ? 2 : more - 1) : 9 + (kind - CS_PF_KNOWS_FIELD)];
    if (kind == CS_PF_KNOWS_FIELD && *next == UINT16_MAX) return 0;
    *entry = (struct cs_pf_entry){key_of(text, of), ++*next};
    pf->count++;
    if (kind <= CS_PF_KNOWS_KEY) tell_interned(pf, fields[kind], more, entry->number, shown, n);
    else if (kind == CS_PF_KNOWS_WORD) tell_word(pf, entry->number, shown, n);
    else if (kind == CS_PF_KNOWS_FIELD) tell_field(pf, entry->number, more, shown, n);
    return entry->number;
}

/* --- tracks --- */

/* A track by what it is of: its number, and whether it is new. Where it cannot be kept it has one from the key, and is new each time. */
static cs_u64 track_of(struct cs_pf *pf, const void *what, size_t n, bool *is_new)
{
    const struct cs_pf_text text = {what, n, 0, NULL, NULL};
    const cs_u64 key = key_of(&text, CS_PF_KNOWS_TRACK * 256);
    struct cs_pf_entry *entry = entry_of(pf, key);
    *is_new = !entry->key;
    if (entry->key) return entry->number;
    if (!is_room(pf, 512)) return key >> 16 | (cs_u64)1 << 40;
    pf->count++;
    *entry = (struct cs_pf_entry){key, ++pf->next[9 + CS_PF_KNOWS_TRACK - CS_PF_KNOWS_FIELD]};
    return entry->number;
}

static char *track_begin(struct cs_pf *pf, char **packet, char **track, cs_u64 uuid)
{
    char *at = cs_pf_uint(cs_pf_news(pf, packet), CS_PF_SEQUENCE, CS_PF_OTHER);
    return cs_pf_uint(*track = cs_pf_nest(at, CS_PF_TRACK), CS_PF_UUID, uuid);
}

static void track_end(struct cs_pf *pf, char *packet, char *track, char *at) { cs_pf_news_end(pf, packet, cs_pf_nested(track, at)); }

struct lane_key {
    cs_u32 what, pid, tid;
};

static cs_u64 process_uuid(struct cs_pf *pf, cs_u32 pid, bool *is_new)
{
    const struct lane_key key = {1, pid, 0};
    return track_of(pf, &key, sizeof key, is_new);
}

static cs_u64 thread_uuid(struct cs_pf *pf, cs_u32 pid, cs_u32 tid, bool *is_new)
{
    const struct lane_key key = {2, pid, tid};
    return track_of(pf, &key, sizeof key, is_new);
}

/* Where a row stands among the others: by its number, which for a GPU says what belongs together (base/lane.h). A reader takes what the first descriptor of a
 * track says. */
static cs_u32 thread_rank(cs_u32 tid) { return tid & INT32_MAX; }
static cs_u32 process_rank(const struct cs_pf *pf, cs_u32 pid) { return pid < pf->gpu_pids ? pid + 1 : 0; }

static void thread_tell(struct cs_pf *pf, cs_u64 uuid, cs_u32 pid, cs_u32 tid, const char *name, size_t n, const char *more, size_t more_n,
                        const cs_i64 *order)
{
    char text[sizeof CS_PF_MORE_MARK + CS_PF_MORE], *packet, *track, *at = track_begin(pf, &packet, &track, uuid), *thread = cs_pf_nest(at, CS_PF_THREAD);
    at = cs_pf_uint(cs_pf_uint(thread, CS_PF_PID, pid), CS_PF_TID, tid);
    if (order) at = cs_pf_uint(at, CS_PF_SORT, (cs_u64)*order);
    if (name) at = cs_pf_put_text(at, CS_PF_THREAD_NAME, name, n);
    at = cs_pf_uint(cs_pf_nested(thread, at), CS_PF_RANK, thread_rank(tid));
    if (more_n && more_n <= CS_PF_MORE) {
        memcpy(text, CS_PF_MORE_MARK, sizeof CS_PF_MORE_MARK - 1);
        memcpy(text + sizeof CS_PF_MORE_MARK - 1, more, more_n);
        at = cs_pf_bytes(at, CS_PF_DESCRIPTION, text, sizeof CS_PF_MORE_MARK - 1 + more_n);
    }
    track_end(pf, packet, track, at);
}

cs_u64 cs_pf_thread_track(struct cs_pf *pf, cs_u32 pid, cs_u32 tid)
{
    bool is_new;
    __typeof__(*pf->last) *last = &pf->last[pid < pf->gpu_pids];
    if (last->track && last->pid == pid && last->tid == tid) return last->track;
    const cs_u64 uuid = thread_uuid(pf, pid, tid, &is_new);
    if (is_new) thread_tell(pf, uuid, pid, tid, NULL, 0, NULL, 0, NULL);
    else last->pid = pid, last->tid = tid, last->track = uuid;
    return uuid;
}

static void process_tell(struct cs_pf *pf, cs_u64 uuid, cs_u32 pid, cs_u32 tid, const char *name, size_t n, const char *label, size_t label_n, const cs_i64 *order)
{
    char text[32], *packet, *track, *at = track_begin(pf, &packet, &track, uuid), *process = cs_pf_nest(at, CS_PF_PROCESS);
    at = cs_pf_uint(process, CS_PF_PID, pid);
    if (order) at = cs_pf_uint(at, CS_PF_SORT, (cs_u64)*order);
    if (name) at = cs_pf_put_text(at, CS_PF_PROCESS_NAME, name, n);
    if (label) at = cs_pf_put_text(at, CS_PF_LABEL, label, label_n);
    at = cs_pf_uint(cs_pf_nested(process, at), CS_PF_RANK, process_rank(pf, pid));
    snprintf(text, sizeof text, "tid %u", tid);
    if (tid != pid) at = put_literal_field(at, CS_PF_DESCRIPTION, text); /* of the row that the JSON form has for it */
    track_end(pf, packet, track, at);
}

static cs_u64 process_track(struct cs_pf *pf, cs_u32 pid)
{
    bool is_new;
    const cs_u64 uuid = process_uuid(pf, pid, &is_new);
    if (is_new) process_tell(pf, uuid, pid, pid, NULL, 0, NULL, 0, NULL);
    return uuid;
}

static char *news_out(struct cs_pf *pf, char *at)
{
    memcpy(at, pf->news, pf->news_used);
    at += pf->news_used;
    pf->news_used = 0;
    return at;
}

char *cs_pf_thread(struct cs_pf *pf, char *at, cs_u32 pid, cs_u32 tid, const char *name, size_t n, const char *more, size_t more_n, const cs_i64 *order)
{
    bool is_new;
    thread_tell(pf, thread_uuid(pf, pid, tid, &is_new), pid, tid, name, n, more, more_n, order);
    return news_out(pf, at);
}

char *cs_pf_process(struct cs_pf *pf, char *at, cs_u32 pid, cs_u32 tid, const char *name, size_t n, const char *label, size_t label_n, const cs_i64 *order)
{
    bool is_new;
    process_tell(pf, process_uuid(pf, pid, &is_new), pid, tid, name, n, label, label_n, order);
    return news_out(pf, at);
}

cs_u64 cs_pf_counter_track(struct cs_pf *pf)
{
    char what[12 + sizeof pf->counter.name + 128], name[sizeof pf->counter.name + 130], *packet, *track;
    const struct lane_key key = {3, pf->counter.pid, pf->counter.tid};
    const size_t n = pf->key_length < 128 ? pf->key_length : 128, shown = pf->counter.length + 1 + n;
    bool is_new;
    memcpy(what, &key, sizeof key);
    memcpy(name, pf->counter.name, pf->counter.length);
    name[pf->counter.length] = ' ';
    memcpy(name + pf->counter.length + 1, pf->key, n);
    memcpy(what + sizeof key, name, shown - 1 < sizeof what - sizeof key ? shown : sizeof what - sizeof key);
    const cs_u64 uuid = track_of(pf, what, sizeof key + shown, &is_new);
    if (!is_new) return uuid;
    const cs_u64 process = process_track(pf, pf->counter.pid);
    char *at = cs_pf_put_text(track_begin(pf, &packet, &track, uuid), CS_PF_TRACK_NAME, name, shown);
    at = cs_pf_uint(at, CS_PF_PARENT, process);
    char *counter = cs_pf_nest(at, CS_PF_COUNTER_TRACK);
    at = cs_pf_nested(counter, cs_pf_put_text(counter, CS_PF_UNIT_NAME, pf->key, n));
    snprintf(what, sizeof what, "tid %u", pf->counter.tid);
    track_end(pf, packet, track, put_literal_field(at, CS_PF_DESCRIPTION, what));
    return uuid;
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
    at = put_literal_field(at, 1, name);
    at = cs_pf_varint(cs_pf_tag(at, 2, CS_WIRE_BYTES), n);
    return (size_t)(at - to);
}

static char *put_clock(char *at, cs_u32 clock, cs_u64 ns, bool steps)
{
    char *start = cs_pf_nest(at, 1);
    at = cs_pf_uint(cs_pf_uint(start, 1, clock), 2, ns);
    return cs_pf_nested(start, steps ? cs_pf_uint(at, 3, 1) : at);
}

/* Of a sequence: nothing was told before, and what its times mean. */
static char *put_sequence(char *at, unsigned sequence, cs_u64 wall_ns)
{
    char *packet = cs_pf_nest(at, CS_PF_PACKET);
    at = cs_pf_uint(cs_pf_uint(packet, CS_PF_SEQUENCE, sequence), CS_PF_SEQUENCE_FLAGS, 1);
    char *part = cs_pf_nest(at, CS_PF_DEFAULTS);
    at = cs_pf_nested(part, cs_pf_uint(part, CS_PF_CLOCK_ID, CS_PF_CLOCK_STEPS));
    part = cs_pf_nest(at, CS_PF_CLOCK_SNAPSHOT);
    at = put_clock(put_clock(put_clock(part, CS_PF_CLOCK_STEPS, 0, true), CS_PF_CLOCK_BOOT, 0, false), CS_PF_CLOCK_REAL, wall_ns, false);
    at = cs_pf_nested(part, cs_pf_uint(at, 2, CS_PF_CLOCK_BOOT));
    return cs_pf_nested(packet, at);
}

char *cs_pf_head(struct cs_pf *pf, char *at, size_t n, cs_u64 wall_ns)
{
    char before[64];
    const size_t length = frame(before, CS_PF_HEADER, n);
    memmove(at + length, at, n);
    memcpy(at, before, length);
    at += length + n;
    for (unsigned sequence = CS_PF_HOST; sequence < CS_PF_SEQUENCES; sequence++) at = put_sequence(at, sequence, wall_ns);
    char *packet, *track, *root = track_begin(pf, &packet, &track, 0); /* of all others: they stand by their rank (Perfetto 57 and later) */
    track_end(pf, packet, track, cs_pf_uint(cs_pf_uint(root, CS_PF_PROCESS_ORDER, 1), CS_PF_THREAD_ORDER, 1));
    return news_out(pf, at);
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
    at = put_literal_field(at, 1, CS_PF_TRAILER);
    return put_wide(cs_pf_tag(at, 2, CS_WIRE_BYTES), n);
}

char *cs_pf_tail(char *at) { return put_tail(at, 0); }
void cs_pf_tail_ends(char *text, char *end) { put_tail(text - TAIL, (size_t)(end - text)); }
