/*
 * ending HOW: 100 launches, then the process ends in one of many ways. abort, kill and segv wait
 * until the library has flushed these, and launch 10 times more, which nobody promises to keep.
 */
#include "tests/apps/app.h"

#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static CUfunction empty;
static CUstream stream;
static volatile int stop;
static _Atomic int at_work;

static void *leaves(void *how)
{
    OK(cuCtxSetCurrent, app_context);
    LAUNCH(empty, stream);
    if (!strcmp(how, "thread-exit")) exit(6);
    _exit(6);
}

static void *runs_on(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    for (int round = 0; !stop; round++, app_sleep_ms(1)) {
        for (int i = 0; i < 50; i++)
            if (CU(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL) != CUDA_SUCCESS)
                return unused;
        at_work += !round;
    }
    return unused;
}

static void *fails_to_exec(void *unused)
{
    for (int i = 0;; i++) {
        execl("/nowhere/at all", "nothing", NULL);
        at_work += !i;
    }
    return unused;
}

static void at_the_end(void)
{
    LAUNCH(empty, stream);
} /* an exit handler of the program's may call CUDA */

static int launches_last;
__attribute__((destructor)) static void behind_all_handlers(void)
{
    for (int i = 0; launches_last && i < 3; i++)
        LAUNCH(empty, stream); /* which a real driver refuses by then, being gone */
}

static pthread_key_t key;
static void last_call(void *unused)
{
    (void)unused;
    /* A thread's destructor too; whether the driver still has the thread's context is the driver's
     * business. */
    (void)!CU(cuLaunchKernel, empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

static void *with_destructor(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    LAUNCH(empty, stream);
    pthread_setspecific(key, &key);
    return unused;
}

static void on_term(int unused)
{
    (void)unused;
    _exit(12);
}

/* As `custream ctl PID flush`: the answer comes when all is in the file. Nobody listens at first,
 * and without the library never. */
static void until_flushed(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char space[64] = "", answer[256];
    if (!dlsym(RTLD_DEFAULT, "libcustream_link")) return;
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0),
              n = (int)readlink("/proc/self/ns/pid", space, sizeof space - 1);
    const int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
        "custream/%.*s/%d", n, space, (int)getpid());
    while (connect(fd, (struct sockaddr *)&address,
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)))
        app_sleep_ms(1);
    do {
        if (write(fd, "flush", 5) != 5 || read(fd, answer, sizeof answer) < 9) exit(7);
    } while (!strncmp(answer, "error not", 9)); /* all of it within ten seconds */
    if (strncmp(answer, "ok", 2)) exit(7);
    close(fd);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    const char *how = argc > 1 ? argv[1] : "return";
    app_start(0);
    empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 100; i++) LAUNCH(empty, stream);
    if (!strcmp(how, "return")) return 5;
    if (!strcmp(how, "exit")) exit(5);
    if (!strcmp(how, "_exit")) _exit(5);
    if (!strcmp(how, "_Exit")) _Exit(5);
    if (!strcmp(how, "syscall")) syscall(SYS_exit_group, 5);
    if (!strcmp(how, "quick_exit")) quick_exit(5);
    if (!strcmp(how, "atexit")) return atexit(at_the_end), 5;
    if (!strcmp(how, "destructor")) return launches_last = 1, 5;
    if (!strcmp(how, "handler")) return signal(SIGTERM, on_term), raise(SIGTERM), 1;
    if (!strcmp(how, "thread-exit") || !strcmp(how, "thread-_exit")) {
        THREAD(&thread, leaves, (void *)how);
        pthread_join(thread, NULL);
    }
    if (!strcmp(how, "running")) {
        for (int i = 0; i < 3; i++) THREAD(&thread, runs_on, NULL);
        while (at_work < 3) app_sleep_ms(1);
        return 5;
    }
    if (!strcmp(how, "exec")) { /* beside others that fail */
        for (int i = 0; i < 2; i++) THREAD(&thread, fails_to_exec, NULL);
        while (at_work < 2) app_sleep_ms(1);
        execl("/bin/sh", "sh", "-c", "sleep 0.2; exit 5", NULL);
    }
    if (!strcmp(how, "destructors")) {
        pthread_key_create(&key, last_call);
        for (int i = 0; i < 20; i++) {
            THREAD(&thread, with_destructor, NULL);
            pthread_join(thread, NULL);
        }
        return 5;
    }
    until_flushed();
    for (int i = 0; i < 10; i++) LAUNCH(empty, stream);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "kill")) raise(SIGKILL);
    if (!strcmp(how, "segv")) raise(SIGSEGV);
    return 2;
}
