#include <ctype.h>
#include <inttypes.h>

#include "shim/base/append.h"
#include "shim/base/json.h"
#include "shim/base/loss.h"
#include "shim/base/rings.h"
#include "shim/calls/record.h"
#include "shim/calls/runtime.h"
#include "tools/custream/mend/inside.h"

enum { TEXTS = 1 << 16, TEXT_MOST = 4096, ROW = 8 * TEXT_MOST };

/* --- texts --- */

void record_texts_read(struct record_texts *texts, char *bytes, size_t size)
{
    texts->bytes = bytes;
    texts->of = array_zeros(TEXTS, sizeof *texts->of);
    for (size_t at = 0; size - at > sizeof(struct cs_rings_name);) {
        const struct cs_rings_name *name = (const struct cs_rings_name *)(const void *)(bytes + at);
        const size_t room = size - at - sizeof *name;
        if (name->length >= TEXT_MOST || name->length >= room || name->name >= TEXTS ||
            name->text[name->length])
            return; /* damaged from here on */
        texts->of[name->name] = name->text;
        const size_t next = at + ((sizeof *name + name->length + 1 + 7) & ~(size_t)7);
        if (next > size) return;
        at = next;
    }
}

/* --- times --- */

static int64_t ns_of(const struct record_lane *lane, uint64_t ticks)
{
    const double off = ticks >= lane->ticks ? (double)(ticks - lane->ticks)
                                            : -(double)(lane->ticks - ticks),
                 ns = (double)lane->ns + off * lane->rate;
    return ns > 0 && ns < 9e15 ? (int64_t)ns : 0;
}

/* --- a row --- */

struct row_text {
    char at[ROW];
    size_t length;
};

#define add(row, ...) ((void)((row)->length = cs_append((row)->at, ROW, (row)->length, \
    __VA_ARGS__)))

static void add_text(struct row_text *row, const char *text)
{
    if (ROW - row->length > 6 * TEXT_MOST + 2)
        row->length = (size_t)(cs_put_string(row->at + row->length, text, TEXT_MOST) - row->at);
}

static void begin(struct row_text *row, const struct record_lane *lane, const char *category,
    const char *name, int64_t from, int64_t to)
{
    add(row,
        "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
        ",\"ts\":%" PRId64 ".%03d,\"dur\":%" PRId64 ".%03d,\"args\":{\"cs.recovered\":1",
        category, name, lane->pid, lane->tid, from / 1000, (int)(from % 1000), (to - from) / 1000,
        (int)((to - from) % 1000));
}

/* Adds a value that can be shown without other records. */
static void add_value(struct row_text *row, const struct record_lane *lane, const char *label,
    enum cs_format format, const uint64_t *v)
{
    switch (format) {
    case CS_FORMAT_SIZE:
    case CS_FORMAT_UINT: return add(row, ",\"%s\":%" PRIu64, label, *v);
    case CS_FORMAT_INT: return add(row, ",\"%s\":%" PRId32, label, (int32_t)*v);
    case CS_FORMAT_HEX:
    case CS_FORMAT_PTR:
    case CS_FORMAT_FUNCTION: return add(row, ",\"%s\":\"0x%" PRIx64 "\"", label, *v);
    case CS_FORMAT_KERNEL:
        if (!(uint32_t)*v) return;
        const char *text =
            lane->texts->of && (uint32_t)*v < TEXTS ? lane->texts->of[(uint32_t)*v] : NULL;
        add(row, ",\"%s\":", label);
        return add_text(row, text ?: "(not kept)");
    case CS_FORMAT_GRID:
        return add(row,
            ",\"%s\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "],\"block\":[%" PRIu32 ",%" PRIu32
            ",%" PRIu32 "]",
            label, (uint32_t)v[0], (uint32_t)(v[0] >> 32), (uint32_t)v[1], (uint32_t)(v[1] >> 32),
            (uint32_t)v[2], (uint32_t)(v[2] >> 32));
    default: return;
    }
}

