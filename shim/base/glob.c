#define _GNU_SOURCE
#include "shim/base/glob.h"

#include <fnmatch.h>

#include "shim/base/plain.h"

/* In a locale of several bytes a character fnmatch has the C library convert both texts, and load what that takes: a module for GBK, say, with the
 * loader's lock. The C locale converts nothing, and setting a thread's locale takes no lock. */
bool cs_glob(const char *pattern, const char *text)
{
    locale_t before = cs_plain_locale ? uselocale(cs_plain_locale) : (locale_t)0;
    bool matches = fnmatch(pattern, text, 0) == 0;
    if (before) uselocale(before);
    return matches;
}
