/*
 * System calls that fail for the shim alone, preloaded behind it. The library makes its own calls
 * by syscall() (shim/base/direct.c) or by a function of the C library; both are here.
 * FAULTS=NAME:ERRNO:N has its N-th call of that name fail once; NAME:-1:N kills the process when
 * that system call has returned. FAULTS=count only counts. The end tells how often each was called,
 * as lines "note made NAME N".
 *
 * tests/faults.py compares the rows with what the shim imports.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* FUNCTION(result, name, parameters, arguments, how it fails): with a failure, the errno is in
 * `error`. */
#define BY_ERRNO(answer) (errno = error, (answer))
#define FUNCTIONS(FUNCTION) \
    FUNCTION(char *, getcwd, (char *to, size_t n), (to, n), BY_ERRNO(NULL)) \
    FUNCTION(int, gethostname, (char *to, size_t n), (to, n), BY_ERRNO(-1)) \
    FUNCTION(DIR *, opendir, (const char *path), (path), BY_ERRNO(NULL)) \
    FUNCTION(struct dirent *, readdir, (DIR *all), (all), BY_ERRNO(NULL)) \
    FUNCTION(char *, realpath, (const char *path, char *to), (path, to), BY_ERRNO(NULL)) \
    FUNCTION(int, sigaction, (int number, const struct sigaction *to, struct sigaction *before), \
    (number, to, before), BY_ERRNO(-1)) \
    FUNCTION(int, pthread_create, (pthread_t *thread, const pthread_attr_t *how, void \
    *(*run)(void *), void *given), (thread, how, run, given), error) \
    FUNCTION(int, pthread_key_create, (pthread_key_t *key, void (*ends)(void *)), (key, ends), \
    error) \
    FUNCTION(void *, malloc, (size_t n), (n), BY_ERRNO(NULL)) \
    FUNCTION(void *, calloc, (size_t n, size_t m), (n, m), BY_ERRNO(NULL))

/* Of syscall(). One without a row is counted as "syscall". */
#define NUMBERS(NUMBER) \
    NUMBER(openat) NUMBER(newfstatat) NUMBER(faccessat) NUMBER(readlinkat) NUMBER(unlinkat) \
    NUMBER(linkat) NUMBER(renameat2) NUMBER(close) \
    NUMBER(read) NUMBER(write) NUMBER(pread64) NUMBER(pwritev) NUMBER(ftruncate) NUMBER(fchmod) \
    NUMBER(flock) NUMBER(fstatfs) NUMBER(fcntl) \
    NUMBER(ioctl) NUMBER(ppoll) NUMBER(socket) NUMBER(bind) NUMBER(connect) NUMBER(listen) \
    NUMBER(accept4) NUMBER(getsockopt) NUMBER(setsockopt) \
    NUMBER(recvfrom) NUMBER(sendto) NUMBER(sendmsg) NUMBER(memfd_create) NUMBER(gettid) \
    NUMBER(clock_nanosleep) NUMBER(close_range) NUMBER(futex) \
    NUMBER(madvise) NUMBER(mprotect) NUMBER(munlock) NUMBER(munmap) NUMBER(mmap) NUMBER(mremap) \
    NUMBER(nanosleep) NUMBER(process_vm_readv) NUMBER(prctl) \
    NUMBER(prlimit64) NUMBER(sched_getscheduler) NUMBER(sched_setscheduler) NUMBER(sched_yield) \
    NUMBER(shutdown) NUMBER(rt_sigpending) NUMBER(rt_sigprocmask) \
    NUMBER(rt_sigtimedwait) NUMBER(unshare) NUMBER(getpid) NUMBER(getuid) NUMBER(geteuid) \
    NUMBER(getegid) \
    NUMBER(utimensat) NUMBER(exit_group) NUMBER(kill) NUMBER(execveat)

