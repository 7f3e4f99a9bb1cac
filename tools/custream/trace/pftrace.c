#include "tools/custream/trace/pftrace_inside.h"

#include <zlib.h>

#include "shim/base/json.h"
#include "shim/base/claim.h"
#include "tools/custream/command.h"

enum { COMPRESSED_PACKETS = 50, INFLATED_MOST = 16 << 20 };

/* --- what earlier packets said --- */

void *record_find(struct records *records, struct recent *recent, uint64_t key, size_t size)
{
    uint32_t *place = numbers_at(&records->places, key, UINT32_MAX);
    if (*place == UINT32_MAX) {
        *place = (uint32_t)records->count;
        array_add(records->at, records->count, records->capacity, array_zeros(1, size));
    }
    *recent = (struct recent){key, records->at[*place]};
    return recent->record;
}

static void records_free(struct records *records)
{
    for (size_t i = 0; i < records->count; i++) free(records->at[i]);
    free(records->at);
    numbers_free(&records->places);
}

text told_number(struct pftrace *p, struct message message)
{
    return text_number(&p->told, message.at ? (const char *)message.at : "", message_size(message));
}

static uint64_t interned_key(unsigned kind, uint64_t number) { return number << 5 | kind; }

struct message interned(
    const struct pftrace *p, const struct sequence *sequence, unsigned kind, uint64_t number)
{
    return told(p, numbers_get(&sequence->texts, interned_key(kind, number), 0));
}

static void interned_read(struct pftrace *p, struct sequence *sequence, struct message all)
{
    struct field field, entry[3];
    while (field_next(&all, &field)) {
        if (field.number > CS_PF_INTERNED_STRING || !field.message.at) continue;
        fields_read(field.message, entry, 3);
        *numbers_at(&sequence->texts, interned_key(field.number, entry[1].value), 0) =
            told_number(p, entry[2].message);
    }
}

/* --- clocks --- */

/* Returns the record of a clock. Ids from 64 to 127 are the sequence's own. */
static struct clock *clock_of(struct pftrace *p, const struct sequence *sequence, uint64_t id)
{
    const uint64_t key = id >= 64 && id < 128 ? sequence->number << 8 | id : id << 8;
    return record_of(&p->clocks, key, sizeof(struct clock));
}

static void snapshot_read(struct pftrace *p, struct sequence *sequence, struct message snapshot)
{
    enum { ID = 1, AT, STEPS, UNIT, FIELDS, CLOCKS = 32 };
    struct field clocks[CLOCKS][FIELDS], field;
    uint64_t boot = 0;
    size_t count = 0;
    while (count < CLOCKS && field_next(&snapshot, &field)) {
        if (field.number != 1 || !field.message.at) continue;
        fields_read(field.message, clocks[count], FIELDS);
        if (clocks[count][ID].value == CS_PF_CLOCK_BOOT) boot = clocks[count][AT].value;
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        const struct field *in = clocks[i];
        *clock_of(p, sequence, in[ID].value) = (struct clock){.at = in[AT].value,
            .boot = boot,
            .unit = in[UNIT].value ?: 1,
            .steps = in[STEPS].value};
    }
}

static uint64_t time_of(struct pftrace *p, struct sequence *sequence, uint64_t id, uint64_t at)
{
    if (!id) id = sequence->clock ?: CS_PF_CLOCK_BOOT;
    struct clock *clock = id == CS_PF_CLOCK_BOOT ? NULL : clock_of(p, sequence, id);
    if (!clock || !clock->unit) return at;
    if (!clock->steps) return at * clock->unit - clock->at * clock->unit + clock->boot;
    clock->at += at;
    clock->boot += at * clock->unit;
    return clock->boot;
}

/* --- rows --- */

/* Ends a counter's row that waits for more values. */
static void counter_close(struct pftrace *p)
{
    if (!p->counter_open) return;
    struct pf_row *row = p->rows[p->made - 1];
    row_close(row, p->counter_args, false);
    row_close(row, 0, false);
    p->counter_open = false;
}

/* Makes a header for a file that has no header of ours. */
static void head_made(struct pftrace *p)
{
    char text[256];
    const struct clock *real = clock_of(p, NULL, CS_PF_CLOCK_REAL);
    snprintf(text, sizeof text,
        CS_TRACE_BEGIN_NOW
        "%llu,\n\"metadata\":{\"converted by\":\"custream " CUSTREAM_VERSION_STRING "\"},\n",
        (unsigned long long)(real->at > real->boot ? real->at - real->boot : 0));
    rope_put(&p->head, text, strlen(text));
    p->headed = true;
}

