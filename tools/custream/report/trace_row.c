#include "tools/custream/report/trace_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "tools/custream/command.h"
#include "tools/custream/reader.h"

enum kind { KIND_WORD, KIND_NUMBER, KIND_TIME, KIND_LIST };
enum level { LEVEL_TOP, LEVEL_ARGS };

static const struct {
    const char *name;
    enum kind kind;
    enum level level;
} keys[TRACE_KEY_COUNT] = {
#define TOP(key, name, kind) [KEY_##key] = {name, KIND_##kind, LEVEL_TOP},
#define ARG(key, name, kind) [KEY_##key] = {name, KIND_##kind, LEVEL_ARGS},
    TRACE_KEYS(TOP, ARG)
#undef TOP
#undef ARG
};
_Static_assert(TRACE_KEY_COUNT <= 64, "a bit a key");

enum {
    PATH_MAX_BYTES = 240, /* of a fact; deeper or longer ones are nobody's */
    DEPTH_MAX = 16,
    KEY_NONE = 255,
    KEY_TEXTS = 256,      /* texts of keys have low numbers: trace_read() says them first */
};

/* Where in the file the parser is. Depths count open brackets. */
struct parse {
    struct texts *texts;
    const struct trace_sink *sink;
    unsigned depth;
    unsigned rows_depth;      /* of the list of events while it is open; 0 */
    bool rows_seen;
    /* in an event: */
    bool args_open, list_open;
    unsigned char key;        /* enum trace_key whose value comes next; KEY_NONE */
    unsigned char listed;     /* numbers of the list that have come */
    bool opens_args;          /* the key that came last was args or id2 */
    text last_key, next_key[KEY_TEXTS]; /* of keys, which one came after each: mostly that one comes again */
    struct trace_row row;
    /* outside: the path of what comes next, and where each level of it ends */
    char path[PATH_MAX_BYTES];
    unsigned path_length, level_end[DEPTH_MAX], nth[DEPTH_MAX]; /* nth: elements so far of a list; UINT32_MAX: no list */
    bool path_lost;           /* too deep or too long */
    unsigned char key_of[2][KEY_TEXTS];
    text args_text, id2_text;
};

/* --- outside of events: paths --- */

static void path_push(struct parse *p, const char *at, size_t length)
{
    const unsigned from = p->depth && p->depth < DEPTH_MAX ? p->level_end[p->depth] : 0;
    if (p->depth >= DEPTH_MAX || from + length + 2 > PATH_MAX_BYTES) {
        p->path_lost = true;
        return;
    }
    p->path_length = from;
    if (from) p->path[p->path_length++] = '.';
    memcpy(p->path + p->path_length, at, length);
    p->path_length += (unsigned)length;
    p->path[p->path_length] = 0;
    p->path_lost = false;
}

/* An element of a list is named by its number. */
static void path_element(struct parse *p)
{
    if (!p->depth || p->depth >= DEPTH_MAX || p->nth[p->depth] == UINT32_MAX) return;
    char number[16];
    path_push(p, number, (size_t)snprintf(number, sizeof number, "%u", p->nth[p->depth]++));
}

static void fact(struct parse *p, struct trace_fact fact)
{
    path_element(p);
    fact.path = p->path;
    if (!p->path_lost && p->path_length) p->sink->fact(p->sink->of, &fact);
}

static void open_outside(struct parse *p, bool list)
{
    path_element(p);
    const bool rows = list && !p->rows_seen && (p->depth == 0 || (p->depth == 1 && !strcmp(p->path, "traceEvents")));
    p->depth++;
    if (p->depth < DEPTH_MAX) p->level_end[p->depth] = p->path_length, p->nth[p->depth] = list ? 0 : UINT32_MAX;
    if (rows) p->rows_depth = p->depth, p->rows_seen = true;
}

static void close_outside(struct parse *p)
{
    p->depth--;
    if (p->depth && p->depth < DEPTH_MAX) p->path_length = p->level_end[p->depth];
}

/* --- numbers --- */

/* Further away from 0 there is nothing of ours. Two of them can be added. */
static const int64_t number_max = INT64_MAX / 4;

static int64_t clamped(double number) { return number >= (double)number_max ? number_max : number <= (double)-number_max ? -number_max : (int64_t)number; }

static int64_t whole_of(const char *at, size_t length)
{
    const bool negative = length && *at == '-';
    int64_t n = 0;
    for (size_t i = negative; i < length; i++) {
        if (at[i] < '0' || at[i] > '9') return clamped(strtod(at, NULL));
        n = n * 10 + (at[i] - '0');
        if (n > number_max / 10) return i + 1 == length ? (negative ? -n : n) : clamped(strtod(at, NULL));
    }
    return negative ? -n : n;
}

