/*
 * A thread that runs while another holds the loader's lock: a library's constructor waits for it.
 * Alone, that is a correct program: the thread asks nothing of the loader. Programs that do so are
 * linked to what they call, with all symbols bound at start.
 */
#ifndef APPS_HELD_H
#define APPS_HELD_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <dlfcn.h>

static const char *volatile held_at =
    "its first call"; /* what the thread is doing, for who waits in vain */
static void (*held_work)(void);

static void *held_thread(void *unused)
{
    held_work();
    return unused;
}

/* Called by the constructor of libheld.so (held_library.c), which has the address from the
 * environment. */
static void held_in_constructor(void)
{
    enum { PATIENCE_S = 20 };
    pthread_t thread;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    if (!pthread_create(&thread, NULL, held_thread, NULL) &&
        !pthread_timedjoin_np(thread, NULL, &until))
        return;
    fprintf(stderr, "stuck in %s\n", held_at);
    syscall(SYS_exit_group, 9);
}

/* The program's exit status. */
static int held_run(const char *library, void (*work)(void))
{
    char address[32];
    held_work = work;
    snprintf(address, sizeof address, "%ju", (uintmax_t)(uintptr_t)held_in_constructor);
    setenv("HELD_IN_CONSTRUCTOR", address, 1);
    if (!dlopen(library, RTLD_NOW)) return fprintf(stderr, "%s\n", dlerror()), 1;
    printf("held done\n");
    return 0;
}

#endif