struct pf_row *row_begin(struct pf_row **row)
{
    if (!*row) *row = array_zeros(1, sizeof **row);
    (*row)->count = (*row)->inner = (*row)->bytes.length = 0;
    row_open(*row);
    return *row;
}

struct pf_row **row_place(struct pftrace *p)
{
    counter_close(p);
    if (!p->headed) head_made(p);
    if (p->given == p->made) p->given = p->made = 0;
    if (p->made == p->row_capacity) {
        const size_t before = p->row_capacity;
        p->rows = array_room(p->rows, p->made, &p->row_capacity, sizeof *p->rows);
        memset(p->rows + before, 0, (p->row_capacity - before) * sizeof *p->rows);
    }
    return &p->rows[p->made++];
}

struct pf_row *row_new(struct pftrace *p) { return row_begin(row_place(p)); }

void row_time(const struct pftrace *p, struct pf_row *to, uint64_t ns)
{
    char text[24];
    if (p->texts) row_raw(to, message_of(text, (size_t)(cs_put_us(text, ns) - text)));
    else row_uint(to, ns);
}

/* --- header and trailer --- */

static void put_message(struct rope *to, struct message text)
{
    rope_put(to, (const char *)text.at, message_size(text));
}

/* Takes our header and our trailer, which are texts in a ChromeEventBundle. */
static void bundle_read(struct pftrace *p, struct message bundle)
{
    enum { METADATA = 2, NAME = 1, TEXT = 2 };
    struct field field, in[TEXT + 1];
    while (field_next(&bundle, &field)) {
        if (field.number != METADATA || !field.message.at) continue;
        fields_read(field.message, in, TEXT + 1);
        const bool header = message_is(in[NAME].message, CS_PF_HEADER);
        if (header && p->ours) p->joined = p->read + 1;
        if (header && !p->headed) {
            put_message(&p->head, in[TEXT].message);
            p->headed = p->ours = true;
        }
        if (!message_is(in[NAME].message, CS_PF_TRAILER) || p->ended) continue;
        if (!p->headed) head_made(p);
        put_message(&p->tail, in[TEXT].message);
        p->ended = true;
    }
}

/* --- packets --- */

static void packet_read(struct pftrace *p, struct message message);

/* Reads packets that another tool packed as one zlib stream. Such a stream inside another is
 * ignored. */
static void compressed_read(struct pftrace *p, struct message bytes)
{
    unsigned char room[16 << 10];
    struct rope all = {0};
    struct field field;
    z_stream stream = {
        .next_in = (Bytef *)(uintptr_t)bytes.at, .avail_in = (uInt)message_size(bytes)};
    if (p->inflates || inflateInit(&stream) != Z_OK) return;
    int status;
    do {
        stream.next_out = room;
        stream.avail_out = sizeof room;
        status = inflate(&stream, Z_NO_FLUSH);
        rope_put(&all, (const char *)room, sizeof room - stream.avail_out);
    } while (status == Z_OK && all.length < INFLATED_MOST);
    inflateEnd(&stream);
    rope_room(&all, WIRE_BEHIND);
    if (status != Z_STREAM_END) p->damaged = p->read + 1;
    p->inflates = true;
    struct message packets = message_of(all.at, all.length);
    while (field_next(&packets, &field))
        if (field.number == CS_PF_PACKET) packet_read(p, field.message);
    p->inflates = false;
    free(all.at);
}

/* Reads what only few packets have: facts that later packets need, and texts around the rows. */
static void packet_news(struct pftrace *p, struct sequence *sequence, struct message message)
{
    struct field in[CS_PF_EXTENSION_DESCRIPTOR + 1], defaults[CS_PF_CLOCK_ID + 1],
        event[CS_PF_TRACK_UUID + 1];
    fields_read(message, in, CS_PF_EXTENSION_DESCRIPTOR + 1);
    if (in[COMPRESSED_PACKETS].message.at) compressed_read(p, in[COMPRESSED_PACKETS].message);
    if (in[CS_PF_SEQUENCE_FLAGS].value & 1) numbers_free(&sequence->texts);
    fields_read(in[CS_PF_DEFAULTS].message, defaults, CS_PF_CLOCK_ID + 1);
    fields_read(defaults[CS_PF_TRACK_EVENT].message, event, CS_PF_TRACK_UUID + 1);
    if (defaults[CS_PF_CLOCK_ID].number) sequence->clock = defaults[CS_PF_CLOCK_ID].value;
    if (event[CS_PF_TRACK_UUID].number) sequence->track = event[CS_PF_TRACK_UUID].value;
    snapshot_read(p, sequence, in[CS_PF_CLOCK_SNAPSHOT].message);
    interned_read(p, sequence, in[CS_PF_INTERNED].message);
    extension_read(p, in[CS_PF_EXTENSION_DESCRIPTOR].message);
    bundle_read(p, in[CS_PF_CHROME_EVENTS].message);
}

