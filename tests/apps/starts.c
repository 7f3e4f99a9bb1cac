/*
 * starts HOW: ways in which processes begin, live and end that other programs here have not. 100
 * launches, or as many as the row of test_starts.py says.
 */
#include "tests/apps/app.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

static CUfunction empty;
static CUstream stream;
static sigjmp_buf back;
static volatile sig_atomic_t heard;

static void begin(void)
{
    app_start(0);
    empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
}

static void launch(int times)
{
    for (int i = 0; i < times; i++) LAUNCH(empty, stream);
}

static void notes(int number) { heard = number; }
static void leaves(int number) { _exit(20 + number); }
static void jumps(int number) { siglongjmp(back, number); }

static void fault(void)
{
    volatile char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *page = 1;
}

static void *once(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    launch(1);
    return unused;
}

static void short_threads(int count)
{
    for (int i = 0; i < count; i += 8) {
        pthread_t thread[8];
        for (int k = 0; k < 8; k++) THREAD(&thread[k], once, NULL);
        for (int k = 0; k < 8; k++) pthread_join(thread[k], NULL);
    }
}

/* As fork, and no handler of pthread_atfork runs. */
static void bare_clone(void)
{
    int status;
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (!child) syscall(SYS_exit_group, 3);
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
}

static int leaves_at_once(void *unused)
{
    (void)unused;
    _exit(3);
}

/* The first process of a namespace has a child that shares its memory, and is the first of another
 * one. */
static void first_of_another(void)
{
    static char stack[1 << 16];
    int status = 0;
    const pid_t child = clone(leaves_at_once, stack + sizeof stack,
        CLONE_VM | CLONE_VFORK | CLONE_NEWPID | SIGCHLD, NULL);
    waitpid(child, &status, 0);
    printf("child of %d: %d\n", (int)getpid(), WEXITSTATUS(status));
}

/* A driver of its own, in a namespace of the loader's. */
static void second_driver(void)
{
    void *other = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
    CUresult (*init)(unsigned) = other ? (__typeof__(init))dlsym(other, "cuInit") : NULL;
    printf("dlmopen %d\n", init ? (int)init(0) : -1);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "daemon") && daemon(1, 1)) return 1;
    if (!strcmp(how, "namespace")) second_driver();
    begin();
    launch(100);
    if (!strcmp(how, "noted"))
        signal(SIGTERM, notes), raise(SIGTERM), launch(10), printf("heard %d\n", (int)heard);
    if (!strcmp(how, "term")) raise(SIGTERM);
    if (!strcmp(how, "int")) raise(SIGINT);
    if (!strcmp(how, "int-left")) signal(SIGINT, leaves), raise(SIGINT);
    if (!strcmp(how, "segv-left")) signal(SIGSEGV, leaves), fault();
    if (!strcmp(how, "abort-left")) signal(SIGABRT, leaves), abort();
    if (!strcmp(how, "segv-back")) {
        signal(SIGSEGV, jumps);
        if (!sigsetjmp(back, 1)) fault();
        launch(10);
    }
    if (!strcmp(how, "threads")) short_threads(2000);
    if (!strcmp(how, "clone")) bare_clone(), launch(10);
    if (!strcmp(how, "first")) first_of_another(), launch(10);
    if (!strcmp(how, "setuid")) {
        printf("setuid %d\n", geteuid() ? 0 : setgid(65534) || setuid(65534));
        launch(10);
    }
    if (!strcmp(how, "reset")) {
        OK(cuStreamDestroy_v2, stream);
        OK(cuDevicePrimaryCtxReset_v2, 0);
    }
    puts("the end");
    return 5;
}
