#include "tools/custream/near.h"
#include "shim/policy/file.h"
#include "tools/custream/commands.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>

/* Whether two neighbouring letters are swapped: one slip, which cs_edits() counts as two. */
static bool is_swapped(const char *typed, size_t n, const char *name)
{
    size_t i = 0;
    if (strlen(name) != n) return false;
    while (i < n && typed[i] == name[i]) i++;
    return i + 1 < n && typed[i] == name[i + 1] && typed[i + 1] == name[i] &&
           !memcmp(typed + i + 2, name + i + 2, n - i - 2);
}

void near_look(struct near *near, const char *name)
{
    /* Short words may have fewer slips: two in three letters make another word. */
    const size_t n = near->length, most = n < 2 ? 0 : n < 4 ? 1 : 2;
    const bool begins_so = n && !strncmp(name, near->typed, n);
    size_t slips =
        is_swapped(near->typed, n, name) ? 1 : cs_edits(near->typed, n, name, strlen(name));
    if (slips > 1 && n > 1 && begins_so) slips = most;
    if (slips > most ||
        (near->best && (near->slips < slips || (near->slips == slips && !begins_so))))
        return;
    near->best = name;
    near->slips = slips;
}

int near_complain(const struct near *near, const char *name, const char *kind, const char *typed,
    const char *prefix, const char *command)
{
    if (near->best)
        return complain(
            name, "there is no %s \"%s\"; did you mean \"%s%s\"?", kind, typed, prefix, near->best);
    return complain(name, "there is no %s \"%s\"; 'custream help%s%s' lists them", kind, typed,
        *command ? " " : "", command);
}

const char *shown(char room[SHOWN_ROOM], const char *typed, size_t length)
{
    snprintf(room, SHOWN_ROOM, "%.*s", (int)(length < SHOWN_ROOM ? length : SHOWN_ROOM), typed);
    text_clean(room);
    return room;
}

const struct command_row *word_find(
    const char *name, const struct command_row *command, const char *kind, const char *word)
{
    char room[SHOWN_ROOM];
    struct near near = {.typed = word, .length = strlen(word)};
    EACH_ROW(row, command)
    {
        if (row->kind != ROW_WORD || !row->text) continue;
        if (!strcmp(row->name, word)) return row;
        near_look(&near, row->name);
    }
    near_complain(&near, name, kind, shown(room, word, near.length), "", command->name);
    return NULL;
}

/* --- times --- */

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

/* --- numbers and texts --- */

bool number_read(const char *text, long least, int *number)
{
    char *end;
    errno = 0;
    const long n = strtol(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || n < least || n > INT_MAX) return false;
    *number = (int)n;
    return true;
}

bool text_read(const char *name, char *text, size_t room)
{
    FILE *file = strcmp(name, "-") ? fopen(name, "re") : stdin;
    if (!file) return false;
    errno = 0;
    const size_t n = fread(text, 1, room - 1, file);
    const int error = ferror(file)         ? errno
                      : n == room - 1      ? EFBIG
                      : memchr(text, 0, n) ? EILSEQ
                                           : 0;
    if (file != stdin) fclose(file);
    text[n] = 0;
    return !(errno = error);
}

bool policy_text_read(const char *command, const char *name, char *text, size_t room)
{
    char error[CS_POLICY_LINE];
    struct cs_policy_file file;
    const bool read = text_read(name, text, room);
    if (!read && errno == EFBIG)
        return complained(command, "%s: longer than %zu KiB", name, room >> 10);
    if (!read)
        return complained(command, "%s: %s", name, errno == EILSEQ ? "not text" : strerror(errno));
    if (!cs_policy_file_parse(&file, strcmp(name, "-") ? name : "standard input", text,
            strlen(text), true, error, sizeof error))
        return complained(command, "%s", error);
    cs_policy_file_finish(&file);
    return true;
}
