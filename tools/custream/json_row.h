/* One JSON object a line, as the forms --json of commands that list something print it. */
#ifndef CS_TOOLS_JSON_ROW_H
#define CS_TOOLS_JSON_ROW_H

#include <stddef.h>

#include <cjson/cJSON.h>

struct json_member {
    const char *name;
    cJSON *value; /* NULL: there was no memory for it */
};

/* What cJSON has printed, to standard output; bytes that are no UTF-8 become U+FFFD. */
void json_text_put(const char *text);

/* To standard output, without a newline. Takes the values. */
void json_row_put(const struct json_member *members, size_t count);

#endif
