/*
 * What a sanitizer's runtime asks for. This library stands in front of it.
 *
 * Reports go into the file that SANITIZER_REPORTS names, whoever prints one: threads of the
 * library's have descriptors of their own, where 2 is no standard error, and programs close theirs.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ASKED __attribute__((visibility("default")))
ASKED void __sanitizer_on_print(const char *text);
ASKED const char *__asan_default_options(void);
ASKED const char *__tsan_default_options(void);

/* Signals are the program's. */
#define SIGNALS "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0:"
/* The runtime looks for itself among LD_PRELOAD, where it is not. What the library keeps to the end
 * of the process it would take for lost. */
const char *__asan_default_options(void)
{
    return SIGNALS "verify_asan_link_order=0:detect_leaks=0";
}
/* Where threads are left at the end, the runtime would sleep a second before it goes on to the
 * library's own end: the GPU works on meanwhile. */
const char *__tsan_default_options(void) { return SIGNALS "exitcode=66:atexit_sleep_ms=0"; }

extern char **environ;

void __sanitizer_on_print(const char *text)
{
    static const char name[] = "SANITIZER_REPORTS=";
    const char *path = REPORTS; /* of a program without its environment */
    for (char **one = environ; one && *one; one++)
        if (!strncmp(*one, name, sizeof name - 1)) path = *one + sizeof name - 1;
    const int file =
        (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) return;
    if (syscall(SYS_write, file, text, strlen(text))) {}
    syscall(SYS_close, file);
}
