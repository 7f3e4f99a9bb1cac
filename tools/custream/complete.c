/* custream --complete WORDS: says what may stand in the place of the last word behind `custream`,
 * for the completions of shells (tools/pages/). Each line has a word, a tab and what the word
 * means. Two lines are special. ":file": a path may stand there. ":program N": the command line of
 * a program begins behind the first N words, of which `custream` is one. */
#include "tools/custream/commands.h"
#include "tools/custream/command.h"
#include "tools/custream/live/live.h"

#include <limits.h>

static void put(const char *before, const char *word, const char *behind, const char *text)
{
    printf("%s%s%s", before, word, behind);
    if (text)
        printf("\t%.*s", (int)(strstr(text, ". ") ? strstr(text, ". ") - text : INT_MAX), text);
    putchar('\n'); /* the first sentence is enough */
}

/* `place`: what stands there, as in the rows of commands. */
static void place_put(const char *place)
{
    struct listeners listeners;
    const bool pid = !strcmp(place, "pid"), command = !strcmp(place, "command");
    for (const struct command_row *row = NULL; command && (row = command_next(row));)
        put("", row->name, "", row->text);
    if (pid) listeners_find("custream", &listeners);
    for (size_t i = 0; pid && i < listeners.count; i++)
        printf("%d\t%s\n", listeners.each[i]->peer.pid, listeners.each[i]->command);
    if (!pid && !command && *place) printf(":%s\n", place);
}

static void value_put(const char *before, const struct command_row *row)
{
    char value[HEAD_ROOM], *rest = value;
    snprintf(value, sizeof value, "%s", row->argument + strspn(row->argument, "[="));
    value[strcspn(value, "]")] = 0;
    if (!strcmp(value, "PID")) return place_put("pid");
    if (strstr("FILE OUT DIR FOLDER", value)) return place_put("file");
    for (char *word; strchr(row->argument, '|') && (word = strsep(&rest, "|"));)
        if (!word[strcspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")]) put(before, word, "", NULL);
}

/* Returns the row of the option that was typed, with or without "=VALUE" behind its name. */
static const struct command_row *option_of(const struct command_row *command, const char *typed)
{
    char name[FLAG_ROOM];
    const size_t n = strcspn(typed, "=");
    EACH_ROW(row, command)
    {
        if (row->kind != ROW_OPTION || !row->text) continue;
        const bool letter = typed[1] == row->letter && n == 2;
        if (letter ||
            (n > 2 && strlen(row_name(name, row)) == n - 2 && !strncmp(name, typed + 2, n - 2)))
            return row;
    }
    return NULL;
}

/* Prints a command's rows of this kind, or only counts them. */
static size_t rows_put(const struct command_row *command, enum row_kind kind, bool print)
{
    char name[FLAG_ROOM];
    const char *const before = kind == ROW_OPTION ? "--" : "";
    size_t count = 0;
    EACH_ROW(row, command)
    {
        if (row->kind != kind || !row->text) continue;
        if (print) put(before, row_name(name, row), *row->argument == '=' ? "=" : "", row->text);
        count++;
    }
    return count;
}

void command_complete(int count, char **words)
{
    const char *const last = count ? words[count - 1] : "";
    const struct command_row *const command = count > 1 ? command_find(words[0]) : NULL;
    const struct command_row *open = NULL; /* the option that waits for its value */
    bool given = false;                    /* "=" came as a word of its own, as in bash */
    int place = 0;                         /* how many words came that are no options */
    if (count < 2) return place_put("command");
    if (!command) return;
    for (int i = 1; i < count - 1; i++) {
        const struct command_row *now = *words[i] == '-' ? option_of(command, words[i]) : NULL;
        const bool equals = !strcmp(words[i + 1], "=");
        if (!strcmp(words[i], "=")) given = open;
        else if (open) open = NULL, given = false;
        else if (now && !strchr(words[i], '=') && (*now->argument == '=' || equals)) open = now;
        else if (*words[i] != '-' && !strcmp(command->argument, "program"))
            return (void)printf(":program %d\n", i + 1);
        else place += *words[i] != '-';
    }
    const bool equals = !strcmp(last, "=");
    if (open && (equals || given || *last != '-')) return value_put("", open);
    const struct command_row *own = *last == '-' ? option_of(command, last) : NULL;
    if (own && strchr(last, '=')) {
        char before[FLAG_ROOM];
        snprintf(before, sizeof before, "%.*s", (int)strcspn(last, "=") + 1, last);
        return value_put(before, own);
    }
    if (*last == '-') return (void)rows_put(command, ROW_OPTION, true);
    if (!strcmp(command->argument, "program")) return (void)printf(":program %d\n", count);
    if (!rows_put(command, ROW_WORD, place == 1) || !place) place_put(command->argument);
    else if (place > 1) place_put("file");
}
