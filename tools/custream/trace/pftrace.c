#include "tools/custream/trace/pftrace_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "shim/base/json.h"
#include "shim/base/claim.h"
#include "tools/custream/command.h"

enum { COMPRESSED_PACKETS = 50, INFLATED_MOST = 256 << 20 };

/* --- the wire --- */

bool varint_next(struct message *message, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; message->at < message->end && shift < 70; shift += 7) {
        const unsigned char byte = *message->at++;
        if (shift < 64) *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

static bool fixed_next(struct message *message, size_t n, uint64_t *value)
{
    *value = 0;
    if ((size_t)(message->end - message->at) < n) return false;
    memcpy(value, message->at, n);
    message->at += n;
    return true;
}

bool field_next(struct message *message, struct field *field)
{
    uint64_t tag;
    if (message->at >= message->end || !varint_next(message, &tag)) return false;
    field->message = (struct message){
        message->at, message->at}; /* empty, where something else stands than is expected */
    field->number = (unsigned)(tag >> 3);
    field->wire = (unsigned)tag & 7;
    switch (field->wire) {
    case CS_WIRE_VARINT: return varint_next(message, &field->value);
    case CS_WIRE_64: return fixed_next(message, 8, &field->value);
    case CS_WIRE_32: return fixed_next(message, 4, &field->value);
    case CS_WIRE_BYTES:
        if (!varint_next(message, &field->value) ||
            field->value > (uint64_t)(message->end - message->at))
            return false;
        field->message = (struct message){message->at, message->at + field->value};
        message->at += field->value;
        return true;
    default: return false;
    }
}

/* --- numbers that stand for something --- */

static size_t place_of(const struct map *map, uint64_t key)
{
    size_t i = (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (map->capacity - 1);
    while (map->entries[i].value && map->entries[i].key != key) i = (i + 1) & (map->capacity - 1);
    return i;
}

void *map_get(const struct map *map, uint64_t key)
{
    return map->capacity ? map->entries[place_of(map, key)].value : NULL;
}

void **map_put(struct map *map, uint64_t key)
{
    if (map->count * 2 >= map->capacity) {
        struct map grown = {.capacity = map->capacity ? 2 * map->capacity : 64};
        grown.entries = calloc(grown.capacity, sizeof *grown.entries);
        if (!grown.entries) out_of_memory();
        for (size_t i = 0; i < map->capacity; i++)
            if (map->entries[i].value)
                *map_put(&grown, map->entries[i].key) = map->entries[i].value;
        free(map->entries);
        *map = grown;
    }
    struct map_entry *entry = &map->entries[place_of(map, key)];
    map->count += !entry->value; /* the caller gives it one */
    entry->key = key;
    return &entry->value;
}

void map_free(struct map *map, void (*free_value)(void *))
{
    for (size_t i = 0; i < map->capacity; i++)
        if (map->entries[i].value) free_value(map->entries[i].value);
    free(map->entries);
    *map = (struct map){0};
}

struct string *string_new(struct message message)
{
    const size_t n = (size_t)(message.end - message.at);
    struct string *s = malloc(sizeof *s + n + 1);
    if (!s) out_of_memory();
    s->length = n;
    if (n) memcpy(s->text, message.at, n); /* an empty one may stand nowhere */
    s->text[n] = 0;
    return s;
}

/* --- sequences --- */

static struct sequence *sequence_of(struct pftrace *p, uint64_t number)
{
    struct sequence *sequence = map_get(&p->sequences, number);
    if (sequence) return sequence;
    if (!(sequence = calloc(1, sizeof *sequence))) out_of_memory();
    return *map_put(&p->sequences, number) = sequence;
}

static void texts_free(struct sequence *sequence)
{
    for (int i = 0; i < TEXTS; i++) map_free(&sequence->texts[i], free);
}

static void sequence_free(void *value)
{
    texts_free(value);
    map_free(&((struct sequence *)value)->clocks, free);
    free(value);
}

static void interned_read(struct sequence *sequence, struct message interned)
{
    struct field field, part;
    while (field_next(&interned, &field)) {
        const int kind = field.number == CS_PF_INTERNED_CATEGORY ? TEXT_CATEGORY
                         : field.number == CS_PF_INTERNED_NAME   ? TEXT_NAME
                         : field.number == CS_PF_INTERNED_KEY    ? TEXT_KEY
                         : field.number == CS_PF_INTERNED_STRING ? TEXT_STRING
                                                                 : TEXTS;
        struct message entry = field.message, text = {0};
        uint64_t number = 0;
        if (kind == TEXTS || field.wire != CS_WIRE_BYTES) continue;
        while (field_next(&entry, &part))
            if (part.number == 1) number = part.value;
            else if (part.number == 2) text = part.message;
        void **place = map_put(&sequence->texts[kind], number);
        if (*place) free(*place);
        *place = string_new(text);
    }
}

/* --- clocks --- */

static struct map *clocks_of(struct pftrace *p, struct sequence *sequence, uint64_t id)
{
    return id >= 64 && id < 128 ? &sequence->clocks : &p->clocks;
}

static void snapshot_read(struct pftrace *p, struct sequence *sequence, struct message snapshot)
{
    struct clock clocks[32];
    uint64_t ids[32], boot = 0;
    size_t count = 0;
    struct field field, part;
    while (field_next(&snapshot, &field) && count < 32) {
        if (field.number != 1 || field.wire != CS_WIRE_BYTES) continue;
        clocks[count] = (struct clock){.unit = 1};
        ids[count] = 0;
        while (field_next(&field.message, &part)) {
            if (part.number == 1) ids[count] = part.value;
            if (part.number == 2) clocks[count].at = part.value;
            if (part.number == 3) clocks[count].steps = part.value;
            if (part.number == 4 && part.value) clocks[count].unit = part.value;
        }
        if (ids[count] == CS_PF_CLOCK_BOOT) boot = clocks[count].at;
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        void **place = map_put(clocks_of(p, sequence, ids[i]), ids[i]);
        if (!*place && !(*place = malloc(sizeof(struct clock)))) out_of_memory();
        clocks[i].boot = boot;
        *(struct clock *)*place = clocks[i];
    }
}

static uint64_t time_of(struct pftrace *p, struct sequence *sequence, uint64_t id, uint64_t at)
{
    if (!id) id = sequence->clock ? sequence->clock : CS_PF_CLOCK_BOOT;
    struct clock *clock = id == CS_PF_CLOCK_BOOT ? NULL : map_get(clocks_of(p, sequence, id), id);
    if (!clock) return at;
    if (!clock->steps) return at * clock->unit - clock->at * clock->unit + clock->boot;
    clock->at += at;
    clock->boot += at * clock->unit;
    return clock->boot;
}

/* --- rows --- */

/* No more values come. */
static void counter_close(struct pftrace *p)
{
    if (!p->counter_open) return;
    struct pf_row *row = &p->rows[p->made - 1];
    row_close(row, p->counter_args, false);
    row_close(row, 0, false);
    p->counter_open = false;
}

/* Of a file that has no header of ours. */
static void head_made(struct pftrace *p)
{
    char text[256];
    const struct clock *real = map_get(&p->clocks, CS_PF_CLOCK_REAL);
    snprintf(text, sizeof text,
        CS_TRACE_BEGIN_NOW
        "%llu,\n\"metadata\":{\"converted by\":\"custream " CUSTREAM_VERSION_STRING "\"},\n",
        (unsigned long long)(real && real->at > real->boot ? real->at - real->boot : 0));
    rope_put(&p->head, text, strlen(text));
    p->headed = true;
}

struct pf_row *row_new(struct pftrace *p)
{
    counter_close(p);
    if (!p->headed) head_made(p);
    if (p->given == p->made) p->given = p->made = 0;
    if (p->made == p->row_capacity) {
        const size_t before = p->row_capacity;
        p->rows = array_room(p->rows, p->made, &p->row_capacity, sizeof *p->rows);
        memset(p->rows + before, 0, (p->row_capacity - before) * sizeof *p->rows);
    }
    struct pf_row *row = &p->rows[p->made++];
    row_clear(row);
    row_open(row);
    return row;
}

void row_time(const struct pftrace *p, struct pf_row *to, uint64_t ns)
{
    char text[24];
    if (p->texts)
        row_raw(to, (struct message){(unsigned char *)text, (unsigned char *)cs_put_us(text, ns)});
    else row_uint(to, ns);
}

/* --- what stands around them --- */

/* ChromeEventBundle: texts that stand for the whole file. */
static void bundle_read(struct pftrace *p, struct message bundle)
{
    struct field field, part;
    while (field_next(&bundle, &field)) {
        struct message name = {0}, text = {0};
        if (field.number != 2 || field.wire != CS_WIRE_BYTES) continue;
        while (field_next(&field.message, &part))
            if (part.number == 1) name = part.message;
            else if (part.number == 2) text = part.message;
        const size_t n = (size_t)(name.end - name.at);
        const bool header = n == sizeof CS_PF_HEADER - 1 && !memcmp(name.at, CS_PF_HEADER, n);
        if (header && p->ours) p->joined = p->read + 1;
        if (header && !p->headed)
            rope_put(&p->head, (const char *)text.at, (size_t)(text.end - text.at)),
                p->headed = p->ours = true;
        if (n != sizeof CS_PF_TRAILER - 1 || memcmp(name.at, CS_PF_TRAILER, n) || p->ended)
            continue;
        if (!p->headed) head_made(p);
        rope_put(&p->tail, (const char *)text.at, (size_t)(text.end - text.at));
        p->ended = true;
    }
}

/* --- packets --- */

static void defaults_read(struct sequence *sequence, struct message defaults)
{
    struct field field, part;
    while (field_next(&defaults, &field)) {
        if (field.number == CS_PF_CLOCK_ID) sequence->clock = field.value;
        if (field.number != CS_PF_TRACK_EVENT || field.wire != CS_WIRE_BYTES) continue;
        while (field_next(&field.message, &part))
            if (part.number == CS_PF_TRACK_UUID) sequence->track = part.value;
    }
}

static void packet_read(struct pftrace *p, struct message message);

/* Packets as one zlib stream, which other tools may write. What is in them is no such thing again.
 */
static void compressed_read(struct pftrace *p, struct message bytes)
{
    unsigned char room[16 << 10];
    struct rope all = {0};
    struct field field;
    z_stream stream = {
        .next_in = (Bytef *)(uintptr_t)bytes.at, .avail_in = (uInt)(bytes.end - bytes.at)};
    if (p->inflates || inflateInit(&stream) != Z_OK) return;
    int status;
    do {
        stream.next_out = room;
        stream.avail_out = sizeof room;
        status = inflate(&stream, Z_NO_FLUSH);
        rope_put(&all, (const char *)room, sizeof room - stream.avail_out);
    } while (status == Z_OK && all.length < INFLATED_MOST);
    inflateEnd(&stream);
    if (status != Z_STREAM_END) p->damaged = p->read + 1;
    p->inflates = true;
    struct message packets = {(unsigned char *)all.at, (unsigned char *)all.at + all.length};
    while (all.at && field_next(&packets, &field))
        if (field.number == CS_PF_PACKET && field.wire == CS_WIRE_BYTES)
            packet_read(p, field.message);
    p->inflates = false;
    free(all.at);
}

static void packet_read(struct pftrace *p, struct message message)
{
    struct packet packet = {0};
    struct message all = message, snapshot = {0}, defaults = {0}, bundle = {0}, extension = {0};
    uint64_t number = 0, clock = 0, at = 0;
    bool timed = false;
    struct field field;
    while (field_next(&all, &field)) {
        const bool bytes = field.wire == CS_WIRE_BYTES;
        switch (field.number) {
        case CS_PF_SEQUENCE: number = field.value; break;
        case CS_PF_SEQUENCE_FLAGS: packet.flags = field.value; break;
        case CS_PF_CLOCK_ID: clock = field.value; break;
        case CS_PF_TIMESTAMP: at = field.value, timed = true; break;
        case CS_PF_TRACK_EVENT:
            if (bytes) packet.event = field.message;
            break;
        case CS_PF_INTERNED:
            if (bytes) packet.interned = field.message;
            break;
        case CS_PF_CLOCK_SNAPSHOT:
            if (bytes) snapshot = field.message;
            break;
        case CS_PF_DEFAULTS:
            if (bytes) defaults = field.message;
            break;
        case CS_PF_TRACK:
            if (bytes) packet.track = field.message;
            break;
        case CS_PF_EXTENSION_DESCRIPTOR:
            if (bytes) extension = field.message;
            break;
        case CS_PF_CHROME_EVENTS:
            if (bytes) bundle = field.message;
            break;
        case COMPRESSED_PACKETS:
            if (bytes) compressed_read(p, field.message);
            break;
        case CS_PF_RENDER_STAGE: break; /* the same work has a slice */
        default: break;
        }
    }
    struct sequence *sequence = packet.sequence = sequence_of(p, number);
    if (packet.flags & 1) texts_free(sequence);
    if (defaults.at) defaults_read(sequence, defaults);
    if (snapshot.at) snapshot_read(p, sequence, snapshot);
    if (packet.interned.at) interned_read(sequence, packet.interned);
    if (extension.at) extension_read(p, extension);
    if (bundle.at) bundle_read(p, bundle);
    if (timed) packet.ns = time_of(p, sequence, clock, at);
    if (p->ended && (packet.track.at || (packet.event.at && timed))) p->joined = p->read + 1;
    if (packet.track.at && !p->ended) track_read(p, packet.track);
    if (packet.event.at && !p->ended) event_read(p, &packet);
}

/* --- the file --- */

bool pftrace_is(const char *bytes, size_t n)
{
    size_t i = 0;
    if (!n || bytes[0] != '\n') return false;
    while (i < n && strchr(" \t\r\n", bytes[i]) && bytes[i]) i++;
    const char opens = i < n ? bytes[i] : 0;
    for (i++; i < n && bytes[i] && strchr(" \t\r\n", bytes[i]);) i++;
    if (opens == '{') return i < n && bytes[i] != '"' && bytes[i] != '}';
    return n > 2 && opens && opens != '[';
}

struct pftrace *pftrace_new(bool texts)
{
    struct pftrace *p = calloc(1, sizeof *p);
    if (!p) out_of_memory();
    p->texts = texts;
    return p;
}

/* What stands behind a packet that is whole: the next. In a torn file the rest of the old trailer
 * stands behind the last new packet, and may have filled it up. */
static bool goes_on(const struct pftrace *p, struct message rest)
{
    const unsigned wire = *rest.at & 7;
    if (p->ours) return *rest.at == (CS_PF_PACKET << 3 | CS_WIRE_BYTES);
    return wire == CS_WIRE_VARINT || wire == CS_WIRE_64 || wire == CS_WIRE_BYTES ||
           wire == CS_WIRE_32;
}

static struct message rest_of(const struct pftrace *p)
{
    const unsigned char *at = (const unsigned char *)p->rest.at;
    return (struct message){at + p->done, at + p->rest.length};
}

/* The next whole packet. Of the last one it is not known what stands behind it, unless all bytes
 * have come. */
static bool packet_next(struct pftrace *p)
{
    const struct message rest = rest_of(p);
    struct message next = rest;
    struct field field;
    if (p->damaged || p->joined || p->torn || rest.at == rest.end) return false;
    bool good = goes_on(p, rest);
    if (good && !field_next(&next, &field)) return false;
    if (good && next.at == next.end && !p->all) return false;
    if (good && next.at < next.end) good = goes_on(p, next);
    if (!good) return p->damaged = p->read + (uint64_t)(next.at - rest.at) + 1, false;
    if (field.number == CS_PF_PACKET && field.wire == CS_WIRE_BYTES) packet_read(p, field.message);
    if (p->joined) return false;
    p->read += (uint64_t)(next.at - rest.at);
    p->done += (size_t)(next.at - rest.at);
    return true;
}

void pftrace_feed(struct pftrace *p, const char *bytes, size_t n)
{
    if (p->joined) return;
    if (p->done) memmove(p->rest.at, p->rest.at + p->done, p->rest.length - p->done);
    p->rest.length -= p->done;
    p->done = 0;
    rope_put(&p->rest, bytes, n);
}

void pftrace_end(struct pftrace *p) { p->all = true; }

/* A counter's row waits for more values. */
static bool row_is_made(const struct pftrace *p) { return p->given + p->counter_open < p->made; }

enum pftrace_piece pftrace_next(struct pftrace *p, struct pftrace_found *found)
{
    do {
        if (p->head.length) {
            *found = (struct pftrace_found){.text = p->head.at, .length = p->head.length};
            p->head.length = 0;
            return PFTRACE_HEAD;
        }
        if (p->ended) counter_close(p);
        if (row_is_made(p)) return found->row = p->rows[p->given++].values, PFTRACE_ROW;
        if (p->given && p->given + 1 == p->made) {
            const struct pf_row waits = p->rows[p->given];
            p->rows[p->given] = p->rows[0];
            p->rows[0] = waits;
            p->given = 0;
            p->made = 1;
        }
        if (p->tail.length) {
            *found = (struct pftrace_found){.text = p->tail.at, .length = p->tail.length};
            p->tail.length = 0;
            return PFTRACE_TAIL;
        }
    } while (packet_next(p));
    if (p->counter_open && p->all) return counter_close(p), pftrace_next(p, found);
    return PFTRACE_NONE;
}

bool pftrace_tear(struct pftrace *p)
{
    const struct message all = rest_of(p);
    const size_t n = (size_t)(all.end - all.at);
    bool *whole = calloc(n + 1, 1); /* from there to the end there are packets */
    if (!whole) out_of_memory();
    whole[n] = true;
    for (size_t i = n; i-- > 0;) {
        struct message rest = {all.at + i, all.end};
        struct field field;
        whole[i] = *rest.at == (CS_PF_PACKET << 3 | CS_WIRE_BYTES) && field_next(&rest, &field) &&
                   whole[n - (size_t)(rest.end - rest.at)];
        if (whole[i]) break;
    }
    const bool none = !memchr(whole, true, n);
    free(whole);
    if (none) p->damaged = 0, p->torn = true;
    return none;
}

bool pftrace_is_headed(const struct pftrace *p) { return p->headed; }
bool pftrace_is_whole(const struct pftrace *p)
{
    return p->ended || (!p->ours && p->headed && !p->torn && p->done == p->rest.length);
}
uint64_t pftrace_damaged(const struct pftrace *p) { return p->damaged; }
uint64_t pftrace_joined(const struct pftrace *p) { return p->joined; }
uint64_t pftrace_rest(const struct pftrace *p) { return p->rest.length - p->done; }

static void track_free(void *value)
{
    struct track *track = value;
    for (size_t i = 0; i < track->open_capacity; i++) row_free(&track->open[i].row);
    free(track->open);
    free(track->name);
    free(track->unit);
    free(track);
}

static void argument_free(void *value)
{
    free(((struct argument *)value)->name);
    free(value);
}

void pftrace_free(struct pftrace *p)
{
    if (!p) return;
    map_free(&p->sequences, sequence_free);
    map_free(&p->tracks, track_free);
    map_free(&p->fields, argument_free);
    map_free(&p->words, free);
    map_free(&p->clocks, free);
    for (size_t i = 0; i < p->row_capacity; i++) row_free(&p->rows[i]);
    free(p->rows);
    free(p->rest.at);
    free(p->head.at);
    free(p->tail.at);
    free(p);
}
