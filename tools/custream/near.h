/* "Did you mean": finds the name that the user is likely to have meant. */
#ifndef CS_TOOLS_NEAR_H
#define CS_TOOLS_NEAR_H

#include "tools/custream/command.h"

struct near {
    const char *typed;
    size_t length;    /* how long the typed word is; the text may go on behind it */
    const char *best; /* NULL: none is close enough */
    size_t slips;     /* how many slips lie between `best` and what was typed */
};

/* Compares one name. The caller does so for all names, with near->best NULL at first. Of equally
 * close names, near->best becomes the last one that begins with the typed word; if none does, the
 * first one. */
void near_look(struct near *near, const char *name);
/* Says that there is no such `kind`. Adds the name that was likely meant; if there is none, the
 * `custream help` command that lists all names. Returns STATUS_UNUSABLE. */
int near_complain(const struct near *near, const char *name, const char *kind, const char *typed,
    const char *prefix, const char *command);

struct command_row;
/* Returns the row of a command's word. NULL: a line on stderr says that there is no such `kind`. */
const struct command_row *word_find(
    const char *name, const struct command_row *command, const char *kind, const char *word);

enum { SHOWN_ROOM = 64 };
/* Copies what was typed into `room`, cut short and without control characters. Returns `room`. */
const char *shown(char room[SHOWN_ROOM], const char *typed, size_t length);

/* Reads a whole number of at least `least`. False: the text is no such number. */
bool number_read(const char *text, long least, int *number);
/* Reads and checks a policy's file ("-": standard input). False: the complaint was printed. */
bool policy_text_read(const char *command, const char *name, char *text, size_t room);
/* Reads a file, or standard input for "-", as a text. False with errno. */
bool text_read(const char *name, char *text, size_t room);

/* Reads "1.5", "20ms", "2m" or "1h", up to three years, in ns. `behind`: the text behind it. False:
 * the text begins with no such time. */
bool duration_read(const char *text, const char **behind, int64_t *ns);
/* Reads the value of --OPTION, a time above 0. False: the complaint was printed. */
bool duration_take(const char *command, const char *option, const char *text, int64_t *ns);

#endif
