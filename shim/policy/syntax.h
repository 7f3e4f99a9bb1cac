/*
 * Is a text JSON (RFC 8259), and where not? cJSON, which makes a tree of it afterwards, is vague about the place, and lenient: it takes control characters,
 * bytes that are not UTF-8, 01 and 1., and ends a string at an escaped NUL.
 */
#ifndef CS_POLICY_SYNTAX_H
#define CS_POLICY_SYNTAX_H

#include "shim/base/compiler.h"

struct cs_json_fault {
    const char *what;      /* static */
    unsigned line, column; /* from 1; columns are characters */
};

/* False, with *fault filled, at the first byte that can't be right. `text` ends with a NUL, which is none of its `length` bytes. No allocation, any thread. */
bool cs_json_check(const char *text, size_t length, struct cs_json_fault *fault);

#endif
