#include "tools/custream/flags.h"
#include "tools/custream/command.h"
#include "tools/custream/near.h"

/* The value that getopt gives for a command's row 0: above all letters. */
enum { FIRST = 256 };

/* The tables for getopt, of the command whose options are read. */
static struct tables {
    const struct command_row *command;
    struct option *longs;
    char (*names)[FLAG_ROOM], *shorts;
} tables;

static void tables_make(struct tables *t, const struct command_row *command, char order)
{
    size_t count = 0, n = 0, s = 0;
    EACH_ROW(row, command) count++;
    *t = (struct tables){command, array_zeros(count + 1, sizeof *t->longs),
        array_zeros(count, sizeof *t->names), array_zeros(count + 2, 3)};
    if (order) t->shorts[s++] = order;
    t->shorts[s++] = ':'; /* has getopt tell a missing value from an unknown option */
    EACH_ROW(row, command)
    {
        if (row->kind != ROW_OPTION) continue;
        const int argument = *row->argument == '[' ? optional_argument
                             : *row->argument      ? required_argument
                                                   : no_argument;
        t->longs[n] = (struct option){
            row_name(t->names[n], row), argument, NULL, FIRST + (int)(row - command)};
        n++;
        if (!row->letter) continue;
        t->shorts[s++] = row->letter;
        if (*row->argument) t->shorts[s++] = ':';
    }
}

/* Returns the row of an option, by getopt's value: a letter, or FIRST plus the row's place; NULL:
 * none. */
static const struct command_row *row_of(const struct command_row *command, int value)
{
    EACH_ROW(row, command)
    if (row->kind == ROW_OPTION && value &&
        (value == row->letter || value == FIRST + (int)(row - command)))
        return row;
    return NULL;
}

static void say_unknown(const char *word)
{
    char room[SHOWN_ROOM], who[64];
    const char *name = word + strspn(word, "-");
    struct near near = {.typed = name, .length = strcspn(name, "=")};
    for (const struct option *at = tables.longs; at->name; at++) near_look(&near, at->name);
    const char *command = tables.command->name;
    snprintf(who, sizeof who, "custream %s", command);
    near_complain(&near, who, "option", shown(room, word, strcspn(word, "=")), "--", command);
}

static void complain_of(const char *word, int answer)
{
    const struct command_row *row = row_of(tables.command, optopt);
    const size_t length = strcspn(word, "=");
    char room[SHOWN_ROOM];
    const bool unknown = answer != ':' && (!row || word[1] != '-');
    int begin_so = 0; /* how many options begin with the word's letters */
    for (const struct option *at = tables.longs; at->name && word[1] == '-'; at++)
        begin_so += !strncmp(at->name, word + 2, length - 2);
    if (unknown && begin_so < 2) return say_unknown(word);
    fprintf(stderr, "custream %s: ", tables.command->name);
    shown(room, word, length);
    if (unknown) {
        fprintf(stderr, "\"%s\"", room);
        const char *between = " may be";
        for (const struct option *at = tables.longs; at->name; at++) {
            if (strncmp(at->name, word + 2, length - 2)) continue;
            fprintf(stderr, "%s \"--%s\"", between, at->name);
            between = " or";
        }
        fputc('\n', stderr);
        return;
    }
    if (answer != ':') fprintf(stderr, "\"%s\" takes no value\n", room);
    else if (row && row->allowed)
        fprintf(stderr, "\"%s\" needs a value: allowed is %s\n", room, row->allowed);
    else
        fprintf(stderr, "\"%s\" needs a value; 'custream help %s' says which\n", room,
            tables.command->name);
}

int flags_next(int argc, char **argv, char order)
{
    const struct command_row *command = command_find(argv[0]);
    if (command != tables.command) tables_make(&tables, command, order);
    opterr = 0;
    const int answer = getopt_long(argc, argv, tables.shorts, tables.longs, NULL);
    if (answer == -1 || answer == FLAG_WORD) return answer;
    if (answer == '?' || answer == ':') {
        /* optind is behind the wrong word, or still at it if more letters follow (-xyz) */
        const char *here = optind < argc ? argv[optind] : NULL;
        const bool at = optopt && here && here[0] == '-' && here[1] == optopt && here[2];
        complain_of(at ? here : argv[optind - 1], answer);
        leave(STATUS_UNUSABLE);
    }
    const int flag = row_of(command, answer)->flag;
    if (flag == FLAG_HELP) command_put(command), leave(STATUS_OK);
    return flag;
}
