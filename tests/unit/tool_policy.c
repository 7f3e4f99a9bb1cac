/*
 * tool_policy: policy files from stdin, each as its length in eight hexadecimal digits and its
 * bytes; for each, on stdout, "ok" or the error, and a NUL.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/options.h"
#include "shim/policy/settle.h"

static const char *nothing(enum cs_option id) { return id == CS_OPTION_COUNT ? "" : NULL; }

static const char *judge(const char *text, size_t length, char *error, size_t room)
{
    struct cs_policy_file file;
    struct cs_settled settled;
    struct cs_contradiction found;
    strcpy(error, "nothing was said");
    if (!cs_policy_file_parse(&file, "policy.json", text, length, false, error, room)) return error;
    cs_settle(&settled, &file, nothing);
    bool ok = !cs_settled_contradicts(&settled, &found, error, room);
    cs_policy_file_finish(&file);
    return ok ? "ok" : error;
}

int main(void)
{
    char head[9] = "", error[CS_POLICY_LINE];
    cs_options_read();
    while (fread(head, 1, 8, stdin) == 8) {
        size_t length = strtoul(head, NULL, 16);
        char *text = malloc(length + 1); /* of its own, so that a byte too far is seen */
        if (!text || fread(text, 1, length, stdin) != length) return 2;
        text[length] = 0;
        fputs(judge(text, length, error, sizeof error), stdout);
        putchar(0);
        fflush(stdout);
        free(text);
    }
    return 0;
}
