/*
 * Is a line JSON text as the strictest reader of our traces wants it? cJSON is lenient where Perfetto is not: it takes 01, 1., raw control
 * characters, bytes that are not UTF-8 and \uXYZW. This looks at characters and tokens; structure is left to cJSON.
 */
#ifndef CS_TOOLS_TEXT_H
#define CS_TOOLS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text_fault {
    int rule;         /* of the trace format: 1 numbers and null, 9 characters */
    size_t at;        /* byte of the line, from 0 */
    const char *what; /* static */
};

/* False, with *fault filled, at the first fault. A string has to end on the line that it began on. */
bool text_check(const char *text, size_t length, struct text_fault *fault);

#endif
