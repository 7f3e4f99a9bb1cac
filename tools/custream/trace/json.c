#include "tools/custream/trace/json.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>
#include <yyjson.h>

#include "tools/custream/command.h"
#include "tools/custream/trace/value.h"
#include "tools/custream/trace/format.h"

enum {
    LINE_MOST = 64 << 10, /* bytes: the end of an event on a longer line is searched byte by byte */
    VALUE_MOST = 256 << 20,
    POOL_DOUBLED = 16 << 20, /* bytes: a larger pool gets no spare room */
    END = -1,
    FAULT = -2, /* `error` was set */
};

static const yyjson_read_flag FLAGS = YYJSON_READ_NUMBER_AS_RAW;

/* Notes an error in the text at `at`. */
static enum json_step broken(struct json *json, const char *why)
{
    snprintf(
        json->error, sizeof json->error, "line %llu: %s", (unsigned long long)json->lines + 1, why);
    json->fault_line = json->lines + 1;
    json->fault = why;
    return JSON_BROKEN;
}

/* Notes that the file is no trace at all, even if it is JSON. */
static enum json_step no_trace(struct json *json, const char *why)
{
    broken(json, why);
    json->fault_line = 0;
    return JSON_BROKEN;
}

/* Reads the next chunk. False: there is none, or `error` was set. */
static bool fill(struct json *json)
{
    size_t length = 0;
    json->chunk_from += (uint64_t)(json->end - json->chunk);
    json->chunk = json->at = json->end = "";
    json->newline = NULL;
    const int got = reader_bytes(&json->reader, &json->chunk, &length);
    if (got < 0 && !json->reader.cut)
        snprintf(json->error, sizeof json->error, "%s", json->reader.error);
    if (got <= 0) return json->chunk = "", false;
    json->at = json->chunk;
    json->end = json->at + length;
    json->newline = memchr(json->at, '\n', length);
    return true;
}

/* Returns the next byte that is no blank, without taking it; END: there is none. */
static int peek(struct json *json)
{
    for (;;) {
        for (; json->at < json->end &&
               (*json->at == ' ' || *json->at == '\n' || *json->at == '\t' || *json->at == '\r');
            json->at++)
            json->lines += *json->at == '\n';
        if (json->at < json->end) return (unsigned char)*json->at;
        if (!fill(json)) return END;
    }
}

/* --- values --- */

/* The state of the search for a value's end. */
struct scan {
    unsigned depth;
    bool string, escape, scalar;
};

/* Returns the first byte behind the value; NULL: the value goes on behind `end`. */
static const char *scan_on(struct scan *scan, const char *at, const char *end)
{
    for (; at < end; at++) {
        const char c = *at;
        if (scan->string) {
            if (scan->escape) scan->escape = false;
            else if (c == '\\') scan->escape = true;
            else if (c == '"' && !(scan->string = false, scan->depth)) return at + 1;
            continue;
        }
        switch (c) {
        case '"': scan->string = true; break;
        case '{':
        case '[': scan->depth++; break;
        case '}':
        case ']':
            if (scan->scalar) return at;
            if (!--scan->depth) return at + 1;
            break;
        case ',':
        case ' ':
        case '\n':
        case '\t':
        case '\r':
            if (scan->scalar) return at;
            break;
        default:
            if (!scan->depth) scan->scalar = true;
        }
    }
    return NULL;
}

static void hold(struct json *json, const char *at, size_t length)
{
    while (json->held_length + length > json->held_capacity)
        json->held = array_room(json->held, json->held_capacity, &json->held_capacity, 1);
    memcpy(json->held + json->held_length, at, length);
    json->held_length += length;
}

/* Finds the text of the value at `at`. False: the file ends too early, or `error` was set. */
static bool value_text(struct json *json)
{
    struct scan scan = {0};
    json->held_length = 0;
    for (;;) {
        const char *end = scan_on(&scan, json->at, json->end);
        const size_t length = (size_t)((end ? end : json->end) - json->at);
        if (end && !json->held_length)
            return json->text = json->at, json->length = length, json->at = end, true;
        if (json->held_length + length > VALUE_MOST)
            return broken(json, "an event, or a part of the header, of more than 256 MiB"), false;
        hold(json, json->at, length);
        json->at += length;
        if (end) return json->text = json->held, json->length = json->held_length, true;
        if (!fill(json)) return json->text = json->held, json->length = json->held_length, false;
    }
}

/* Returns the UTF-16 unit of the escape \uXXXX that begins at `at`; 0: none begins there. */
static unsigned unit_at(const char *at, const char *end)
{
    char digits[5] = "";
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u') return 0;
    memcpy(digits, at + 2, 4);
    return (unsigned)strtoul(digits, NULL, 16);
}

