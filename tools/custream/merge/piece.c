#include "tools/custream/merge/piece.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 2^53: what check takes of numbers that are no times, too. */
#define EXACT_MAX 9007199254740992.0

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
    enum { TIME_DIGITS = 16 }; /* of TIME_MAX, in microseconds */
    int64_t whole = 0;
    if (piece.length > 2 && *piece.at == '"') piece.at++, piece.length -= 2; /* some tools have texts */
    if (!piece.length) return false;
    const char *at = piece.at, *end = piece.at + piece.length;
    if ((*at != '-' && (*at < '0' || *at > '9'))) return false;
    const bool negative = *at == '-';
    if (negative) at++;
    const char *digits = at;
    for (; at < end && *at >= '0' && *at <= '9' && at - digits < TIME_DIGITS; at++) whole = whole * 10 + (*at - '0');
    if (whole > TIME_MAX / 1000) return false;
    int decimals = 0;
    if (at < end && *at == '.')
        for (at++; at < end && *at >= '0' && *at <= '9' && decimals < 3; at++, decimals++) whole = whole * 10 + (*at - '0');
    for (; decimals < 3; decimals++) whole *= 10;
    *ns = negative ? -whole : whole;
    if (at == end) return true;
    const double us = strtod(piece.at, NULL); /* more decimals, or an exponent */
    if (!(fabs(us) * 1000 <= (double)TIME_MAX)) return false;
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
