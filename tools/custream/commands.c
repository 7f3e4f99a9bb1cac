#include "tools/custream/commands.h"
#include "tools/custream/command.h"
#include "tools/custream/verdict.h"
#include "tools/custream/flags.h"
#include "shim/policy/keys.h"

#include <errno.h>

enum { COLUMNS = 100, TABLE_VERSION = 1 /* the version of the JSON */ };

/* The rows of commands.def. Each command also has a row for --help, which is not shown, as that row
 * has no text. */
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

static bool has_words(const struct cs_option_info *info)
{
    return info->type == CS_TYPE_CHOICE || info->type == CS_TYPE_SWITCH;
}

/* --- for people --- */

static void text_fill(const char *text, int column, int indent)
{
    text_put_wrapped(stdout, text, COLUMNS, indent, column);
}

static int head_make(char head[HEAD_ROOM], const struct command_row *row)
{
    char room[FLAG_ROOM];
    const char letter[] = {'-', row->letter, ',', ' ', 0};
    return row->kind == ROW_WORD ? snprintf(head, HEAD_ROOM, "%s", row->name)
                                 : snprintf(head, HEAD_ROOM, "%s--%s%s", row->letter ? letter : "",
                                       row_name(room, row), row->argument);
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
    if (info && !has_words(info)) text_fill(info->allowed, printf("%*s", column, ""), column);
    if (info && *info->preset) printf("%*sdefault: %s\n", column, "", info->preset);
}

/* Whether rows of this kind stand together, without an empty line between them. */
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
        else if (is_listed(row->kind)) {
            /* Texts begin behind the longest name. If the list has library options, texts begin
             * below the names. */
            char head[HEAD_ROOM];
            int column = 0;
            bool below = false;
            EACH_ROW(other, command)
            {
                const int length =
                    other->kind == row->kind && other->text ? 4 + head_make(head, other) : 0;
                if (column < length) column = length;
                below |= library_option(other) != NULL;
            }
            option_put(row, below ? 8 : column);
        } else text_fill(row->text, row->kind == ROW_EXITS ? printf("Exit status: ") : 0, 0);
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

void commands_write(void)
{
    static const char *const kinds[] = {[ROW_COMMAND] = "command",
        [ROW_USAGE] = "usage",
        [ROW_TEXT] = "text",
        [ROW_LINE] = "line",
        [ROW_OPTION] = "option",
        [ROW_WORD] = "word",
        [ROW_EXITS] = "exits"};
    printf("{\"custream_help\":%d,\"tool\":\"custream " CUSTREAM_VERSION_STRING "\",\"rows\":[",
        TABLE_VERSION);
    for (const struct command_row *row = table; row < table + CS_COUNT(table) - 1; row++) {
        const struct cs_option_info *info = library_option(row);
        char name[FLAG_ROOM];
        const struct json_member members[] = {
            {"kind", cJSON_CreateString(kinds[row->kind])},
            {"letter", text_or_null(row->letter ? (const char[]){row->letter, 0} : NULL)},
            {"name", text_or_null(row->name ? row_name(name, row) : NULL)},
            {"argument", row->argument ? cJSON_CreateString(row->argument) : cJSON_CreateNull()},
            {"text", row->text ? cJSON_CreateString(row->text) : cJSON_CreateNull()},
            {"variable", text_or_null(info ? info->env : NULL)},
            {"allowed", text_or_null(info && !has_words(info) ? info->allowed : NULL)},
            {"default", text_or_null(info ? info->preset : NULL)},
        };
        puts(row == table ? "" : ",");
        json_row_put(members, CS_COUNT(members));
    }
    puts("\n]}");
}

void leave(int status)
{
    const int failed = ferror(stdout);
    errno = 0;
    if (!fclose(stdout) && !failed) exit(status);
    /* No complaint about a pipe that its reader has closed, as head(1) does. */
    if (errno != EPIPE)
        fprintf(stderr, "custream: cannot write the output: %s\n",
            errno ? strerror(errno) : "write error");
    exit(status ? status : STATUS_UNUSABLE);
}

/* --- custream options: what can be set, for people and as JSON --- */

/* The version of the JSON. It grows when a member goes away or changes its meaning. */
enum { OPTIONS_VERSION = 1 };

void option_flag(char flag[FLAG_ROOM], enum cs_option id)
{
    const char *name = cs_option_info[id].id;
    size_t i = 0;
    for (; name[i] && i < FLAG_ROOM - 1; i++) flag[i] = name[i] == '_' ? '-' : (char)(name[i] | 32);
    flag[i] = 0;
}

/* Whether a policy file has a key for the option. A policy file cannot name another policy. */
static bool has_key(enum cs_option id) { return id != CS_OPTION_POLICY; }

/* --- for scripts --- */

static void options_write(void)
{
    printf("{\"custream_options\":%d,\"tool\":\"custream " CUSTREAM_VERSION_STRING
           "\",\"options\":[\n",
        OPTIONS_VERSION);
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        const enum cs_option id = (enum cs_option)i;
        const struct cs_option_info *info = &cs_option_info[id];
        char flag[2 + FLAG_ROOM] = "--", key[CS_KEY_ROOM];
        option_flag(flag + 2, id);
        char *list = kept(info->allowed), *rest = list, *word;
        cJSON *words = has_words(info) ? cJSON_CreateArray() : cJSON_CreateNull();
        while (has_words(info) && (word = strsep(&rest, "|")))
            if (!cJSON_AddItemToArray(words, cJSON_CreateString(word))) out_of_memory();
        const struct json_member members[] = {
            {"variable", cJSON_CreateString(info->env)},
            {"flag", cJSON_CreateString(flag)},
            {"key", text_or_null(has_key(id) ? cs_option_key(id, key) : NULL)},
            {"meaning", cJSON_CreateString(info->help)},
            {"words", words},
            {"allowed", cJSON_CreateString(info->allowed)},
            {"default", text_or_null(info->preset)},
        };
        if (i) puts(",");
        json_row_put(members, CS_COUNT(members));
        free(list);
    }
    puts("\n]}");
}

/* --- the command --- */

int command_options(int argc, char **argv)
{
    static char room[1 << 16];
    bool json = false;
    while (flags_next(argc, argv, 0) != -1) json = true;
    if (optind < argc) return complain("custream options", "takes nothing but --json");
    /* The output goes out in one write, since stdio forgets why an earlier write has failed. */
    setvbuf(stdout, room, _IOFBF, sizeof room);
    if (json) return options_write(), STATUS_OK;
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        const enum cs_option id = (enum cs_option)i;
        const struct cs_option_info *info = &cs_option_info[id];
        char flag[FLAG_ROOM], key[CS_KEY_ROOM];
        option_flag(flag, id);
        printf("%s%s   --%s", i ? "\n" : "", info->env, flag);
        if (has_key(id)) printf("   \"%s\"", cs_option_key(id, key));
        printf("\n    %s\n    values: ", info->help);
        for (const char *at = info->allowed; *at; at++)
            fputs(has_words(info) && *at == '|' ? ", " : (char[]){*at, 0}, stdout);
        printf("\n    default: %s\n", *info->preset ? info->preset : "none");
    }
    return STATUS_OK;
}
