#define _GNU_SOURCE /* asprintf */
#include "tools/custream/open/link.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"

/* Perfetto guarantees this command to links ("Commands Automation Reference" in its documents). */
static const char PIN[] = "dev.perfetto.PinTracksByRegex";

static const char UNRESERVED[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

/* %XX for each byte that is neither unreserved nor in `kept`. */
static char *encode(const char *text, const char *kept)
{
    char *to = malloc(3 * strlen(text) + 1), *at = to;
    if (!to) out_of_memory();
    for (; *text; text++) {
        if (strchr(UNRESERVED, *text) || strchr(kept, *text)) *at++ = *text;
        else at += sprintf(at, "%%%02X", (unsigned char)*text);
    }
    *at = 0;
    return to;
}

char *link_part(const char *name) { return encode(name, ""); }

/* A regular expression for the track of the lane of this name. Perfetto puts the lane's number behind it. It shows a backslash twice where a name has no quotes. */
static char *pattern_of(const char *name)
{
    char *to = malloc(8 * strlen(name) + sizeof "^( \\d+)?$"), *at = to;
    if (!to) out_of_memory();
    *at++ = '^';
    for (; *name; name++) {
        if (*name == '\\') at = stpcpy(at, "\\\\{1,2}");
        else {
            if (strchr("^$.*+?()[]{}|/", *name)) *at++ = '\\';
            *at++ = *name;
        }
    }
    strcpy(at, "( \\d+)?$");
    return to;
}

static cJSON *pin_command(const char *name)
{
    char *pattern = pattern_of(name);
    const char *const arguments[] = {pattern};
    cJSON *command = cJSON_CreateObject(), *list = cJSON_CreateStringArray(arguments, 1);
    if (!list || !cJSON_AddStringToObject(command, "id", PIN) || !cJSON_AddItemToObject(command, "args", list)) out_of_memory();
    free(pattern);
    return command;
}

static char *pin_commands(const char *const *names, size_t count)
{
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < count; i++)
        if (!cJSON_AddItemToArray(list, pin_command(names[i]))) out_of_memory();
    char *plain = cJSON_PrintUnformatted(list);
    if (!plain) out_of_memory();
    char *encoded = encode(plain, "");
    cJSON_free(plain);
    cJSON_Delete(list);
    return encoded;
}

char *link_make(const char *ui, const char *trace, const char *const *pinned, size_t count)
{
    char *url = encode(trace, ":/"), *commands = count ? pin_commands(pinned, count) : NULL, *link;
    if (asprintf(&link, "%s#!/?url=%s%s%s", ui, url, commands ? "&startupCommands=" : "", commands ? commands : "") < 0) out_of_memory();
    free(url);
    free(commands);
    return link;
}
