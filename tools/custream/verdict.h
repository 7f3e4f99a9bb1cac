/* What the trailer of a trace says of it, as data: shim/base/verdict.h makes words of that. */
#ifndef CS_TOOLS_VERDICT_H
#define CS_TOOLS_VERDICT_H

#include <cjson/cJSON.h>

#include "shim/base/verdict.h"

/* A member of a JSON object, NULL: it has none, and its number, -1: it has none, or 0. */
const cJSON *member_of(const cJSON *object, const char *name);
double number_in(const cJSON *object, const char *name);
double number_or_0(const cJSON *object, const char *name);
const char *text_member(const cJSON *object, const char *name); /* NULL: it has none */

/* The texts are the trailer's, but for a list that goes into `room`. */
void verdict_read(struct cs_verdict *verdict, const cJSON *trailer, char *room, size_t size);

/* JSON that is made; without memory for it the program ends. */
cJSON *json_add(cJSON *object, const char *name, cJSON *item); /* returns it */
void json_add_number(cJSON *object, const char *name, double number);
cJSON *text_or_null(const char *text); /* null: NULL or "" */

struct json_member {
    const char *name;
    cJSON *value; /* NULL: there was no memory for it */
};

/* What cJSON has printed, to standard output; bytes that are no UTF-8 become U+FFFD. */
void json_text_put(const char *text);

/* To standard output, without a newline. Takes the values. */
void json_row_put(const struct json_member *members, size_t count);

#endif
