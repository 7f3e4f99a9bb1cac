#include "tools/custream/convert/value.h"

#include <stdlib.h>
#include <string.h>

struct unquoted unquote(struct piece piece)
{
    if (!piece.at || *piece.at != '"') return (struct unquoted){"", 0, NULL};
    if (!memchr(piece.at, '\\', piece.length)) return (struct unquoted){piece.at + 1, piece.length - 2, NULL};
    cJSON *made = cJSON_ParseWithLength(piece.at, piece.length);
    const char *text = cJSON_GetStringValue(made);
    return (struct unquoted){text ? text : "", text ? strlen(text) : 0, made};
}

/* Of an escape \uXXXX. */
static unsigned unit_of(const char *at)
{
    char digits[5] = "";
    memcpy(digits, at + 2, 4);
    return (unsigned)strtoul(digits, NULL, 16);
}

bool quotes_text(struct piece piece)
{
    enum { HIGH = 0xd800, LOW = 0xdc00, HALF = 0xfc00, LONG = 6 };
    if (!piece.at || *piece.at != '"') return false;
    for (const char *at = piece.at, *end = at + piece.length; (at = memchr(at, '\\', (size_t)(end - at)));) {
        if (at[1] != 'u') {
            at += 2;
            continue;
        }
        const unsigned unit = unit_of(at);
        at += LONG;
        if (!unit || (unit & HALF) == LOW) return false;
        if ((unit & HALF) != HIGH) continue;
        if (at[0] != '\\' || at[1] != 'u' || (unit_of(at) & HALF) != LOW) return false;
        at += LONG;
    }
    return true;
}

size_t value_list(struct piece value, uint32_t numbers[VALUE_LIST])
{
    enum { LARGEST = 999999999 };
    uint64_t number;
    size_t n = 0;
    while (n < VALUE_LIST && piece_next(&value, &number)) {
        if (number > LARGEST) return 0;
        numbers[n++] = (uint32_t)number;
    }
    return value.length == 1 ? n : 0;
}