/* Returns a copy with U+FFFD for each half of a pair of surrogates, which yyjson refuses; NULL: the
 * text has no such half. */
static char *without_halves(const char *text, size_t length)
{
    enum { SURROGATES = 0xd800, LOW = 0xdc00, BEHIND = 0xe000, LENGTH = 6 };
    char *copy = malloc(length), *end = copy + length;
    bool changed = false;
    if (!copy) out_of_memory();
    memcpy(copy, text, length);
    for (char *at = copy; (at = memchr(at, '\\', (size_t)(end - at))) && end - at > 1;) {
        const unsigned unit = unit_at(at, end), next = unit ? unit_at(at + LENGTH, end) : 0;
        const bool surrogate = unit >= SURROGATES && unit < BEHIND,
                   pair = surrogate && unit < LOW && next >= LOW && next < BEHIND;
        if (surrogate && !pair) memcpy(at + 2, "fffd", 4), changed = true;
        at += pair ? 2 * LENGTH : unit ? LENGTH : 2;
    }
    if (changed) return copy;
    free(copy);
    return NULL;
}

static bool parse(struct json *json, const char *text, size_t length, yyjson_read_flag flags)
{
    const size_t room = yyjson_read_max_memory_usage(length, flags);
    yyjson_alc pool;
    yyjson_read_err error;
    if (json->pool_size < room) {
        free(json->pool);
        json->pool = malloc(json->pool_size = room < POOL_DOUBLED ? 2 * room : room);
        if (!json->pool) out_of_memory();
    }
    yyjson_alc_pool_init(&pool, json->pool, json->pool_size);
    if (!json->strict) flags |= YYJSON_READ_ALLOW_INVALID_UNICODE; /* names may be invalid UTF-8 */
    json->doc = yyjson_read_opts((char *)(uintptr_t)text, length, flags, &pool,
        &error); /* yyjson changes the text only with YYJSON_READ_INSITU */
    json->value = yyjson_doc_get_root(json->doc);
    json->is_begun = !json->doc && (!length || error.code == YYJSON_READ_ERROR_UNEXPECTED_END);
    json->has_half = false;
    if (json->doc) return true;
    char *copy = json->strict || error.code != YYJSON_READ_ERROR_INVALID_STRING
                     ? NULL
                     : without_halves(text, length);
    const bool good = copy && parse(json, copy, length, flags);
    free(copy);
    if (good) return json->has_half = true;
    const char at = error.pos < length ? text[error.pos] : 0;
    json->fault_in_number =
        error.code == YYJSON_READ_ERROR_INVALID_NUMBER || (at && strchr("nNiI", at)); /* NaN, inf */
    snprintf(json->why, sizeof json->why, "no JSON: %.160s", error.msg);
    json->why_at = error.pos < length ? error.pos : length;
    return false;
}

/* Parses an event that stands alone on its line, as most tools write events. False: the event does
 * not stand alone, or is no JSON. */
static bool line_parse(struct json *json)
{
    if (json->newline && json->newline < json->at)
        json->newline = memchr(json->at, '\n', (size_t)(json->end - json->at));
    if (json->many || !json->newline || *json->at != '{' || json->newline - json->at > LINE_MOST)
        return false;
    const size_t length = (size_t)(json->newline - json->at);
    if (!parse(json, json->at, length, FLAGS | YYJSON_READ_STOP_WHEN_DONE)) return false;
    json->text = json->at;
    json->length = yyjson_doc_get_read_size(json->doc);
    json->at += json->length;
    json->many = length - json->length > 2;
    return true;
}

/* Reads the value that begins at `at`. Returns `read`, JSON_CUT or JSON_BROKEN. */
static enum json_step value_read(struct json *json, enum json_step read)
{
    json->line = json->lines + 1;
    if (line_parse(json)) return read;
    const bool whole = value_text(json),
               good = !*json->error && parse(json, json->text, json->length, FLAGS);
    if (*json->error) return JSON_BROKEN;
    if (!whole && json->is_begun) return JSON_CUT;
    const char *at = json->text, *const end = at + (good ? json->length : json->why_at);
    for (; (at = memchr(at, '\n', (size_t)(end - at))); at++) json->lines++;
    return good ? read : broken(json, json->why);
}

/* --- the file --- */

static enum json_step next(struct json *json);

