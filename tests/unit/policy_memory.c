/* Reading a policy file where there is no memory for one of its parts, whichever: one line says so,
 * and what was there is given back. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int allowed = -1; /* so many may still be made; -1: all */
static bool refuses(void) { return allowed >= 0 && !allowed-- && (errno = ENOMEM); }
static void *try_malloc(size_t n) { return refuses() ? NULL : malloc(n); }
static void *try_calloc(size_t n, size_t size) { return refuses() ? NULL : calloc(n, size); }
static char *try_strdup(const char *text) { return refuses() ? NULL : strdup(text); }
#undef strdup
#define malloc try_malloc
#define calloc try_calloc
#define strdup try_strdup
#include "shim/policy/file.c"
#include "shim/policy/rules_read.c"
#undef malloc
#undef calloc
#undef strdup

#include "tests/unit/check.h"

static const char text[] = "{\"streams\": \"sync\", \"rules\": [{\"match\": {\"library\": \"l\"}, "
                           "\"set\": {\"name\": \"n\"}}], \"jitter\": \"seed=1\"}";

TEST(each_part_in_turn)
{
    static const char *const places[] = {
        "streams: ", "rules: ", "rules[0].match.library: ", "rules[0].set.name: ", "jitter: "};
    struct cs_policy_file file;
    char error[CS_POLICY_LINE];
    for (int n = 0; n <= (int)CS_COUNT(places); n++) {
        allowed = n;
        const bool whole = n == CS_COUNT(places), ok = cs_policy_file_parse(&file, "p", text,
                                                      strlen(text), false, error, sizeof error);
        CHECK_IS(ok, whole);
        CHECK_IS(allowed, whole ? 0 : -1);
        if (whole) continue;
        char expected[64];
        snprintf(expected, sizeof expected, "p: %sno memory", places[n]);
        CHECK_TEXT(error, expected);
        CHECK(!file.rules && !file.rule_count);
        for (int i = 0; i < CS_OPTION_COUNT; i++) CHECK(!file.option[i]);
    }
    CHECK(file.rule_count == 1 && file.option[CS_OPTION_STREAMS]);
    cs_policy_file_finish(&file);
}

TEST(the_file_itself)
{
    struct cs_policy_file file;
    char error[CS_POLICY_LINE];
    allowed = 0;
    CHECK(!cs_policy_file_read(
        &file, "/proc/self/status", error, sizeof error)); /* a file of no known length */
    CHECK_IS(allowed, -1);
    CHECK_TEXT(error, "/proc/self/status: Cannot allocate memory");
}
