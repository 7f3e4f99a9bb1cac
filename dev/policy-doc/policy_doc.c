/* policy-doc PAGE: prints docs/policy.md with the text between its marks made from the tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/policy/keys.h"
#include "shim/policy/settle.h"

/* Prints "a|b" as `a`, `b`: a bar would end the cell. */
static void put_words(const char *words)
{
    for (; *words; words += strcspn(words, "|"), words += *words == '|')
        printf("`%.*s`%s", (int)strcspn(words, "|"), words, strchr(words, '|') ? ", " : "");
}

static void put_options(bool live)
{
    char key[CS_KEY_ROOM];
    puts(live ? "| key | what it decides | allowed | default | example |\n| --- | --- | --- | --- "
                "| --- |"
              : "| key | what it decides | allowed |\n| --- | --- | --- |");
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        const struct cs_option_info *info = &cs_option_info[i];
        if (i == CS_OPTION_POLICY || !cs_live_example[i] == live) continue;
        printf("| `%s` | %s | ", cs_option_key((enum cs_option)i, key), info->help);
        if (info->type == CS_TYPE_CHOICE || info->type == CS_TYPE_SWITCH) put_words(info->allowed);
        else
            for (const char *p = info->allowed; *p; p++) printf(*p == '|' ? "\\|" : "%c", *p);
        if (live) printf(" | `%s` | `%s`", info->preset, cs_live_example[i]);
        puts(" |");
    }
}

static void put_keys(const struct cs_policy_key *key)
{
    puts("| key | what it is | allowed | example |\n| --- | --- | --- | --- |");
    for (; key->name; key++) {
        char allowed[CS_ALLOWED_ROOM];
        printf("| `%s` | %s | ", key->name, key->help);
        if (key->type == CS_KEY_CHOICE) put_words(key->words);
        else if (key->type == CS_KEY_NUMBER && key->most == INT32_MAX)
            printf("a whole number%s", key->least < 0 ? "" : key->least ? " from 1" : " from 0");
        else fputs(cs_key_allowed(key, allowed), stdout);
        printf(" | `\"%s\": %s` |\n", key->name, key->example);
    }
}

static const char *nothing(enum cs_option id) { return id == CS_OPTION_COUNT ? "" : NULL; }

/* Prints what `custream run --policy` says of a text; false: nothing is wrong with it. */
static bool put_error(const char *json)
{
    char error[CS_POLICY_LINE];
    struct cs_policy_file file;
    struct cs_settled settled;
    struct cs_contradiction found;
    bool wrong =
        !cs_policy_file_parse(&file, "policy.json", json, strlen(json), false, error, sizeof error);
    if (!wrong) {
        cs_settle(&settled, &file, nothing);
        wrong = cs_settled_contradicts(&settled, &found, error, sizeof error);
        cs_policy_file_finish(&file);
    }
    if (wrong) printf("custream run: %s\n", error);
    return wrong;
}

/* Wrong policies. Those of the first list break the format. Those of the second list have no
 * effect, or contradict themselves. */
static const char *const errors[2][12] = {
    {
        "{\"rules\": [{\"set\": {\"priority\": -1}},, {\"set\": {\"priority\": 0}}]}",
        "{\"defualt_stream\": \"legacy\"}",
        "{\"trace_max\": 1}",
        "{\"rules\": [{\"match\": {\"libary\": \"libnccl*\"}, \"set\": {\"priority\": -1}}]}",
        "{\"rules\": [{\"match\": {\"device\": \"first\"}, \"set\": {\"priority\": -1}}]}",
        "{\"rules\": [{\"match\": {\"nth\": 1, \"nth\": 2}, \"set\": {\"priority\": -1}}]}",
        "{\"rules\": [{\"set\": {\"priority\": \"high\"}}]}",
    },
    {
        "{\"rules\": [{\"match\": {\"library\": \"libnccl*\"}}]}",
        "{\"rules\": [{\"match\": {\"library\": \"a*\"}, \"set\": {\"priority\": -1}}, "
        "{\"match\": {\"library\": \"a*\", \"device\": 0}, \"set\": {\"priority\": -2}}]}",
        "{\"rules\": [{\"match\": {\"call\": \"cudaStreamCreate*\"}, "
        "\"set\": {\"priority\": -1}}]}",
        "{\"rules\": [{\"match\": {\"context\": \"green\", \"call\": \"cuStreamCreate\"}, "
        "\"set\": {\"priority\": -1}}]}",
        "{\"rules\": [{\"match\": {\"priority\": 0}, "
        "\"set\": {\"default_stream\": \"per-thread\"}}]}",
        "{\"rules\": [{\"match\": {\"name\": \"comm*\"}, \"set\": {\"nonblocking\": true}}]}",
        "{\"streams\": \"serial\", \"default_stream\": \"per-thread\"}",
        "{\"default_stream\": \"audit\", \"rules\": [{\"match\": {\"thread\": \"io-*\"}, "
        "\"set\": {\"default_stream\": \"per-thread\"}}]}",
        "{\"priority\": \"0:-1\", \"rules\": [{\"match\": {\"library\": \"libnccl*\"}, "
        "\"set\": {\"priority\": -5}}]}",
        "{\"default_handles\": \"all\"}",
    },
};

static bool put_part(const char *name)
{
    const unsigned list = (unsigned)name[strlen("errors ")] - '1';
    if (!strncmp(name, "policy options", 14)) put_options(true);
    else if (!strncmp(name, "other options", 13)) put_options(false);
    else if (!strncmp(name, "match", 5)) put_keys(cs_match_keys);
    else if (!strncmp(name, "set", 3)) put_keys(cs_set_keys);
    else if (strncmp(name, "errors ", 7) || list > 1) return false;
    else {
        puts("```");
        for (const char *const *json = errors[list]; *json; json++)
            if (!put_error(*json)) return false;
        puts("```");
    }
    return true;
}

int main(int argc, char **argv)
{
    char line[4096];
    bool made = false;
    FILE *page = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!page) return fprintf(stderr, "usage: policy-doc PAGE\n"), 2;
    while (fgets(line, sizeof line, page)) {
        if (!strcmp(line, "<!-- end -->\n")) made = false;
        if (made) continue;
        fputs(line, stdout);
        made = !strncmp(line, "<!-- made: ", 11);
        if (made && !put_part(line + 11))
            return fprintf(stderr, "policy-doc: no such part, or nothing is wrong: %s", line), 1;
    }
    return fclose(page);
}
