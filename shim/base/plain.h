/* Texts of the C library in the C locale: nothing is translated or converted, so nothing is loaded for it. Any thread; no lock of the loader's. */
#ifndef CS_BASE_PLAIN_H
#define CS_BASE_PLAIN_H

#include <locale.h>

extern locale_t cs_plain_locale; /* made before the process has threads; 0 where there is no memory for it */

/* strerror in English. */
const char *cs_plain_error(int error);

#endif
