#include "shim/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static _Atomic int level_max = CS_LOG_WARN;

void cs_log_set_level(enum cs_log_level level) { cs_store(&level_max, (int)level); }

static void write_line(const char *head, const char *format, va_list args)
{
    int saved = errno;
    char line[1024];
    int n = snprintf(line, sizeof line, "custream: %s: ", head);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
    if (n > (int)sizeof line - 2) n = (int)sizeof line - 2;
    for (int i = 0; i < n; i++) /* values may hold anything: one line stays one line */
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) line[i] = '?';
    line[n++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, line, (size_t)n);
    (void)ignored;
    errno = saved;
}

void cs_log(enum cs_log_level level, const char *format, ...)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    va_list args;
    if ((int)level > cs_load(&level_max)) return;
    va_start(args, format);
    write_line(names[level], format, args);
    va_end(args);
}

void cs_log_report(const char *subject, const char *format, ...)
{
    va_list args;
    if (CS_LOG_WARN > cs_load(&level_max)) return;
    va_start(args, format);
    write_line(subject, format, args);
    va_end(args);
}
