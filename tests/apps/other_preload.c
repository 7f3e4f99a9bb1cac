/*
 * A library that somebody else preloads, behind the shim. It says when it sees execve and _exit,
 * which variables threads of the shim ask for ("note asked_environment NAME..."), and counts memory
 * that is populated ahead ("note populated KIB"; by threads that are not the shim's own, and the
 * most of these at once: "note awaited KIB", "note awaited_at_once KIB"). With OTHER_SLOW_MAPS each
 * mapping without reserve takes 20 ms, so that the shim's start can be met half-way. With
 * OTHER_HOLDS_EXIT _exit makes a file of that name and waits until it is gone, so that the shim can
 * be met at its end.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { POPULATE_WRITE = 23 };
static long populated, awaited, at_once;
static int slow_maps;

static void say(const char *text, size_t n)
{
    ssize_t ignored = write(STDERR_FILENO, text, n);
    (void)ignored;
}

int execve(const char *path, char *const argv[], char *const envp[])
{
    static const char text[] = "other preload: execve\n";
    say(text, sizeof text - 1);
    return ((__typeof__(&execve))dlsym(RTLD_NEXT, "execve"))(path, argv, envp);
}

void _exit(int status)
{
    static const char text[] = "other preload: _exit\n";
    const char *held = getenv("OTHER_HOLDS_EXIT");
    say(text, sizeof text - 1);
    if (held) close(open(held, O_WRONLY | O_CREAT, 0600));
    while (held && !access(held, F_OK)) nanosleep(&(struct timespec){0, 1000000}, NULL);
    ((__typeof__(&_exit))dlsym(RTLD_NEXT, "_exit"))(status);
    __builtin_unreachable();
}

void (*other_made)(long number, const void *caller); /* a program may set it */

static void count(size_t bytes)
{
    char thread[16] = "";
    __atomic_fetch_add(&populated, (long)bytes, __ATOMIC_RELAXED);
    prctl(PR_GET_NAME, thread);
    if (!strncmp(thread, "custream", 8)) return;
    long most = __atomic_load_n(&at_once, __ATOMIC_RELAXED);
    __atomic_fetch_add(&awaited, (long)bytes, __ATOMIC_RELAXED);
    while ((long)bytes > most && !__atomic_compare_exchange_n(&at_once, &most, (long)bytes, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

/* The shim's own madvise and mmap come here. */
long syscall(long number, ...)
{
    static __typeof__(&syscall) real;
    long given[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++) given[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_madvise && given[2] == POPULATE_WRITE) count((size_t)given[1]);
    if (number == SYS_mmap && given[3] & MAP_NORESERVE && slow_maps)
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, "syscall");
    const long answer = real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
    if (other_made) other_made(number, __builtin_return_address(0));
    return answer;
}

/* What the shim's own threads ask for. The simulated CUPTI asks there too, by names of its own. */
static char asked[1024];

static void note_asked(const char *name)
{
    char thread[16] = "";
    prctl(PR_GET_NAME, thread);
    if (strncmp(thread, "custream", 8) || !strncmp(name, "CUSTREAM_FAKE", 13) ||
        strlen(asked) + strlen(name) + 2 > sizeof asked)
        return;
    strcat(strcat(asked, " "), name);
}

char *getenv(const char *name)
{
    const size_t n = strlen(name);
    note_asked(name);
    for (char **e = environ; e && *e; e++)
        if (!strncmp(*e, name, n) && (*e)[n] == '=') return *e + n + 1;
    return NULL;
}

__attribute__((constructor)) static void at_start(void)
{
    slow_maps = getenv("OTHER_SLOW_MAPS") != NULL;
}

__attribute__((destructor)) static void at_end(void)
{
    fprintf(stderr, "note asked_environment%s\n", *asked ? asked : " nothing");
    if (populated)
        fprintf(stderr, "note populated %ld\nnote awaited %ld\nnote awaited_at_once %ld\n",
            populated >> 10, awaited >> 10, at_once >> 10);
}
