#include "tools/custream/flags.h"
#include "tools/custream/near.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The word that getopt stopped at: it goes on to the next one only at a word's end. */
static const char *word_of(int argc, char **argv)
{
    const char *here = optind < argc ? argv[optind] : NULL;
    if (optopt && here && here[0] == '-' && here[1] == optopt && here[2]) return here;
    return argv[optind - 1];
}

static const struct option *row_of(const struct option *table, int option)
{
    while (table->name && table->val != option) table++;
    return table->name ? table : NULL;
}

/* More than one name begins so. */
static bool is_ambiguous(const struct option *table, const char *name, size_t length)
{
    int count = 0;
    for (; table->name; table++) count += !strncmp(table->name, name, length);
    return count > 1;
}

static void say_ambiguous(const struct option *table, const char *name, size_t length)
{
    char room[SHOWN_ROOM];
    const char *between = " may be";
    fprintf(stderr, "\"--%s\"", shown(room, name, length));
    for (; table->name; table++) {
        if (strncmp(table->name, name, length)) continue;
        fprintf(stderr, "%s \"--%s\"", between, table->name);
        between = " or";
    }
    fputc('\n', stderr);
}

static void say_unknown(const struct option *table, const char *command, const char *word)
{
    char room[SHOWN_ROOM];
    const char *name = word + strspn(word, "-");
    struct near near = {.typed = name, .length = strcspn(name, "=")};
    for (; table->name; table++) near_look(&near, table->name);
    fprintf(stderr, "there is no option \"%s\"", shown(room, word, strcspn(word, "=")));
    if (near.best) fprintf(stderr, "; did you mean \"--%s\"?\n", near.best);
    else fprintf(stderr, "; 'custream help %s' lists them\n", command);
}

static void complain_of(const struct option *table, const char *command, const char *word, int answer, flag_allowed *allowed)
{
    const struct option *row = optopt ? row_of(table, optopt) : NULL;
    const size_t length = strcspn(word, "=");
    const char *values = optopt && allowed ? allowed(optopt) : NULL;
    char room[SHOWN_ROOM];
    if (answer == ':') {
        fprintf(stderr, "\"%s\" needs a value", shown(room, word, length));
        if (values) fprintf(stderr, ": allowed is %s\n", values);
        else fprintf(stderr, "; 'custream help %s' says which\n", command);
    } else if (row && word[1] == '-') fprintf(stderr, "\"%s\" takes no value\n", shown(room, word, length));
    else if (word[1] == '-' && is_ambiguous(table, word + 2, length - 2)) say_ambiguous(table, word + 2, length - 2);
    else say_unknown(table, command, word);
}

int flags_next(int argc, char **argv, const char *shorts, const struct option *table, flag_allowed *allowed)
{
    char with[32];
    const int order = *shorts == '+' || *shorts == '-';
    opterr = 0;
    snprintf(with, sizeof with, "%.*s:%s", order, shorts, shorts + order); /* the colon tells "no value" from "no such option" */
    const int answer = getopt_long(argc, argv, with, table, NULL);
    if (answer != '?' && answer != ':') return answer;
    fprintf(stderr, "%s: ", argv[0]);
    complain_of(table, strchr(argv[0], ' ') + 1, word_of(argc, argv), answer, allowed);
    return '?';
}
