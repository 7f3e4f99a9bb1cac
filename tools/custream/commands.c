#include "tools/custream/commands.h"

#include <errno.h>

#include "tools/custream/command.h"
#include "tools/custream/verdict.h"

enum { COLUMNS = 100, HEAD_ROOM = 160, TABLE_VERSION = 1 /* of the JSON */ };

/* The table. Each command can be asked for help; that row is not shown. */
static const struct command_row table[] = {
#define COMMAND(name_, place, summary) \
    {.kind = ROW_COMMAND, .name = #name_, .argument = place, .text = summary}, \
    {.kind = ROW_OPTION, .flag = FLAG_HELP, .letter = 'h', .name = "help", .argument = ""},
#define ROW(...) {__VA_ARGS__},
#include "tools/custream/commands.def"
    {.kind = ROW_COMMAND},
};

const struct command_row *command_next(const struct command_row *command)
{
    if (!command) return table;
    for (command++; command->kind != ROW_COMMAND;) command++;
    return command->name ? command : NULL;
}

const struct command_row *command_find(const char *name)
{
    const struct command_row *command = table;
    while (command && strcmp(command->name, name)) command = command_next(command);
    return command;
}

static const struct cs_option_info *library_option(const struct command_row *row)
{
    return row->flag >= FLAG_LIBRARY ? &cs_option_info[row->flag - FLAG_LIBRARY] : NULL;
}

const char *row_name(char room[FLAG_ROOM], const struct command_row *row)
{
    if (row->flag >= FLAG_LIBRARY) option_flag(room, (enum cs_option)(row->flag - FLAG_LIBRARY));
    else snprintf(room, FLAG_ROOM, "%s", row->name);
    return room;
}

/* Allowed values have a line of their own, unless they are words: then the argument lists them. */
static bool has_allowed(const struct cs_option_info *info)
{
    return info->type != CS_TYPE_CHOICE && info->type != CS_TYPE_SWITCH;
}

/* --- for people --- */

/* A text in lines. The first begins where we are, at `column`. */
static void text_fill(const char *text, int column, int indent)
{
    for (bool first = true; *text; first = false) {
        const int length = (int)strcspn(text, " ");
        if (!first && column + 1 + length > COLUMNS) printf("\n%*s", column = indent, "");
        else if (!first) column += printf(" ");
        column += printf("%.*s", length, text);
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

static int head_make(char head[HEAD_ROOM], const struct command_row *row)
{
    char room[FLAG_ROOM];
    const char letter[] = {'-', row->letter, ',', ' ', 0};
    return row->kind == ROW_WORD ? snprintf(head, HEAD_ROOM, "%s", row->name)
                                 : snprintf(head, HEAD_ROOM, "%s--%s%s", row->letter ? letter : "",
                                       row_name(room, row), row->argument);
}

/* The column of the texts of a command's rows of this kind; those of the library stand below. */
static int column_of(const struct command_row *command, enum row_kind kind)
{
    char head[HEAD_ROOM];
    int column = 0;
    EACH_ROW(row, command)
    {
        if (library_option(row)) return 8;
        const int length = row->kind == kind && row->text ? 4 + head_make(head, row) : 0;
        if (column < length) column = length;
    }
    return column;
}

static void option_put(const struct command_row *row, int column)
{
    char head[HEAD_ROOM];
    const struct cs_option_info *info = library_option(row);
    head_make(head, row);
    int at = printf("  %s", head);
    if (info) at += printf("   (%s)", info->env);
    if (at + 2 > column) putchar('\n'), at = 0;
    printf("%*s", column - at, "");
    text_fill(row->text, column, column);
    if (info && has_allowed(info)) text_fill(info->allowed, printf("%*s", column, ""), column);
    if (info && *info->preset) printf("%*sdefault: %s\n", column, "", info->preset);
}

/* Rows of one of these kinds stand together. */
static bool is_listed(enum row_kind kind)
{
    return kind == ROW_USAGE || kind == ROW_OPTION || kind == ROW_WORD;
}

void command_put(const struct command_row *command)
{
    enum row_kind before = ROW_COMMAND;
    EACH_ROW(row, command)
    {
        if (!row->text) continue;
        if (before != ROW_COMMAND && (before != row->kind || !is_listed(row->kind))) putchar('\n');
        if (row->kind == ROW_USAGE)
            printf("%s custream %s%s%s\n", before == ROW_USAGE ? "      " : "usage:", command->name,
                *row->text ? " " : "", row->text);
        else if (row->kind == ROW_LINE) printf("    %s\n", row->text);
        else if (is_listed(row->kind)) option_put(row, column_of(command, row->kind));
        else text_fill(row->text, row->kind == ROW_EXITS ? printf("Exit status: ") : 0, 0);
        before = row->kind;
    }
}

void commands_put(void)
{
    puts("usage: custream COMMAND ...\n");
    for (const struct command_row *command = NULL; (command = command_next(command));)
        printf("  %-8s %s\n", command->name, command->text);
    puts("\n'custream help COMMAND' says more; so does custream(1).");
}

/* --- for scripts --- */

static cJSON *text_or_null(const char *text)
{
    return text ? cJSON_CreateString(text) : cJSON_CreateNull();
}

static void row_write(const struct command_row *row)
{
    static const char *const kinds[] = {[ROW_COMMAND] = "command",
        [ROW_USAGE] = "usage",
        [ROW_TEXT] = "text",
        [ROW_LINE] = "line",
        [ROW_OPTION] = "option",
        [ROW_WORD] = "word",
        [ROW_EXITS] = "exits"};
    const struct cs_option_info *info = library_option(row);
    char name[FLAG_ROOM];
    const struct json_member members[] = {
        {"kind", cJSON_CreateString(kinds[row->kind])},
        {"letter", text_or_null(row->letter ? (const char[]){row->letter, 0} : NULL)},
        {"name", text_or_null(row->name ? row_name(name, row) : NULL)},
        {"argument", text_or_null(row->argument)},
        {"text", text_or_null(row->text)},
        {"variable", text_or_null(info ? info->env : NULL)},
        {"allowed", text_or_null(info && has_allowed(info) ? info->allowed : NULL)},
        {"default", text_or_null(info && *info->preset ? info->preset : NULL)},
    };
    json_row_put(members, CS_COUNT(members));
}

void commands_write(void)
{
    printf("{\"custream_help\":%d,\"tool\":\"custream " CUSTREAM_VERSION_STRING "\",\"rows\":[",
        TABLE_VERSION);
    for (const struct command_row *row = table; row < table + CS_COUNT(table) - 1; row++) {
        puts(row == table ? "" : ",");
        row_write(row);
    }
    puts("\n]}");
}

void leave(int status)
{
    const int failed = ferror(stdout);
    errno = 0;
    if (!fclose(stdout) && !failed) exit(status);
    /* Who closes a pipe, as head(1) does, knows of it. */
    if (errno != EPIPE)
        fprintf(stderr, "custream: cannot write the output: %s\n",
            errno ? strerror(errno) : "write error");
    exit(status ? status : STATUS_UNUSABLE);
}
