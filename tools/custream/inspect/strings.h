/* A list of texts of its own, each once, in the order in which they came. */
#ifndef CS_INSPECT_STRINGS_H
#define CS_INSPECT_STRINGS_H

#include <stdbool.h>
#include <stddef.h>

struct strings {
    char **at;
    size_t count, capacity;
};

bool strings_have(const struct strings *strings, const char *text);
void strings_add(struct strings *strings, const char *text);
/* Numbers in them by their value: sm_90, sm_100. */
void strings_sort(struct strings *strings);
void strings_free(struct strings *strings);

/* strdup that ends the process where there is no memory; NULL of NULL. */
char *kept(const char *text);

#endif
