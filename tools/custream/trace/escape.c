#include "tools/custream/trace/escape.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH = 6 };

/* Returns the UTF-16 unit of the escape that begins at `at`; ESCAPE_PAIR: no escape begins
 * there. */
static unsigned unit_at(const char *at, const char *end)
{
    char digits[5] = "";
    if (end - at < LENGTH || at[0] != '\\' || at[1] != 'u') return ESCAPE_PAIR;
    memcpy(digits, at + 2, 4);
    return (unsigned)strtoul(digits, NULL, 16);
}

static bool is_high(unsigned unit) { return (unit & 0x1fc00) == 0xd800; }
static bool is_low(unsigned unit) { return (unit & 0x1fc00) == 0xdc00; }

bool escape_next(struct escape *escape)
{
    while ((escape->at = memchr(escape->at, '\\', (size_t)(escape->end - escape->at)))) {
        escape->unit = unit_at(escape->at, escape->end);
        if (escape->unit == ESCAPE_PAIR) {
            if (escape->end - escape->at < 2) return false;
            escape->at += 2;
            continue;
        }
        escape->at += LENGTH;
        if (!is_high(escape->unit) || !is_low(unit_at(escape->at, escape->end))) return true;
        escape->unit = ESCAPE_PAIR;
        escape->at += LENGTH;
        return true;
    }
    return false;
}
