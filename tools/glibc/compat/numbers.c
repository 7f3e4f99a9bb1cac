/*
 * With glibc 2.38 and later, a program that is compiled as GNU C calls functions that also read
 * binary numbers (0b1). Nothing here does.
 */
#include <stdarg.h>

#define OLD(type, name) \
    extern type old_##name(const char *, char **, int) __asm__(#name); \
    type __isoc23_##name(const char *text, char **end, int base); \
    type __isoc23_##name(const char *text, char **end, int base) \
    { return old_##name(text, end, base); }
OLD(long, strtol)
OLD(long long, strtoll)
OLD(unsigned long, strtoul)
OLD(unsigned long long, strtoull)
#undef OLD

extern int old_vsscanf(const char *, const char *, va_list) __asm__("__isoc99_vsscanf");
int __isoc23_sscanf(const char *text, const char *format, ...);
int __isoc23_sscanf(const char *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int found = old_vsscanf(text, format, arguments);
    va_end(arguments);
    return found;
}