static enum json_step rows_begin(struct json *json)
{
    if (json->rows_seen) return broken(json, "traceEvents twice");
    json->at++;
    json->rows_line = json->lines + 1;
    json->rows_seen = true;
    json->follows = false;
    json->where = JSON_ROWS;
    return next(json);
}

static enum json_step begin(struct json *json)
{
    const int c = peek(json);
    if (c == '[')
        return json->bare = true,
               rows_begin(json); /* a list of events and nothing else, as some tools write */
    if (c == END)
        return *json->error ? JSON_BROKEN
                            : (snprintf(json->error, sizeof json->error, "empty"), JSON_BROKEN);
    if (c != '{') return no_trace(json, "no JSON, or no trace: it begins with neither { nor [");
    json->at++;
    json->where = JSON_MEMBERS;
    return next(json);
}

static enum json_step ends(struct json *json)
{
    json->where = JSON_BEHIND;
    if (peek(json) != END) return broken(json, "no JSON: something stands behind the end");
    if (*json->error) return JSON_BROKEN;
    if (!json->rows_seen) return no_trace(json, "no trace: it has no list of traceEvents");
    return json->reader.cut ? JSON_CUT : JSON_END;
}

/* Judges a text that ends too early: JSON_CUT if the list of events has begun, else JSON_BROKEN. */
static enum json_step cut(struct json *json)
{
    if (*json->error) return JSON_BROKEN;
    if (json->rows_seen) return JSON_CUT;
    return no_trace(json, "cut off before its first event");
}

/* Returns the byte that the next element begins with, `closes` or END; FAULT: `error` was set. */
static int element_next(struct json *json, int closes)
{
    int c = peek(json);
    if (!json->follows || c == END || c == closes) return c;
    if (c != ',') return broken(json, "no JSON: no comma between two values"), FAULT;
    json->at++;
    c = peek(json);
    return c == closes ? broken(json, "no JSON: a comma behind the last value"), FAULT : c;
}

/* Passes over the slice at `at` if it begins before skip_to. False: the event is to be read. */
static bool is_skipped(struct json *json)
{
    static const char slice[] = "{\"ph\":\"X\"";
    if (json->chunk_from + (uint64_t)(json->at - json->chunk) >= json->skip_to) return false;
    const char *newline = memchr(json->at, '\n', (size_t)(json->end - json->at));
    if (!newline || newline - json->at < 16 || memcmp(json->at, slice, sizeof slice - 1))
        return false;
    const char *last = newline - 1 - (newline[-1] == ',');
    if (*last != '}') return false;
    json->at = last + 1;
    return true;
}

static enum json_step row(struct json *json)
{
    int c = element_next(json, ']');
    while (c == '{' && json->skip_to && is_skipped(json)) {
        json->follows = true;
        c = element_next(json, ']');
    }
    if (c == FAULT) return JSON_BROKEN;
    if (c == END) return cut(json);
    json->follows = true;
    if (c != ']') return value_read(json, JSON_ROW);
    json->at++;
    json->rows_end_line = json->lines + 1;
    if (json->bare) return ends(json);
    json->where = JSON_MEMBERS;
    return next(json);
}

static enum json_step member(struct json *json)
{
    int c = element_next(json, '}');
    if (c == FAULT) return JSON_BROKEN;
    if (c == END) return cut(json);
    if (c == '}') return json->at++, ends(json);
    if (c != '"') return broken(json, "no JSON: a member without a name");
    json->follows = true;
    if (value_read(json, JSON_MEMBER) != JSON_MEMBER) return *json->error ? JSON_BROKEN : cut(json);
    snprintf(json->name, sizeof json->name, "%s", yyjson_get_str(json->value));
    c = peek(json);
    if (c == END) return cut(json);
    if (c != ':') return broken(json, "no JSON: no colon behind a name");
    json->at++;
    c = peek(json);
    if (c == END) return cut(json);
    if (c == '[' && !strcmp(json->name, "traceEvents")) return rows_begin(json);
    const enum json_step step = value_read(json, JSON_MEMBER);
    return step == JSON_CUT ? cut(json) : step;
}

/* --- packets --- */

/* Parses the text before the events, or behind them, as an object of its own. */
static bool members_read(
    struct json *json, const struct pftrace_found *found, enum pftrace_piece piece)
{
    const char *at = found->text, *end = at + found->length;
    while (end > at && memchr(" \n\t\r", end[-1], 4)) end--;
    json->held_length = 0;
    if (piece == PFTRACE_TAIL) {
        at += *at == ']';
        while (at < end && memchr(" \n\t\r,", *at, 5)) at++;
        hold(json, "{", 1);
    }
    hold(json, at, (size_t)(end - at));
    if (piece == PFTRACE_HEAD) json->held_length -= end > at && end[-1] == ',', hold(json, "}", 1);
    if (!parse(json, json->held, json->held_length, FLAGS) || !yyjson_is_obj(json->value))
        return snprintf(json->error, sizeof json->error, "%s", json->why), false;
    json->member = 0;
    json->members = yyjson_obj_size(json->value);
    return true;
}

