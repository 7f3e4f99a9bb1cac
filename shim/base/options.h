/*
 * The options: read once from the environment, then constant.
 *
 * options.def is the one table; the command's flags and the documentation come from it too. A wrong value is one line on stderr with the
 * variable, the value and what is allowed, and the option keeps its default.
 */
#ifndef CS_BASE_OPTIONS_H
#define CS_BASE_OPTIONS_H

#include "shim/base/compiler.h"

enum cs_option {
#define OPTION(id, type, preset, allowed, help) CS_OPTION_##id,
#include "shim/base/options.def"
#undef OPTION
    CS_OPTION_COUNT
};

struct cs_option_info {
    const char *id;      /* "TRACE_MAX" */
    const char *env;     /* "CUSTREAM_TRACE_MAX" */
    const char *preset;  /* the default, as one would type it */
    const char *allowed; /* what is allowed, in words */
    const char *help;
    enum cs_option_type { CS_OPTION_PATH, CS_OPTION_FILE, CS_OPTION_CHOICE, CS_OPTION_SIZE, CS_OPTION_LIMIT } type;
};
extern const struct cs_option_info cs_option_info[CS_OPTION_COUNT];

/* NULL if `value` is valid for the option, else a static text that says what is allowed. Any thread. */
const char *cs_option_check(enum cs_option id, const char *value);

/* Reads the environment. Called once, before any getter, by one thread. Unknown CUSTREAM_ variables get a line each. */
void cs_options_read(void);

/* The value in force. The text lives as long as the process (it is a copy: programs change their environment). */
const char *cs_option_text(enum cs_option id);
cs_u64 cs_option_size(enum cs_option id);                     /* SIZE and LIMIT: bytes */
cs_u32 cs_option_parts(enum cs_option id);                    /* LIMIT: how many files of that size are kept; 0: one, which ends there */
bool cs_option_is(enum cs_option id, const char *word);       /* CHOICE or the word off */

#endif