static void add_call(
    struct row_text *row, const struct record_lane *lane, const struct cs_record *record)
{
    const struct cs_call_info *info = &cs_call_info[record->call];
    const struct cs_rings_stream *stream = &lane->streams[record->stream % CS_RINGS_STREAMS];
    const char *way = cs_way_name[cs_call_way((enum cs_call)record->call)];
    if (record->stream && stream->ref == record->stream) {
        add(row, ",\"cs.stream\":%" PRIu32, stream->lane);
        if (stream->device) add(row, ",\"cs.device\":%" PRIu32, stream->device);
    }
    if (record->call == CS_CALL_CALLBACK)
        return add(row, ",\"function\":\"0x%" PRIx64 "\"", record->value[0]);
    if (way) add(row, ",\"direction\":\"%s\"", way);
    for (int i = 0; i < CS_VALUES && info->shown[i].label; i++)
        if (*info->shown[i].label)
            add_value(row, lane, info->shown[i].label, info->shown[i].format, &record->value[i]);
}

static bool end(struct row_text *row, struct record_lane *lane, int64_t to)
{
    add(row, "}}");
    if (row->length >= ROW - 1 || !mend_put(lane->to, row->at)) return false;
    if (to > lane->filled) lane->filled = to;
    return true;
}

/* Adds a row with the lane's name if there is no such row yet: the row has to come before the
 * lane's first event. */
static void name_lane(struct record_lane *lane)
{
    static struct row_text row;
    if (lane->named) return;
    lane->named = true;
    row.length = 0;
    add(&row,
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
        ",\"args\":{\"name\":",
        lane->pid, lane->tid);
    add_text(&row, *lane->name ? lane->name : "thread");
    add(&row, "}}");
    mend_put(lane->to, row.at);
}

bool record_row(struct record_lane *lane, const struct cs_record *record)
{
    static struct row_text row;
    const bool runtime = cs_call_is_runtime(record->call);
    const char *name = runtime ? cs_runtime_name(record->call) : cs_call_info[record->call].name;
    if (!lane->tid || record->begin > record->end || !record->call ||
        (record->call >= CS_CALL_RANGE_PUSH && !runtime) || !name || !*name)
        return false;
    if (record->call == CS_CALL_LOSS)
        return record_lost(lane, record->value[0], record->begin, record->end);
    /* The row begins so late that it cuts no earlier row in two. */
    const bool encloses = runtime || record->call == CS_CALL_CALLBACK;
    const int64_t begun = ns_of(lane, record->begin), till = ns_of(lane, record->end),
                  least = encloses ? lane->filled : 0, to = till < least ? least : till,
                  from = encloses ? mend_lane_from(lane->to, lane->pid, lane->tid, begun)
                         : begun > lane->filled ? begun
                                                : lane->filled;
    row.length = 0;
    name_lane(lane);
    begin(&row, lane,
        runtime                            ? "cuda_runtime"
        : record->call == CS_CALL_CALLBACK ? "cs_callback"
        : record->call == CS_CALL_DELAY    ? "cs_policy"
                                           : "cuda_driver",
        name + strspn(name, "_"), from, to > from ? to : from + 1);
    if (!runtime) add_call(&row, lane, record);
    if (record->result) add(&row, ",\"cs.result\":%d", record->result);
    return end(&row, lane, to > from ? to : from + 1);
}

bool record_lost(struct record_lane *lane, uint64_t count, uint64_t begin_ticks, uint64_t end_ticks)
{
    static struct row_text row;
    const int64_t since = ns_of(lane, begin_ticks),
                  from = since > lane->filled ? since : lane->filled, till = ns_of(lane, end_ticks),
                  to = till > from ? till : from + 1;
    if (!lane->tid || !count || count >= (uint64_t)1 << 53) return false;
    row.length = 0;
    name_lane(lane);
    begin(&row, lane, "cs_loss", cs_call_info[CS_CALL_LOSS].name, from, to);
    add(&row, ",\"count\":%" PRIu64 ",\"cause\":\"%s\",\"cs.loss\":\"%s\"", count,
        cs_loss_info[CS_LOSS_FULL_RING].text, cs_loss_info[CS_LOSS_FULL_RING].key);
    return end(&row, lane, to + 1);
}
