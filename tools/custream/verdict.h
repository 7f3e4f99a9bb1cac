/* Reads the trailer of a trace into a verdict; shim/base/verdict.h puts a verdict into words. */
#ifndef CS_TOOLS_VERDICT_H
#define CS_TOOLS_VERDICT_H

#include <cjson/cJSON.h>

#include "shim/base/verdict.h"

/* Return a member of a JSON object: the member itself, else NULL; its number, else -1 (number_in)
 * or 0 (number_or_0); its text, else NULL. */
const cJSON *member_of(const cJSON *object, const char *name);
double number_in(const cJSON *object, const char *name);
double number_or_0(const cJSON *object, const char *name);
const char *text_member(const cJSON *object, const char *name);

/* Fills a verdict. Its texts point into the trailer; a list of names is made in `room`. */
void verdict_read(struct cs_verdict *verdict, const cJSON *trailer, char *room, size_t size);

/* Make JSON; without memory they call out_of_memory(). */
cJSON *json_add(cJSON *object, const char *name, cJSON *item); /* returns `item` */
void json_add_number(cJSON *object, const char *name, double number);
cJSON *text_or_null(const char *text); /* JSON null for NULL or ""; NULL: no memory */

struct json_member {
    const char *name;
    cJSON *value; /* NULL: there was no memory for it */
};

/* Prints cJSON's text to standard output; bytes that are not UTF-8 become U+FFFD. */
void json_text_put(const char *text);

/* Prints an object of these members to standard output, without a newline. Frees the values. */
void json_row_put(const struct json_member *members, size_t count);

#endif
