/*
 * Memory and threads that run out for the shim alone, preloaded behind it: the N-th thing
 * (SCARCE_FAIL=N) that it, or one of the libraries that work for it, asks for is refused. What is
 * asked for is counted, and told at the end as a line "note asked N".
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const works_for_it[] = {"/libcustream_shim.so", "/libcjson.so",
    "/libz.so"}; /* not the stand-in for CUPTI, which ends the process then */
static long refused, process;
static _Atomic long asked;
static _Thread_local int within;

/* Whether who returns there works for the shim. The loader's own list is walked without its lock:
 * these libraries come and stay. */
static int counts(const void *caller)
{
    Dl_info who;
    if (!refused || within || process != getpid()) return 0;
    within = 1;
    int theirs = 0;
    if (dladdr(caller, &who) && who.dli_fname)
        for (size_t i = 0; i < sizeof works_for_it / sizeof *works_for_it; i++)
            theirs |= strstr(who.dli_fname, works_for_it[i]) != NULL;
    within = 0;
    return theirs;
}

/* Says who was refused: "note refused_at ADDRESS", in the library's file. */
static int refuses(const void *caller)
{
    Dl_info who;
    char line[256];
    if (!counts(caller) || ++asked != refused) return 0;
    within = 1;
    if (dladdr(caller, &who)) {
        ssize_t ignored = write(2, line,
            (size_t)snprintf(line, sizeof line, "note refused_at %s+%#lx\n",
                strrchr(who.dli_fname, '/') + 1,
                (unsigned long)((uintptr_t)caller - (uintptr_t)who.dli_fbase)));
        (void)ignored;
    }
    within = 0;
    return 1;
}

#define REFUSED_(answer) \
    if (refuses(__builtin_return_address(0))) return errno = ENOMEM, answer

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *at, size_t size);

void *malloc(size_t size)
{
    REFUSED_(NULL);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    REFUSED_(NULL);
    return __libc_calloc(count, size);
}

void *realloc(void *at, size_t size)
{
    REFUSED_(NULL);
    return __libc_realloc(at, size);
}

char *strdup(const char *text)
{
    REFUSED_(NULL);
    char *copy = __libc_malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

/* The library's own mmap comes here. */
long syscall(long number, ...)
{
    static __typeof__(&syscall) real;
    long given[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++) given[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_mmap) REFUSED_(-1);
    if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, "syscall");
    return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

static __typeof__(&pthread_create) real_create;
static __typeof__(&pthread_key_create) real_key;

int pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    if (refuses(__builtin_return_address(0))) return EAGAIN;
    return real_create(thread, attributes, run, argument);
}

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    if (refuses(__builtin_return_address(0))) return EAGAIN;
    return real_key(key, destructor);
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("SCARCE_FAIL");
    real_create = (__typeof__(real_create))dlsym(RTLD_NEXT, "pthread_create");
    real_key = (__typeof__(real_key))dlsym(RTLD_NEXT, "pthread_key_create");
    process = getpid();
    refused = text ? atol(text) : 0;
}

__attribute__((destructor)) static void end(void)
{
    char line[64];
    if (!refused || process != getpid()) return;
    ssize_t ignored =
        write(2, line, (size_t)snprintf(line, sizeof line, "note asked %ld\n", (long)asked));
    (void)ignored;
}
