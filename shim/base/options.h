/*
 * The options: read once from the environment and from a policy file, then constant.
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
    enum cs_option_type {
        CS_TYPE_PATH, CS_TYPE_METRICS, CS_TYPE_FILE, CS_TYPE_CHOICE, CS_TYPE_SWITCH, CS_TYPE_SIZE, CS_TYPE_LIMIT, CS_TYPE_POLICY,
        CS_TYPE_PRIORITY, CS_TYPE_SHARING, CS_TYPE_JITTER, CS_TYPE_WINDOW, CS_TYPE_GPU /* base/settings.h */
    } type;
};
extern const struct cs_option_info cs_option_info[CS_OPTION_COUNT];

/* NULL if `value` is valid for the option, else a static text that says what is allowed. Any thread. */
const char *cs_option_check(enum cs_option id, const char *value);

/* Where the end of a trace's name begins that tells its format, NULL: it is no trace's name; and whether that is Perfetto's own format (base/perfetto.h). */
const char *cs_trace_extension(const char *path);
bool cs_trace_extension_is_packets(const char *extension);

/* A valid value in the one word that stands for it: "on" for the "1" of a SWITCH. */
const char *cs_option_word(enum cs_option id, const char *value);

/* Reads the environment. Called once, before any getter, by one thread. Unknown CUSTREAM_ variables get a line each. */
void cs_options_read(void);

/* From a policy file, after cs_options_read: the environment beats it. A value that cs_option_check finds good. */
void cs_option_give(enum cs_option id, const char *value);
bool cs_option_given(enum cs_option id); /* in the environment; where it was not valid there, the value is the default, as was said, for good */

/* Back to the default, for good: for options of the environment that contradict each other. */
void cs_option_drop(enum cs_option id);

/* The row whose id is most like a name in any case of letters, and by how many single-character edits they differ. */
enum cs_option cs_option_like(const char *name, size_t length, size_t *edits);
size_t cs_edits(const char *a, size_t n, const char *b, size_t m); /* between two short names */

/* The value in force. The text lives as long as the process (it is a copy: programs change their environment). */
const char *cs_option_text(enum cs_option id);
cs_u64 cs_option_size(enum cs_option id);                     /* SIZE and LIMIT: bytes */
cs_u32 cs_option_parts(enum cs_option id);                    /* LIMIT: how many files of that size are kept; 0: one, which ends there */
bool cs_option_is(enum cs_option id, const char *word);       /* CHOICE, SWITCH or the word off */

#endif
