/* Globs of fnmatch(3), of bytes: the same in each locale. Any thread; takes no lock. */
#ifndef CS_BASE_GLOB_H
#define CS_BASE_GLOB_H

#include <stdbool.h>

bool cs_glob(const char *pattern, const char *text);

#endif
