/* The table of commands and of what each takes (commands.def), and the texts that come from it. */
#ifndef CS_TOOLS_COMMANDS_H
#define CS_TOOLS_COMMANDS_H

#include <stdbool.h>

#include "shim/base/options.h"

/* Options by number. Each has one name in all commands. */
#define FLAGS(_) \
    _(AFTER) _(AGAINST) _(ALIGN) _(ALL) _(BATCHES) _(BRIEF) _(CLOCKS) _(CSV) _(DURATION) \
    _(ENGINE) _(FAIL_IF) _(HOST) _(HTML) _(IN) _(IN_PLACE) _(JSON) _(LAST) _(MASTER) \
    _(NO_BROWSER) _(NO_COLOR) _(OFFLINE) _(OUTPUT) _(PARQUET) _(PID) _(PIN) _(POLICY) _(PORT) \
    _(PRINT_URL) _(PROGRAM) _(RANGE) _(FROM_BYTE) _(RANK) _(RANKS) _(REPORT) _(RUN) _(SCHEMA) \
    _(SECTION) _(STAY) _(WHOLE) _(WINDOW) _(YES)
enum flag {
    FLAG_WORD = 1, /* none: a word, where words come in their order (flags.h) */
    FLAG_HELP,
#define NUMBERED(name) FLAG_##name,
    FLAGS(NUMBERED)
#undef NUMBERED
        FLAG_LIBRARY, /* the library's first option (shim/base/options.def); the others follow */
};

enum { FLAG_ROOM = 64 };

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
    const char *name;     /* of an option of the library "TRACE_MAX" */
    const char *argument; /* as usages have it; of a command: what its words are */
    const char *text;     /* NULL: the row is not shown */
    const char *allowed;  /* NULL, or what to say where the argument is missing */
};

/* The first command's row, or the next command's behind `command`; its rows follow. NULL: none. */
const struct command_row *command_next(const struct command_row *command);
const struct command_row *command_find(const char *name);
#define EACH_ROW(row, command) for (const struct command_row *row = (command) + 1; row->kind != \
    ROW_COMMAND; row++)

/* The option's name as it is typed. */
const char *row_name(char room[FLAG_ROOM], const struct command_row *row);

/* The texts of `custream help`: the list, one command, or with --json the table. */
void commands_put(void);
void command_put(const struct command_row *command);
void commands_write(void);

/* Ends the command, as a failure where its output could not be written. */
void leave(int status) __attribute__((noreturn));

/* TRACE_MAX becomes trace-max. */
void option_flag(char flag[FLAG_ROOM], enum cs_option id);

#endif
