#include "tools/custream/duration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/show.h"

static const struct {
    const char *name;
    double ns;
} units[] = {
    {"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"m", 6e10}, {"h", 3.6e12}};

bool duration_read(const char *text, const char **behind, int64_t *ns)
{
    char *end;
    if (*text < '0' || *text > '9') return false;
    const double number = strtod(text, &end);
    const size_t length = strspn(end, "abcdefghijklmnopqrstuvwxyz");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strlen(units[i].name) != length || memcmp(units[i].name, end, length)) continue;
        *behind = end + length;
        *ns = number * units[i].ns <= 1e17 ? llrint(number * units[i].ns) : -1;
        return *ns >= 0;
    }
    return false;
}

bool duration_take(const char *command, const char *option, const char *text, int64_t *ns)
{
    const char *behind;
    if (duration_read(text, &behind, ns) && !*behind && *ns > 0) return true;
    return complained(command,
        "--%s=%.60s: allowed is a time above 0 in seconds, or with ms, s, m, h: 5s, 500ms", option,
        text);
}
