/*
 * policy-doc TEMPLATE: docs/policy.md on stdout. Lines of the template that begin with '@' stand for what the tables of options and keys hold, or for the line
 * that reading a policy gives; all others are taken as they are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/policy/keys.h"
#include "shim/policy/settle.h"

/* "a|b" as `a`, `b`: a bar would end the cell. */
static void put_words(const char *words)
{
    for (; *words; words += strcspn(words, "|"), words += *words == '|') printf("`%.*s`%s", (int)strcspn(words, "|"), words, strchr(words, '|') ? ", " : "");
}

static void put_options(bool live)
{
    char key[CS_KEY_ROOM];
    puts(live ? "| key | what it decides | allowed | default | example |\n| --- | --- | --- | --- | --- |"
              : "| key | what it decides | allowed |\n| --- | --- | --- |");
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        const struct cs_option_info *info = &cs_option_info[i];
        if (i == CS_OPTION_POLICY || !cs_live_example[i] == live) continue;
        printf("| `%s` | %s | ", cs_option_key((enum cs_option)i, key), info->help);
        if (info->type == CS_TYPE_CHOICE || info->type == CS_TYPE_SWITCH) put_words(info->allowed);
        else for (const char *p = info->allowed; *p; p++) printf(*p == '|' ? "\\|" : "%c", *p);
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
        else if (key->type == CS_KEY_NUMBER && key->most == INT32_MAX) printf("a whole number%s", key->least < 0 ? "" : key->least ? " from 1" : " from 0");
        else fputs(cs_key_allowed(key, allowed), stdout);
        printf(" | `\"%s\": %s` |\n", key->name, key->example);
    }
}

static const char *nothing(enum cs_option id) { return id == CS_OPTION_COUNT ? "" : NULL; }

/* What `custream run --policy policy.json` says of a file that holds this; false if there is nothing wrong with it. */
static bool put_error(const char *json)
{
    char error[CS_POLICY_LINE];
    struct cs_policy_file file;
    struct cs_settled settled;
    struct cs_contradiction found;
    bool wrong = !cs_policy_file_parse(&file, "policy.json", json, strlen(json), false, error, sizeof error);
    if (!wrong) {
        cs_settle(&settled, &file, nothing);
        wrong = cs_settled_contradicts(&settled, &found, error, sizeof error);
        cs_policy_file_finish(&file);
    }
    if (wrong) printf("custream run: %s\n", error);
    return wrong;
}

static bool put_directive(const char *line)
{
    if (!strcmp(line, "@policy options")) return put_options(true), true;
    if (!strcmp(line, "@other options")) return put_options(false), true;
    if (!strcmp(line, "@match")) return put_keys(cs_match_keys), true;
    if (!strcmp(line, "@set")) return put_keys(cs_set_keys), true;
    return !strncmp(line, "@error ", 7) && put_error(line + 7);
}

int main(int argc, char **argv)
{
    char line[1024];
    FILE *template = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!template) return fprintf(stderr, "usage: policy-doc TEMPLATE\n"), 2;
    while (fgets(line, sizeof line, template)) {
        line[strcspn(line, "\n")] = 0;
        if (*line != '@') puts(line);
        else if (!put_directive(line)) return fprintf(stderr, "policy-doc: %s: no such directive, or nothing is wrong\n", line), 1;
    }
    fclose(template);
    return 0;
}
