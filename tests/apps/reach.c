/*
 * reach: has the library make calls that others do not. The program asks its own process by
 * `custream ctl`'s socket, forks, has its trace's name taken away, and main leaves by pthread_exit.
 * What it prints does not depend on whether anybody answers.
 *
 * reach asked    does what the library must ask the driver about: kernels after a module has gone,
 * a context after another has, a stream behind a pointer. Its threads are real-time threads where
 * that is allowed; and who records by the socket is told of the end by another reach both     works
 * on default streams by calls of both kinds, and does not mind what a policy answers
 */
#include "tests/apps/app.h"

#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

static CUfunction empty;
static CUstream stream;

/* The connection. */
static int ask_on(const char *what)
{
    char name[64] = "", answer[8192];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (readlink("/proc/self/ns/pid", name, sizeof name - 1) < 0) *name = 0;
    const int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "custream/%s/%d",
        name, (int)getpid()); /* abstract */
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    const struct timeval patience = {.tv_sec = 3};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (!connect(fd, (struct sockaddr *)&address, size) &&
        send(fd, what, strlen(what), MSG_NOSIGNAL) > 0 && recv(fd, answer, sizeof answer, 0) < 0) {}
    return fd;
}

static void ask(const char *what) { close(ask_on(what)); }

static void *launches(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    for (int i = 0; i < 50; i++) LAUNCH(empty, stream);
    return unused;
}

static void *last(void *unused)
{
    launches(unused);
    app_sleep_ms(20);
    puts("the last thread ends");
    fflush(stdout);
    return unused;
}

static int asked(void)
{
    CUmodule module;
    CUcontext other;
    CUlaunchConfig config = {.gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 1,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = stream};
    OK(cuModuleLoadData, &module, "");
    OK(cuModuleUnload, module);
    LAUNCH(empty, stream);
    OK(cuCtxCreate_v4, &other, NULL, 0, 0);
    OK(cuCtxDestroy_v2, other);
    OK(cuCtxSetCurrent, app_context);
    LAUNCH(empty, NULL);
    OK(cuLaunchKernelEx, &config, empty, NULL, NULL);
    OK(cuCtxSynchronize);
    const int recording = ask_on("record");
    ask("off");
    close(recording);
    app_report();
    return 0;
}

static int both(void)
{
    for (int i = 0; i < 3; i++) {
        CU(cuLaunchKernel, empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
        CU(cuLaunchKernel_ptsz, empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
        CU(cuLaunchKernel, empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
    }
    CU(cuCtxSynchronize);
    app_report();
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "asked")) sched_setscheduler(0, SCHED_RR, &(struct sched_param){1});
    app_start(0);
    empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    if (!strcmp(how, "asked")) return asked();
    if (!strcmp(how, "both")) return both();
    THREAD(&thread, launches, NULL);
    pthread_join(thread, NULL);
    ask("status");
    ask("flush");
    ask("record");
    pid_t child = fork();
    if (!child) _exit((int)CU(cuStreamQuery, stream) & 1);
    int status;
    waitpid(child, &status, 0);
    printf("child %d\n", status);
    OK(cuStreamDestroy_v2, stream);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    app_report();
    THREAD(&thread, last, NULL);
    pthread_detach(thread);
    pthread_exit(NULL);
}
