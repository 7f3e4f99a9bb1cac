#include "tools/custream/convert/value.h"

#include <string.h>

#include "tools/custream/trace/escape.h"

struct unquoted unquote(struct piece piece)
{
    if (!piece.at || *piece.at != '"') return (struct unquoted){"", 0, NULL};
    if (!memchr(piece.at, '\\', piece.length)) return (struct unquoted){piece.at + 1, piece.length - 2, NULL};
    cJSON *made = cJSON_ParseWithLength(piece.at, piece.length);
    const char *text = cJSON_GetStringValue(made);
    return (struct unquoted){text ? text : "", text ? strlen(text) : 0, made};
}

bool quotes_text(struct piece piece)
{
    if (!piece.at || *piece.at != '"') return false;
    for (struct escape escape = {piece.at, piece.at + piece.length, 0}; escape_next(&escape);)
        if (!escape.unit || escape_is_half(&escape)) return false;
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
