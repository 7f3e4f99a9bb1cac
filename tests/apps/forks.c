/*
 * forks HOW: the parent launches 50 times, has a child in one of many ways, launches 50 times more
 * and reports. What the child says stands in front.
 */
#include "tests/apps/app.h"

#include <spawn.h>

extern char **environ;
static CUfunction empty;
static CUstream stream;
static volatile int stop;
static long others;

static void work(int n)
{
    for (int i = 0; i < n; i++) LAUNCH(empty, stream);
}

static void open_up(void)
{
    app_start(0);
    empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
}

static void reap(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    printf("child exited %d status %d\n", WIFEXITED(status),
        WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

static void *records(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    for (; !stop; others++) {
        LAUNCH(empty, stream);
        if (!(others & 63))
            nanosleep(&(struct timespec){0, 50000}, NULL); /* the trace stays small */
    }
    return unused;
}

static void child_calls(void)
{
    SAY(cuStreamSynchronize, stream);
    SAY(cuInit, 0);
    SAY(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    fflush(stdout);
}

static void fork_once(const char *how)
{
    pid_t child = fork();
    if (!child) {
        NOTE("child", "%d", (int)getpid());
        if (!strcmp(how, "idle")) _exit(11);
        if (!strcmp(how, "exit")) exit(11);
        if (!strcmp(how, "calls")) child_calls();
        if (!strcmp(how, "calls-exit")) {
            child_calls();
            exit(11);
        }
        _exit(11);
    }
    reap(child);
}

static void fork_while_others_record(void)
{
    pthread_t thread[2];
    for (int i = 0; i < 1; i++) THREAD(&thread[i], records, NULL);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (!child) {
            (void)!CU(cuStreamQuery, stream);
            _exit(i % 2 ? 0 : 3);
        }
        int status;
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
            WEXITSTATUS(status) != (i % 2 ? 0 : 3))
            printf("child %d went wrong\n", i);
    }
    stop = 1;
    pthread_join(thread[0], NULL);
    NOTE("others", "%ld", others);
}

/* At any moment some are on their way out of the recorder. */
static void fork_while_objects_end(void)
{
    for (int i = 0; i < 4; i++) {
        for (int made = 0; made < 60; made++) {
            CUstream other;
            CUevent event;
            OK(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
            OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
            LAUNCH(empty, other);
            OK(cuEventDestroy_v2, event);
            OK(cuStreamDestroy_v2, other);
            app_sleep_ms(1);
        }
        pid_t child = fork();
        if (!child) {
            (void)!CU(cuStreamQuery, stream);
            _exit(0);
        }
        reap(child);
    }
}

static void vfork_once(int with_exec)
{
    pid_t child = vfork();
    if (!child) {
        if (with_exec) execl("/bin/sh", "sh", "-c", "exit 11", (char *)NULL);
        _exit(11);
    }
    reap(child);
}

static void spawn_self(char *self, char *how)
{
    char *argv[] = {self, how, NULL};
    pid_t child;
    fflush(stdout);
    if (posix_spawn(&child, self, NULL, NULL, argv, environ)) exit(1);
    NOTE("child", "%d", (int)child);
    reap(child);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "plain";
    setvbuf(stdout, NULL, _IONBF, 0);
    NOTE("parent", "%d", (int)getpid());
    if (!strcmp(how, "before")) { /* both use CUDA, neither before the fork */
        pid_t child = fork();
        open_up();
        work(50);
        OK(cuStreamDestroy_v2, stream);
        if (!child) {
            NOTE("child", "%d", (int)getpid());
            return 11;
        }
        reap(child);
        app_report();
        return 0;
    }
    open_up();
    work(50);
    if (!strcmp(how, "threads")) fork_while_others_record();
    else if (!strcmp(how, "ends")) fork_while_objects_end();
    else if (!strcmp(how, "vfork")) vfork_once(0);
    else if (!strcmp(how, "vfork-exec")) vfork_once(1);
    else if (!strcmp(how, "spawn")) spawn_self(argv[0], "plain");
    else if (!strcmp(how, "system")) printf("system %d\n", WEXITSTATUS(system("exit 11")));
    else if (strcmp(how, "plain")) fork_once(how);
    work(50);
    OK(cuStreamDestroy_v2, stream);
    if (strcmp(how, "threads"))
        app_report(); /* there the count differs from run to run: it is noted */
    return 0;
}
