/* The table of commands, their options and words (commands.def), and the texts made from it. */
#ifndef CS_TOOLS_COMMANDS_H
#define CS_TOOLS_COMMANDS_H

#include <stdbool.h>

#include "shim/base/options.h"

/* The options of all commands, as enum flag numbers them. Commands that share a number spell the
 * option the same: FLAG_JSON is --json in each. */
#define FLAGS(_) \
    _(AFTER) _(AGAINST) _(ALIGN) _(ALL) _(BATCHES) _(BRIEF) _(CLOCKS) _(CRITICAL_PATH) _(CSV) _(DURATION) \
    _(ENGINE) _(FAIL_IF) _(HOST) _(HTML) _(IN) _(IN_PLACE) _(JSON) _(LAST) _(MASTER) \
    _(NO_BROWSER) _(NO_COLOR) _(OFFLINE) _(OUTPUT) _(PARQUET) _(PID) _(PIN) _(POLICY) _(PORT) \
    _(PRINT_URL) _(PROGRAM) _(RANGE) _(FROM_BYTE) _(RANK) _(RANKS) _(REPORT) _(RUN) _(SCHEMA) \
    _(SECTION) _(STAY) _(WHAT_IF) _(WHOLE) _(WINDOW) _(YES)
enum flag {
    FLAG_WORD = 1, /* a word instead of an option; flags_next() returns it only with order '-' */
    FLAG_HELP,
#define NUMBERED(name) FLAG_##name,
    FLAGS(NUMBERED)
#undef NUMBERED
        FLAG_LIBRARY, /* the library's first option (shim/base/options.def); the others follow */
};

enum { FLAG_ROOM = 64, HEAD_ROOM = 160 };

struct command_row {
    enum row_kind {
        ROW_COMMAND,
        ROW_USAGE,
        ROW_TEXT,
        ROW_LINE,
        ROW_OPTION,
        ROW_WORD,
        ROW_EXITS
    } kind;
    int flag;
    char letter;          /* 0: none */
    const char *name;     /* "fail-if"; of an option of the library: "TRACE_MAX" */
    const char *argument; /* "=FILE", "[=FILE]" or ""; of a command: its `place` in commands.def */
    const char *text;     /* NULL: the row is not shown */
    const char *allowed;  /* the allowed values, for the complaint about a missing value; NULL: the
                             complaint does not name them */
};

/* Returns the row of the next command; for NULL, the row of the first command. NULL: no command is
 * left. Behind that row stand the rows of the command's options, words and texts. */
const struct command_row *command_next(const struct command_row *command);
const struct command_row *command_find(const char *name);
#define EACH_ROW(row, command) for (const struct command_row *row = (command) + 1; row->kind != \
    ROW_COMMAND; row++)

/* Returns the option's name as it is typed, without "--". */
const char *row_name(char room[FLAG_ROOM], const struct command_row *row);

/* Print the texts of `custream help`: the list of commands, one command, and the table as JSON. */
void commands_put(void);
void command_put(const struct command_row *command);
void commands_write(void);

/* complete.c: prints what may stand in the place of the last of these words behind `custream`. */
void command_complete(int count, char **words);

/* Ends the command with this status, or with a failure if its output could not be written. */
void leave(int status) __attribute__((noreturn));

/* Makes a flag of an option's name: trace-max of TRACE_MAX. */
void option_flag(char flag[FLAG_ROOM], enum cs_option id);

#endif