enum which {
#define NUMBER(name) OF_##name,
#define FUNCTION(result, name, ...) OF_##name,
    NUMBERS(NUMBER) FUNCTIONS(FUNCTION)
#undef NUMBER
#undef FUNCTION
        OF_syscall,
    KINDS
};
static const char *const names[] = {
#define NUMBER(name) [OF_##name] = #name,
#define FUNCTION(result, name, ...) [OF_##name] = #name,
    NUMBERS(NUMBER) FUNCTIONS(FUNCTION)
#undef NUMBER
#undef FUNCTION
        [OF_syscall] = "syscall"};

static _Atomic long made[KINDS];
static pid_t process; /* 0: nothing is counted */
static int failing = -1, with;
static long nth;
static uintptr_t shim_from, shim_to;

/* The errno with which this call fails, or 0. */
static int fails(enum which which, const void *caller)
{
    const uintptr_t at = (uintptr_t)caller;
    if (!process || at < shim_from || at >= shim_to || process != (pid_t)syscall(SYS_getpid))
        return 0;
    return ++made[which] == nth && (int)which == failing ? with : 0;
}

#define NUMBER(name) case SYS_##name: return OF_##name;
static enum which which_of(long number)
{
    switch (number) {
        NUMBERS(NUMBER)
    default: return OF_syscall;
    }
}

static void end(void);

static __typeof__(&syscall) real_syscall;
static void *find(const char *name) { return dlsym(RTLD_NEXT, name); }

long syscall(long number, ...)
{
    va_list rest;
    long a[6];
    if (!real_syscall) real_syscall = (__typeof__(real_syscall))find("syscall");
    va_start(rest, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(rest, long);
    va_end(rest);
    const int error =
        number == SYS_getpid ? 0 : fails(which_of(number), __builtin_return_address(0));
    if (error > 0) return errno = error, -1;
    if (number == SYS_kill && process) end(); /* no destructor comes after that */
    const long answer = real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (error < 0) kill(process, SIGKILL);
    return answer;
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
static __typeof__(&malloc) real_malloc = __libc_malloc; /* dlsym may need them */
static __typeof__(&calloc) real_calloc = __libc_calloc;

#define FUNCTION(result, name, parameters, arguments, failure) \
    result name parameters \
    { \
        static __typeof__(&name) real; \
        if (OF_##name == OF_malloc) real = (__typeof__(real))(void *)real_malloc; \
        if (OF_##name == OF_calloc) real = (__typeof__(real))(void *)real_calloc; \
        const int error = fails(OF_##name, __builtin_return_address(0)); \
        if (error) return failure; \
        if (!real) real = (__typeof__(real))find(#name); \
        return real arguments; \
    }
FUNCTIONS(FUNCTION)

static int find_shim(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (!strstr(info->dlpi_name, "/libcustream_shim.so")) return 0;
    shim_from = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        if (from < shim_from) shim_from = from;
        if (from + info->dlpi_phdr[i].p_memsz > shim_to)
            shim_to = from + info->dlpi_phdr[i].p_memsz;
    }
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("FAULTS");
    char name[64] = "";
    if (!text) return;
    if (sscanf(text, "%63[^:]:%d:%ld", name, &with, &nth) == 3)
        for (int i = 0; i < KINDS; i++)
            if (!strcmp(names[i], name)) failing = i;
    if (failing < 0 && strcmp(text, "count"))
        fprintf(stderr, "FAULTS=%s names no call\n", text), abort();
    if (with < 0 && failing > OF_execveat)
        fprintf(
            stderr, "FAULTS=%s: only behind a call of syscall() can the process be killed\n", text),
            abort();
    dl_iterate_phdr(find_shim, NULL);
    process = (pid_t)syscall(SYS_getpid);
}

__attribute__((destructor)) static void end(void)
{
    char line[96];
    struct rlimit most;
    if (!process || process != (pid_t)syscall(SYS_getpid)) return;
    if (!getrlimit(RLIMIT_FSIZE, &most))
        most.rlim_cur = most.rlim_max, setrlimit(RLIMIT_FSIZE, &most); /* the lines have room */
    for (int i = 0; i < KINDS; i++) {
        if (!made[i]) continue;
        ssize_t ignored = write(2, line,
            (size_t)snprintf(line, sizeof line, "note made %s %ld\n", names[i], (long)made[i]));
        (void)ignored;
    }
}
