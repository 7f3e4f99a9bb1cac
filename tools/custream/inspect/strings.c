#define _GNU_SOURCE /* strverscmp */
#include "tools/custream/inspect/strings.h"

#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"

char *kept(const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy) out_of_memory();
    return copy;
}

bool strings_have(const struct strings *strings, const char *text)
{
    for (size_t i = 0; i < strings->count; i++)
        if (!strcmp(strings->at[i], text)) return true;
    return false;
}

void strings_add(struct strings *strings, const char *text)
{
    if (strings_have(strings, text)) return;
    strings->at = array_room(strings->at, strings->count, &strings->capacity, sizeof *strings->at);
    strings->at[strings->count++] = kept(text);
}

static int by_text(const void *a, const void *b) { return strverscmp(*(char *const *)a, *(char *const *)b); }

void strings_sort(struct strings *strings)
{
    if (strings->count) qsort(strings->at, strings->count, sizeof *strings->at, by_text);
}

void strings_free(struct strings *strings)
{
    for (size_t i = 0; i < strings->count; i++) free(strings->at[i]);
    free(strings->at);
    *strings = (struct strings){0};
}
