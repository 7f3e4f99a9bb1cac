/* custream options: what can be set (shim/base/options.def), for people and as JSON. */
#include "tools/custream/options.h"
#include "tools/custream/command.h"
#include "tools/custream/flags.h"
#include "tools/custream/verdict.h"

#include "shim/policy/keys.h"

enum {
    OPTIONS_VERSION = 1
}; /* of the JSON: grows when a member goes away or means something else */

void option_flag(char flag[FLAG_ROOM], enum cs_option id)
{
    const char *name = cs_option_info[id].id;
    size_t i = 0;
    for (; name[i] && i < FLAG_ROOM - 1; i++) flag[i] = name[i] == '_' ? '-' : (char)(name[i] | 32);
    flag[i] = 0;
}

/* A policy file names no other policy. */
static bool has_key(enum cs_option id) { return id != CS_OPTION_POLICY; }

static bool has_words(enum cs_option id)
{
    return cs_option_info[id].type == CS_TYPE_CHOICE || cs_option_info[id].type == CS_TYPE_SWITCH;
}

/* --- for people --- */

static void words_put(const char *list)
{
    for (; *list; list++) {
        if (*list == '|') fputs(", ", stdout);
        else putchar(*list);
    }
}

static void options_print(void)
{
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        const enum cs_option id = (enum cs_option)i;
        const struct cs_option_info *info = &cs_option_info[id];
        char flag[FLAG_ROOM], key[CS_KEY_ROOM];
        option_flag(flag, id);
        printf("%s%s   --%s", i ? "\n" : "", info->env, flag);
        if (has_key(id)) printf("   \"%s\"", cs_option_key(id, key));
        printf("\n    %s\n    values: ", info->help);
        if (has_words(id)) words_put(info->allowed);
        else fputs(info->allowed, stdout);
        printf("\n    default: %s\n", *info->preset ? info->preset : "none");
    }
}

/* --- for scripts --- */

static cJSON *text_or_null(const char *text)
{
    return text && *text ? cJSON_CreateString(text) : cJSON_CreateNull();
}

/* The words of a list with '|' between them. */
static cJSON *words_of(const char *list)
{
    cJSON *words = cJSON_CreateArray();
    char word[64];
    for (const char *at = list; *at; at += *at == '|') {
        const size_t n = strcspn(at, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (!cJSON_AddItemToArray(words, cJSON_CreateString(word))) out_of_memory();
        at += n;
    }
    return words;
}

static void option_write(enum cs_option id)
{
    const struct cs_option_info *info = &cs_option_info[id];
    char flag[2 + FLAG_ROOM] = "--", key[CS_KEY_ROOM];
    option_flag(flag + 2, id);
    const struct json_member members[] = {
        {"variable", cJSON_CreateString(info->env)},
        {"flag", cJSON_CreateString(flag)},
        {"key", text_or_null(has_key(id) ? cs_option_key(id, key) : NULL)},
        {"meaning", cJSON_CreateString(info->help)},
        {"words", has_words(id) ? words_of(info->allowed) : cJSON_CreateNull()},
        {"allowed", cJSON_CreateString(info->allowed)},
        {"default", text_or_null(info->preset)},
    };
    json_row_put(members, CS_COUNT(members));
}

static void options_write(void)
{
    printf("{\"custream_options\":%d,\"tool\":\"custream " CUSTREAM_VERSION_STRING
           "\",\"options\":[\n",
        OPTIONS_VERSION);
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        if (i) puts(",");
        option_write((enum cs_option)i);
    }
    puts("\n]}");
}

/* --- the command --- */

int command_options(int argc, char **argv)
{
    static char room[1 << 16];
    bool json = false;
    while (flags_next(argc, argv, 0) != -1) json = true;
    if (optind < argc) {
        fputs("custream options: takes nothing but --json\n", stderr);
        return STATUS_UNUSABLE;
    }
    setvbuf(
        stdout, room, _IOFBF, sizeof room); /* in one write: stdio forgets the cause of others */
    if (json) options_write();
    else options_print();
    return STATUS_OK;
}
