#define _GNU_SOURCE
#include "shim/base/glob.h"

#include <fnmatch.h>
#include <locale.h>

#include "shim/base/compiler.h"

/* In a locale of several bytes a character fnmatch has the C library convert both texts, and load what that takes: a module for GBK, say, with the
 * loader's lock. The C locale converts nothing. It is made before the process has threads, and setting a thread's locale takes no lock. */
CS_READ_MOSTLY static locale_t plain;
__attribute__((constructor)) static void at_start(void) { plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

bool cs_glob(const char *pattern, const char *text)
{
    locale_t before = plain ? uselocale(plain) : (locale_t)0;
    bool matches = fnmatch(pattern, text, 0) == 0;
    if (before) uselocale(before);
    return matches;
}
