#include "shim/calls/words.h"

#include <stdio.h>
#include <string.h>

#include "shim/base/append.h"
#include "shim/calls/cuda_api.h"

enum { ONE, BITS };

/* A set's prefix and kind, then its words. */
static const struct row {
    const char *name;
    cs_u64 value;
} rows[] = {
#define WORDS(set, kind, prefix) {prefix, kind},
#define WORD(enumerator)         {#enumerator, enumerator},
#include "shim/calls/words.def"
#undef WORD
#undef WORDS
};

/* Where a set begins. */
enum {
#define WORDS(set, kind, prefix) AT_##set,
#define WORD(enumerator)         AT_##enumerator,
#include "shim/calls/words.def"
#undef WORD
#undef WORDS
    AT_END
};
static const unsigned char at[CS_WORDS_COUNT + 1] = {
#define WORDS(set, kind, prefix) AT_##set,
#define WORD(enumerator)
#include "shim/calls/words.def"
#undef WORD
#undef WORDS
    AT_END
};

static size_t put_number(char text[CS_WORDS_ROOM], size_t at, const char *before, cs_u64 value, const char *after)
{
    return cs_append(text, CS_WORDS_ROOM, at, value < 10 ? "%s%llu%s" : "%s0x%llx%s", before, (unsigned long long)value, after);
}

void cs_words_put(enum cs_words set, cs_u64 value, char text[CS_WORDS_ROOM])
{
    const struct row *const prefix = &rows[at[set]], *const end = &rows[at[set + 1]];
    const size_t skip = strlen(prefix->name);
    cs_u64 rest = value;
    size_t n = 0;
    for (const struct row *row = prefix + 1; row < end && !n; row++)
        if (row->value == value) n = cs_append(text, CS_WORDS_ROOM, n, "%s", row->name + skip), rest = 0;
    for (const struct row *row = prefix + 1; row < end && prefix->value == BITS && rest && n < CS_WORDS_ROOM / 2; row++) {
        if (!row->value || (rest & row->value) != row->value) continue;
        n = cs_append(text, CS_WORDS_ROOM, n, "%s%s", n ? "|" : "", row->name + skip);
        rest &= ~row->value;
    }
    if (!n) put_number(text, 0, "", value, "");
    if (n && rest) n = put_number(text, n, "|", rest, "");
    if (n) put_number(text, n, " (", value, ")");
}
