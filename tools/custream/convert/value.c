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

size_t value_list(struct piece value, uint32_t numbers[VALUE_LIST])
{
    const char *at = value.at + 1, *end = value.at + value.length - 1;
    size_t n = 0;
    while (at < end && n < VALUE_LIST) {
        const size_t digits = strspn(at, "0123456789");
        if (!digits || digits > 9 || (at[digits] != ',' && at + digits != end)) return 0;
        numbers[n++] = (uint32_t)strtoul(at, NULL, 10);
        at += digits + 1;
    }
    return at >= end ? n : 0;
}