/* Reads a packet. GPU render stages are ignored: the same work has a slice. */
static void packet_read(struct pftrace *p, struct message message)
{
    struct message rest = message, event = {0}, track = {0};
    uint64_t at = 0, clock = 0, number = 0, flags = 0;
    bool timed = false, news = false;
    struct field field;
    while (field_next(&rest, &field)) {
        switch (field.number) {
        case CS_PF_TIMESTAMP: timed = true, at = field.value; break;
        case CS_PF_SEQUENCE: number = field.value; break;
        case CS_PF_TRACK_EVENT: event = field.message; break;
        case CS_PF_SEQUENCE_FLAGS: flags = field.value, news |= flags & 1; break;
        case CS_PF_CLOCK_ID: clock = field.value; break;
        case CS_PF_TRACK: track = field.message; break;
        case CS_PF_CHROME_EVENTS:
        case CS_PF_CLOCK_SNAPSHOT:
        case CS_PF_INTERNED:
        case COMPRESSED_PACKETS:
        case CS_PF_DEFAULTS:
        case CS_PF_EXTENSION_DESCRIPTOR: news = true; break;
        default: break;
        }
    }
    struct sequence *sequence = record_of(&p->sequences, number, sizeof *sequence);
    sequence->number = number;
    if (news) packet_news(p, sequence, message);
    const uint64_t ns = timed ? time_of(p, sequence, clock, at) : 0;
    if (p->ended && (track.at || (event.at && timed))) p->joined = p->read + 1;
    if (p->ended) return;
    if (track.at) track_read(p, track);
    if (event.at) event_read(p, sequence, ns, flags & CS_PF_SAYS_BARE, event);
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
    struct pftrace *p = array_zeros(1, sizeof *p);
    texts_init(&p->told);
    p->texts = texts;
    return p;
}

/* Whether `rest` begins like a packet, or in another tool's file like a field. If not, the packet
 * before `rest` is not read either: in a torn file, the last new packet may end in bytes of the old
 * trailer, whose rest follows the new packets. */
static bool goes_on(const struct pftrace *p, struct message rest)
{
    const unsigned wire = *rest.at & 7;
    if (p->ours) return *rest.at == (CS_PF_PACKET << 3 | CS_WIRE_BYTES);
    return wire == CS_WIRE_VARINT || wire == CS_WIRE_64 || wire == CS_WIRE_BYTES ||
           wire == CS_WIRE_32;
}

static struct message rest_of(const struct pftrace *p)
{
    return message_of(p->rest.at + p->done, p->rest.length - p->done);
}

/* Reads the next whole packet. False: no packet was read. A packet at the end of the fed bytes
 * waits for more bytes or for pftrace_end(), as goes_on() has to see what follows the packet. */
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
    if (field.number == CS_PF_PACKET) packet_read(p, field.message);
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
    rope_room(&p->rest, WIRE_BEHIND);
}

void pftrace_end(struct pftrace *p) { p->all = true; }

/* Whether a row can be told. A counter's row may wait for more values. */
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
        if (row_is_made(p)) return found->row = p->rows[p->given++]->values, PFTRACE_ROW;
        if (p->given && p->given + 1 == p->made) {
            struct pf_row *const waits = p->rows[p->given];
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
    const size_t n = message_size(all);
    bool *whole = array_zeros(n + 1, 1); /* [i]: packets fill the file from byte i on */
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

void pftrace_free(struct pftrace *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->tracks.count; i++) {
        struct track *track = p->tracks.at[i];
        for (size_t k = 0; k < track->open_capacity; k++) row_free(track->open[k].row);
        free(track->open);
    }
    for (size_t i = 0; i < p->sequences.count; i++)
        numbers_free(&((struct sequence *)p->sequences.at[i])->texts);
    records_free(&p->sequences);
    records_free(&p->tracks);
    records_free(&p->fields);
    records_free(&p->clocks);
    numbers_free(&p->words);
    texts_free(&p->told);
    for (size_t i = 0; i < p->row_capacity; i++) row_free(p->rows[i]);
    free(p->rows);
    free(p->rest.at);
    free(p->head.at);
    free(p->tail.at);
    free(p);
}
