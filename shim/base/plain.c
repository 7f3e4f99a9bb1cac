#define _GNU_SOURCE
#include "shim/base/plain.h"

#include <string.h>

#include "shim/base/compiler.h"

CS_READ_MOSTLY locale_t cs_plain_locale;
__attribute__((constructor)) static void at_start(void) { cs_plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

const char *cs_plain_error(int error) { return cs_plain_locale ? strerror_l(error, cs_plain_locale) : "not readable"; }