/* Microseconds to nanoseconds, exact for up to three decimals, cut behind them. A number in another spelling goes through a double. */
static int64_t nanoseconds_of(const char *at, size_t length)
{
    const bool negative = length && *at == '-';
    int64_t n = 0;
    int decimals = -1;
    for (size_t i = negative; i < length && decimals < 3; i++) {
        if (at[i] == '.' && decimals < 0) {
            decimals = 0;
            continue;
        }
        if (at[i] < '0' || at[i] > '9' || n > number_max / 10) return clamped(strtod(at, NULL) * 1000);
        n = n * 10 + (at[i] - '0');
        if (decimals >= 0) decimals++;
    }
    if (memchr(at, 'e', length) || memchr(at, 'E', length)) return clamped(strtod(at, NULL) * 1000);
    for (decimals = decimals < 0 ? 0 : decimals; decimals < 3; decimals++) n = n > number_max / 10 ? number_max : n * 10;
    return negative ? -n : n;
}

/* --- inside an event --- */

static void list_number(struct parse *p, int64_t number)
{
    if (p->key == KEY_WAIT_IDS) {
        if (p->row.id_count < TRACE_IDS_MOST) p->row.ids[p->row.id_count++] = number;
    } else if (p->listed < 3) {
        (p->key == KEY_GRID ? p->row.grid : p->row.block)[p->listed++] = (uint32_t)number;
    }
}

static void value_number(struct parse *p, const char *at, size_t length)
{
    if (p->list_open) {
        list_number(p, whole_of(at, length));
        return;
    }
    if (p->key == KEY_NONE) return;
    switch (keys[p->key].kind) {
    case KIND_TIME: p->row.number[p->key] = nanoseconds_of(at, length); break;
    case KIND_NUMBER: p->row.number[p->key] = whole_of(at, length); break;
    case KIND_WORD: p->row.word[p->key] = text_number_or(p->texts, p->row.word[p->key], at, length); break;
    default: return;
    }
    p->row.has |= 1ull << p->key;
}

static void value_text(struct parse *p, const char *at, size_t length)
{
    if (p->key == KEY_NONE || p->list_open) return;
    switch (keys[p->key].kind) {
    case KIND_WORD: p->row.word[p->key] = text_number_or(p->texts, p->row.word[p->key], at, length); break;
    case KIND_NUMBER: { /* other tools may have "0x1"; a thread may be "stream 7" */
        char word[32], *end;
        if (length >= sizeof word) return;
        memcpy(word, at, length);
        word[length] = 0;
        p->row.number[p->key] = strtoll(word, &end, 0);
        if (end == word || *end) return;
        break;
    }
    default: return;
    }
    p->row.has |= 1ull << p->key;
}

/* Whether a value that stands here is one of the event or its args, not deeper. */
static bool at_value(const struct parse *p) { return p->depth == p->rows_depth + (p->list_open ? 3 : p->args_open ? 2 : 1); }

/* --- what yajl says --- */

static int on_number(void *of, const char *at, size_t length)
{
    struct parse *p = of;
    if (!p->rows_depth) fact(p, (struct trace_fact){.number = strtod(at, NULL), .whole = whole_of(at, length)});
    else if (at_value(p)) value_number(p, at, length);
    return 1;
}

static int on_string(void *of, const unsigned char *at, size_t length)
{
    struct parse *p = of;
    if (!p->rows_depth) fact(p, (struct trace_fact){.value = text_number(p->texts, (const char *)at, length)});
    else if (at_value(p)) value_text(p, (const char *)at, length);
    return 1;
}

static int on_bool(void *of, int yes)
{
    struct parse *p = of;
    if (!p->rows_depth) fact(p, (struct trace_fact){.number = yes, .whole = yes});
    else if (at_value(p)) value_number(p, yes ? "1" : "0", 1);
    return 1;
}

static int on_null(void *of)
{
    struct parse *p = of;
    if (!p->rows_depth) path_element(p);
    return 1;
}

static int on_key(void *of, const unsigned char *at, size_t length)
{
    struct parse *p = of;
    if (!p->rows_depth) {
        path_push(p, (const char *)at, length);
        return 1;
    }
    if (!at_value(p) || p->list_open) return 1;
    const text name = text_number_or(p->texts, p->next_key[p->last_key], (const char *)at, length);
    if (name < KEY_TEXTS) p->next_key[p->last_key] = name, p->last_key = name;
    p->key = name < KEY_TEXTS ? p->key_of[p->args_open ? LEVEL_ARGS : LEVEL_TOP][name] : KEY_NONE;
    p->opens_args = !p->args_open && (name == p->args_text || name == p->id2_text);
    return 1;
}

static int on_open(void *of, bool list)
{
    struct parse *p = of;
    if (!p->rows_depth) {
        open_outside(p, list);
        return 1;
    }
    if (p->depth == p->rows_depth) p->row.has = 0, p->args_open = p->list_open = p->opens_args = false, p->key = KEY_NONE;
    else if (list && p->args_open && at_value(p) && p->key != KEY_NONE && keys[p->key].kind == KIND_LIST) {
        if (p->key == KEY_WAIT_IDS) p->row.id_count = 0;
        else memset(p->key == KEY_GRID ? p->row.grid : p->row.block, 0, sizeof p->row.grid);
        p->row.has |= 1ull << p->key;
        p->list_open = true;
        p->listed = 0;
    } else if (!list && at_value(p) && p->opens_args) p->args_open = true;
    p->depth++;
    return 1;
}

