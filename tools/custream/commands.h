/* The table of commands and of what each takes (commands.def), and the texts that come from it. */
#ifndef CS_TOOLS_COMMANDS_H
#define CS_TOOLS_COMMANDS_H

#include <stdbool.h>

#include "tools/custream/options.h"

/* Options by number. Each has one name in all commands. */
enum flag {
    FLAG_WORD = 1, /* none: a word, where words come in their order (flags.h) */
    FLAG_HELP,
    FLAG_AFTER,
    FLAG_AGAINST,
    FLAG_ALIGN,
    FLAG_ALL,
    FLAG_BATCHES,
    FLAG_BRIEF,
    FLAG_CLOCKS,
    FLAG_CSV,
    FLAG_DURATION,
    FLAG_ENGINE,
    FLAG_FAIL_IF,
    FLAG_HOST,
    FLAG_HTML,
    FLAG_IN,
    FLAG_IN_PLACE,
    FLAG_JSON,
    FLAG_LAST,
    FLAG_MASTER,
    FLAG_NO_BROWSER,
    FLAG_NO_COLOR,
    FLAG_OFFLINE,
    FLAG_OUTPUT,
    FLAG_PARQUET,
    FLAG_PID,
    FLAG_PIN,
    FLAG_POLICY,
    FLAG_PORT,
    FLAG_PRINT_URL,
    FLAG_PROGRAM,
    FLAG_RANGE,
    FLAG_FROM_BYTE,
    FLAG_RANK,
    FLAG_RANKS,
    FLAG_REPORT,
    FLAG_RUN,
    FLAG_SCHEMA,
    FLAG_SECTION,
    FLAG_STAY,
    FLAG_WHOLE,
    FLAG_WINDOW,
    FLAG_YES,
    FLAG_LIBRARY, /* the library's first option (shim/base/options.def); the others follow */
};

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

#endif
