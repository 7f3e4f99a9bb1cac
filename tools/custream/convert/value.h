/* What values of a row say, as Perfetto's format takes them. */
#ifndef CS_CONVERT_VALUE_H
#define CS_CONVERT_VALUE_H

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "tools/custream/merge/row.h"

/* A JSON string's text; of what is none, nothing. It stays until unquoted_free, or is part of the row. */
struct unquoted {
    const char *at;
    size_t length;
    cJSON *made;
};
struct unquoted unquote(struct piece piece);
static inline void unquoted_free(struct unquoted *text) { cJSON_Delete(text->made); }

/* Whether that is all of the string: what is none, and one with \u0000 or half a pair of surrogates, no text says. */
bool quotes_text(struct piece piece);

/* A list of up to 16 numbers of up to nine digits, as lengths of a grid are: how many. 0: it is another list, or an empty one. */
enum { VALUE_LIST = 16 };
size_t value_list(struct piece value, uint32_t numbers[VALUE_LIST]);

#endif