static int on_close(void *of)
{
    struct parse *p = of;
    if (!p->rows_depth) {
        close_outside(p);
        return 1;
    }
    p->depth--;
    if (p->list_open && p->depth == p->rows_depth + 2) p->list_open = false, p->key = KEY_NONE;
    else if (p->args_open && p->depth == p->rows_depth + 1) p->args_open = p->opens_args = false, p->key = KEY_NONE;
    else if (p->depth == p->rows_depth) p->sink->row(p->sink->of, &p->row);
    else if (p->depth < p->rows_depth) p->rows_depth = 0, p->path_length = p->depth < DEPTH_MAX ? p->level_end[p->depth] : 0;
    return 1;
}

static int on_open_map(void *of) { return on_open(of, false); }
static int on_open_list(void *of) { return on_open(of, true); }

/* --- the file --- */

static void parse_init(struct parse *p, struct texts *texts, const struct trace_sink *sink)
{
    *p = (struct parse){.texts = texts, .sink = sink, .key = KEY_NONE};
    memset(p->key_of, KEY_NONE, sizeof p->key_of);
    for (unsigned char key = 0; key < TRACE_KEY_COUNT; key++) {
        const text name = text_number(texts, keys[key].name, strlen(keys[key].name));
        if (name < KEY_TEXTS) p->key_of[keys[key].level][name] = key;
    }
    p->args_text = text_number(texts, "args", 4);
    p->id2_text = text_number(texts, "id2", 3);
}

static uint64_t newlines(const char *at, size_t length)
{
    uint64_t n = 0;
    for (const char *end = at + length; (at = memchr(at, '\n', (size_t)(end - at))); at++) n++;
    return n;
}

static enum trace_end refused(char error[256], yajl_handle handle, uint64_t lines, const char *chunk, size_t length)
{
    const size_t at = yajl_get_bytes_consumed(handle);
    unsigned char *why = yajl_get_error(handle, 0, NULL, 0);
    char *text = (char *)why;
    text[strcspn(text, "\n")] = 0;
    snprintf(error, 256, "line %llu: no JSON: %.160s", (unsigned long long)(lines + newlines(chunk, at < length ? at : length) + 1), text);
    yajl_free_error(handle, why);
    return TRACE_UNREADABLE;
}

static enum trace_end read_chunks(struct parse *p, struct reader *reader, yajl_handle handle, uint64_t *bytes, char error[256])
{
    const char *chunk;
    size_t length;
    uint64_t lines = 0;
    int got;
    while ((got = reader_bytes(reader, &chunk, &length)) > 0) {
        if (yajl_parse(handle, (const unsigned char *)chunk, length) != yajl_status_ok) return refused(error, handle, lines, chunk, length);
        lines += newlines(chunk, length);
        *bytes += length;
        if (p->sink->progress) p->sink->progress(p->sink->of, reader_offset(reader));
        if (p->sink->enough && p->sink->enough(p->sink->of)) return TRACE_WHOLE;
    }
    if (got < 0 && !(reader->cut && p->rows_seen)) {
        snprintf(error, 256, "%s", reader->error);
        return TRACE_UNREADABLE;
    }
    const bool open = p->depth > 0 || yajl_complete_parse(handle) != yajl_status_ok;
    if (p->rows_seen) return open ? TRACE_CUT : TRACE_WHOLE;
    snprintf(error, 256, "%s", *bytes ? "no trace: it has no list of traceEvents" : "empty");
    return TRACE_UNREADABLE;
}

enum trace_end trace_read(const char *path, struct texts *texts, const struct trace_sink *sink, uint64_t *bytes, char error[256])
{
    static const yajl_callbacks callbacks = {.yajl_null = on_null, .yajl_boolean = on_bool, .yajl_number = on_number, .yajl_string = on_string,
                                             .yajl_start_map = on_open_map, .yajl_map_key = on_key, .yajl_end_map = on_close,
                                             .yajl_start_array = on_open_list, .yajl_end_array = on_close};
    struct reader reader;
    struct parse p;
    enum trace_end end = TRACE_UNREADABLE;
    parse_init(&p, texts, sink);
    yajl_handle handle = yajl_alloc(&callbacks, NULL, &p);
    if (!handle) out_of_memory();
    yajl_config(handle, yajl_dont_validate_strings, 1); /* a name that is no UTF-8 is no reason to say nothing */
    if (reader_open(&reader, path)) end = read_chunks(&p, &reader, handle, bytes, error);
    else snprintf(error, 256, "%s", reader.error);
    reader_close(&reader);
    yajl_free(handle);
    return end;
}
