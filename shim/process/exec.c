/*
 * The exec family: a process that replaces itself runs no destructor, so what was recorded is brought into the file before. Then the next library's
 * function does the work, and recording goes on where that fails. A vfork child shares our memory but is not the process that records.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/realdl.h"
#include "shim/gpu/backend.h"
#include "shim/process/inside.h"
#include "shim/trace/closing.h"
#include "shim/trace/writer.h"

extern char **environ;

/* Whether there was something to bring. */
static bool before_exec(void)
{
    CS_KEEP_ERRNO;
    CS_KEEP_UNCANCELLED;
    if (!(cs_load_acq(&cs_mode) & CS_MODE_WATCH) || cs_writer_was_killed() || !cs_end_may()) return false;
    cs_gpu_flush(2000);
    cs_closing_exec();
    cs_writer_bring();
    cs_log_relay();
    return true;
}

/* The process is still what it was. */
static int failed(bool brought, int result)
{
    CS_KEEP_ERRNO;
    CS_KEEP_UNCANCELLED;
    if (brought && !cs_writer_was_killed()) cs_closing_stays(), cs_writer_flush(1000);
    return result;
}

/* The function is found anew each time: exec is rare, and a program that never does it need not pay for it. */
#define FORWARD(name, ...)                                                                                                                           \
    do {                                                                                                                                             \
        const bool brought = before_exec();                                                                                                          \
        __typeof__(&name) real = (__typeof__(&name))cs_symbol_behind(#name);                                                                         \
        if (!real) errno = ENOSYS;                                                                                                                   \
        return failed(brought, real ? real(__VA_ARGS__) : -1);                                                                                       \
    } while (0)

CS_EXPORT int execve(const char *path, char *const argv[], char *const envp[]) { FORWARD(execve, path, argv, envp); }
CS_EXPORT int execv(const char *path, char *const argv[]) { FORWARD(execv, path, argv); }
CS_EXPORT int execvp(const char *file, char *const argv[]) { FORWARD(execvp, file, argv); }
CS_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[]) { FORWARD(execvpe, file, argv, envp); }
CS_EXPORT int fexecve(int fd, char *const argv[], char *const envp[]) { FORWARD(fexecve, fd, argv, envp); }

/* C libraries before 2.34 have none. */
CS_EXPORT int execveat(int folder, const char *path, char *const argv[], char *const envp[], int flags)
{
    const bool brought = before_exec();
    int (*real)(int, const char *, char *const[], char *const[], int) = (__typeof__(real))cs_symbol_behind("execveat");
    return failed(brought, real ? real(folder, path, argv, envp, flags) : (int)syscall(SYS_execveat, folder, path, argv, envp, flags));
}

/* The forms with a list: gathered on the stack into an array, as exec(3) has it. `last` is NULL, and for execle the environment stands behind it. */
#define GATHER(argv, envp, first, has_envp)                                                                                                          \
    va_list list;                                                                                                                                    \
    size_t count = 1;                                                                                                                                \
    va_start(list, first);                                                                                                                           \
    while (va_arg(list, char *)) count++;                                                                                                            \
    va_end(list);                                                                                                                                    \
    char *argv[count + 1];                                                                                                                           \
    argv[0] = (char *)first;                                                                                                                         \
    va_start(list, first);                                                                                                                           \
    for (size_t i = 1; i <= count; i++) argv[i] = va_arg(list, char *);                                                                              \
    char **envp = has_envp ? va_arg(list, char **) : environ;                                                                                        \
    va_end(list);

#define LISTED(name, real, has_envp)                                                                                                                 \
    CS_EXPORT int name(const char *path, const char *first, ...)                                                                                     \
    {                                                                                                                                                \
        GATHER(argv, envp, first, has_envp)                                                                                                          \
        return real(path, argv, envp);                                                                                                               \
    }
LISTED(execl, execve, false)
LISTED(execlp, execvpe, false)
LISTED(execle, execve, true)
