#include "tools/custream/merge/row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 2^53: what check takes, too. */
#define EXACT_MAX 9007199254740992.0

/* --- values --- */

/* Behind the value at `at`. The text is known to be JSON. */
static const char *skip(const char *at)
{
    int depth = 0;
    do {
        if (*at == '"') {
            for (at++; *at != '"'; at++) at += *at == '\\';
            at++;
        } else if (*at == '{' || *at == '[') {
            depth++, at++;
        } else if (*at == '}' || *at == ']') {
            depth--, at++;
        } else if (*at == ',' || *at == ':') {
            at++;
        } else {
            at += strcspn(at, ",:]}");
        }
    } while (depth > 0);
    return at;
}

void members_each(const char *text, void (*found)(void *of, struct piece name, struct piece value), void *of)
{
    if (*text != '{') return;
    for (const char *at = text + 1; *at == '"' || *at == ',';) {
        if (*at == ',') at++;
        const char *behind = skip(at), *value = behind + 1, *end = skip(value);
        found(of, (struct piece){at + 1, (size_t)(behind - at) - 2}, (struct piece){value, (size_t)(end - value)});
        at = end;
    }
}

struct wanted {
    const char *name;
    struct piece value;
};

static void want(void *of, struct piece name, struct piece value)
{
    struct wanted *wanted = of;
    if (strlen(wanted->name) == name.length && !memcmp(wanted->name, name.at, name.length)) wanted->value = value;
}

struct piece member_at(const char *text, const char *const *path)
{
    struct piece piece = {text, 0};
    for (; *path && piece.at; path++) {
        struct wanted wanted = {.name = *path};
        members_each(piece.at, want, &wanted);
        piece = wanted.value;
    }
    return piece;
}

bool piece_named(struct piece name, const char *text) { return name.length == strlen(text) && !memcmp(name.at, text, name.length); }

bool piece_is(struct piece piece, const char *text)
{
    const size_t length = strlen(text);
    return piece.at && *piece.at == '"' && piece.length == length + 2 && !memcmp(piece.at + 1, text, length);
}

uint64_t piece_hash(uint64_t before, struct piece piece)
{
    uint64_t hash = before ^ 0xcbf29ce484222325;
    for (size_t i = 0; i < piece.length; i++) hash = (hash ^ (unsigned char)piece.at[i]) * 0x100000001b3;
    return (hash ^ 0xff) * 0x100000001b3;
}

bool piece_ns(struct piece piece, int64_t *ns)
{
    int64_t whole = 0;
    if (!piece.length) return false;
    const char *at = piece.at, *end = piece.at + piece.length;
    if ((*at != '-' && (*at < '0' || *at > '9'))) return false;
    const bool negative = *at == '-';
    if (negative) at++;
    const char *digits = at;
    for (; at < end && *at >= '0' && *at <= '9' && at - digits < 15; at++) whole = whole * 10 + (*at - '0');
    int decimals = 0;
    if (at < end && *at == '.')
        for (at++; at < end && *at >= '0' && *at <= '9' && decimals < 3; at++, decimals++) whole = whole * 10 + (*at - '0');
    for (; decimals < 3; decimals++) whole *= 10;
    *ns = negative ? -whole : whole;
    if (at == end) return whole <= (int64_t)EXACT_MAX;
    const double us = strtod(piece.at, NULL); /* more decimals, or an exponent */
    if (!(fabs(us) * 1000 <= EXACT_MAX)) return false;
    *ns = llrint(us * 1000);
    return true;
}

bool piece_natural(struct piece piece, uint64_t *number)
{
    if (!piece.at || !piece.length) return false;
    const bool quoted = *piece.at == '"';
    const char *at = piece.at + quoted, *end = piece.at + piece.length - quoted;
    const bool hex = quoted && end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    if (hex) at += 2;
    if (at == end || end - at > 16 || strspn(at, hex ? "0123456789abcdefABCDEF" : "0123456789") != (size_t)(end - at)) return false;
    *number = strtoull(at, NULL, hex ? 16 : 10);
    return (double)*number < EXACT_MAX;
}

bool piece_next(struct piece *list, uint64_t *number)
{
    if (list->length < 2 || (*list->at != '[' && *list->at != ',')) return false;
    const size_t n = strspn(list->at + 1, "0123456789");
    if (!n || n + 1 == list->length || !piece_natural((struct piece){list->at + 1, n}, number)) return false;
    list->at += n + 1;
    list->length -= n + 1;
    return true;
}

/* --- rows --- */

static const struct {
    const char *name;
    size_t length;
} names[ROW_KEYS] = {[ROW_PH] = {"ph", 2},    [ROW_NAME] = {"name", 4}, [ROW_CAT] = {"cat", 3}, [ROW_PID] = {"pid", 3},         [ROW_TID] = {"tid", 3},
                     [ROW_TS] = {"ts", 2},    [ROW_DUR] = {"dur", 3},   [ROW_ID] = {"id", 2},   [ROW_BIND_ID] = {"bind_id", 7}, [ROW_ID2] = {"id2", 3},
                     [ROW_CORRELATION] = {"correlation", 11}, [ROW_ARGS_NAME] = {"name", 4}, [ROW_ARGS_LABELS] = {"labels", 6}, [ROW_STREAM] = {"cs.stream", 9},
                     [ROW_ORIGIN] = {"origin", 6}, [ROW_WAIT_IDS] = {"event_wait_ids", 14}};

struct reading {
    struct row *row;
    bool twice;
};

static void note(struct reading *reading, struct piece name, struct piece value, enum row_key from, enum row_key to)
{
    for (enum row_key key = from; key < to; key++)
        if (names[key].length == name.length && !memcmp(names[key].name, name.at, name.length)) {
            reading->twice |= reading->row->pieces[key].at != NULL;
            reading->row->pieces[key] = value;
        }
}

static void note_arg(void *of, struct piece name, struct piece value) { note(of, name, value, ROW_CORRELATION, ROW_KEYS); }

static void note_member(void *of, struct piece name, struct piece value)
{
    note(of, name, value, ROW_PH, ROW_CORRELATION);
    if (name.length == 4 && !memcmp(name.at, "args", 4)) members_each(value.at, note_arg, of);
}

bool row_read(struct row *row, const char *text, size_t length)
{
    struct reading reading = {.row = row};
    *row = (struct row){.text = text, .length = length};
    members_each(text, note_member, &reading);
    const struct piece ph = row->pieces[ROW_PH];
    if (reading.twice || !ph.at || *ph.at != '"' || ph.length != 3) return false;
    row->ph = ph.at[1];
    return true;
}

void row_put(const struct row *row, struct change *changes, int count, void (*put)(void *of, const char *text, size_t length), void *of)
{
    const char *at = row->text;
    for (int done = 0; done < count; done++) {
        int first = -1;
        for (int i = 0; i < count; i++) {
            const char *stands = row->pieces[changes[i].key].at;
            if (stands >= at && (first < 0 || stands < row->pieces[changes[first].key].at)) first = i;
        }
        const struct piece old = row->pieces[changes[first].key];
        put(of, at, (size_t)(old.at - at));
        const char *text = changes[first].longer ? changes[first].longer : changes[first].text;
        put(of, text, strlen(text));
        at = old.at + old.length;
    }
    put(of, at, (size_t)(row->text + row->length - at));
}