static enum json_step piece_next(struct json *json)
{
    struct pftrace_found found;
    if (json->member < json->members) {
        yyjson_val *const name = json->member
                                     ? unsafe_yyjson_get_next(json->value)
                                     : unsafe_yyjson_get_first(yyjson_doc_get_root(json->doc));
        json->member++;
        json->line = json->lines + !json->lines;
        snprintf(json->name, sizeof json->name, "%s", unsafe_yyjson_get_str(name));
        json->value = name + 1;
        return JSON_MEMBER;
    }
    const enum pftrace_piece piece = reader_piece(&json->reader, &found);
    if (piece == PFTRACE_ROW) {
        json->line = ++json->lines;
        json->row.length = 0;
        json->value = found.row;
        if (!json->strict) return JSON_ROW;
        row_print(&json->row, found.row);
        return parse(json, json->row.at, json->row.length, FLAGS) ? JSON_ROW
                                                                  : broken(json, json->why);
    }
    if (piece) return members_read(json, &found, piece) ? piece_next(json) : JSON_BROKEN;
    if (json->reader.broken)
        return snprintf(json->error, sizeof json->error, "%s", json->reader.error), JSON_BROKEN;
    if (!pftrace_is_headed(json->reader.packets))
        return snprintf(json->error, sizeof json->error, "no event in its packets"), JSON_BROKEN;
    return pftrace_is_whole(json->reader.packets) && !json->reader.torn.cut ? JSON_END : JSON_CUT;
}

/* In memory, yyjson puts a value and all values inside it one behind the other. */
bool json_has_null(const struct json *json)
{
    yyjson_val *const end = unsafe_yyjson_get_next(json->value);
    for (yyjson_val *value = json->value; value < end; value++)
        if (unsafe_yyjson_get_type(value) == YYJSON_TYPE_NULL) return true;
    return false;
}

const char *json_text(struct json *json, size_t *length)
{
    if (!reader_is_packets(&json->reader)) return *length = json->length, json->text;
    json->row.length = 0;
    row_print(&json->row, json->value);
    return *length = json->row.length, json->row.at;
}

/* --- text or packets --- */

static enum json_step next(struct json *json)
{
    if (reader_is_packets(&json->reader)) return piece_next(json);
    switch (json->where) {
    case JSON_BEGIN: return begin(json);
    case JSON_MEMBERS: return member(json);
    case JSON_ROWS: return row(json);
    default: return JSON_END;
    }
}

/* Refuses a trace of ours whose format is too new. */
enum json_step json_next(struct json *json)
{
    uint64_t format;
    *json->error = 0;
    const enum json_step step = next(json);
    if (step != JSON_MEMBER) return step;
    if (!strcmp(json->name, "schemaVersion") && yyjson_is_raw(json->value)) {
        const bool natural = value_natural(json->value, &format) && format <= UINT_MAX;
        json->format = natural ? (unsigned)format : UINT_MAX;
    }
    const char *tool =
        strcmp(json->name, "metadata") ? NULL : yyjson_get_str(yyjson_obj_get(json->value, "tool"));
    json->ours |= tool && !strncmp(tool, "custream ", 9);
    if (!json->ours || format_read(json->format, json->error, sizeof json->error))
        return JSON_MEMBER;
    json->fault_line = 0;
    return JSON_BROKEN;
}

static bool opened(struct json *json, bool good)
{
    if (!good) snprintf(json->error, sizeof json->error, "%s", json->reader.error);
    return good;
}

bool json_open(struct json *json, const char *path, bool in_ns)
{
    *json = (struct json){.chunk = "", .at = "", .end = ""};
    const bool good = reader_open(&json->reader, path);
    json->reader.in_ns = in_ns;
    return opened(json, good);
}

bool json_take(struct json *json, int fd, const struct torn_more *more)
{
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    *json = (struct json){.chunk = "", .at = "", .end = ""};
    if (own >= 0) lseek(own, 0, SEEK_SET);
    const bool good = reader_take(&json->reader, own);
    json->reader.torn.more = more;
    return opened(json, good);
}

void json_close(struct json *json)
{
    reader_close(&json->reader);
    free_all(json->held, json->row.at, json->pool);
}
