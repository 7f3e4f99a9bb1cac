/* "Did you mean": of the names that there are, the one that somebody is likely to have meant. */
#ifndef CS_TOOLS_NEAR_H
#define CS_TOOLS_NEAR_H

#include "tools/custream/command.h"

struct near {
    const char *typed;
    size_t length;    /* of what was typed: need not end there */
    const char *best; /* NULL: none is close enough */
    size_t slips;     /* how far the best one is away */
};

/* For each name that there is, near->best NULL before the first. Of two as close the first counts,
 * or one that begins with what was typed. */
void near_look(struct near *near, const char *name);

struct command_row;
/* The row of a command's word. NULL: one line on stderr says so, and calls it a `kind`. */
const struct command_row *word_find(
    const char *name, const struct command_row *command, const char *kind, const char *word);

enum { SHOWN_ROOM = 64 };
/* What was typed, short and without control characters. Returns `room`. */
const char *shown(char room[SHOWN_ROOM], const char *typed, size_t length);

/* A whole number from `least` on. False: it is none. */
bool number_read(const char *text, long least, int *number);
/* The text of a policy's file, or "-", with a NUL behind it, which the library will take as far as
 * we know. False: the complaint was printed. */
bool policy_text_read(const char *command, const char *name, char *text, size_t room);
/* What stands in a file, as a text. False with errno. */
bool text_read(const char *name, char *text, size_t room);

/* "1.5", "20ms", "2m", "1h" in nanoseconds, up to three years; `behind` is its end. False: none. */
bool duration_read(const char *text, const char **behind, int64_t *ns);
/* The value of --OPTION, which lasts; false: the complaint was printed. */
bool duration_take(const char *command, const char *option, const char *text, int64_t *ns);

#endif
