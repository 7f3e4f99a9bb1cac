/*
 * chrooted root:   changes its root and folder, closes all descriptors but the standard ones, and
 * goes on with CUDA chrooted stderr: a child with a pipe for its standard error uses CUDA and
 * closes that: the parent sees the pipe end while the child lives
 */
#include "tests/apps/app.h"

#include <poll.h>
#include <sys/stat.h>

static int works(void)
{
    static CUstream stream;
    static CUfunction empty;
    if (!empty) {
        app_start(0);
        empty = app_kernel("empty_kernel");
        OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    }
    for (int i = 0; i < 20; i++) LAUNCH(empty, stream);
    app_flush();
    return 0;
}

static int root(void)
{
    works();
    if (mkdir("inside", 0755) || chroot("inside") || chdir("/") || close_range(3, ~0u, 0)) return 1;
    works();
    printf("done\n");
    return 0;
}

static int pipe_of_stderr(void)
{
    int ends[2], go[2];
    if (pipe(ends) || pipe(go)) return 1;
    pid_t child = fork();
    if (!child) {
        char byte;
        dup2(ends[1], 2);
        close(ends[0]), close(ends[1]), close(go[1]);
        works();
        close(2);
        works();
        _exit(read(go[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(ends[1]), close(go[0]);
    struct pollfd end = {.fd = ends[0], .events = POLLIN};
    int ended = poll(&end, 1, 10000) == 1 && end.revents & POLLHUP;
    close(go[1]);
    int status = 1;
    waitpid(child, &status, 0);
    printf("the pipe ended first: %d\n", ended);
    return !ended || status;
}

int main(int argc, char **argv)
{
    return argc > 1 && !strcmp(argv[1], "root") ? root() : pipe_of_stderr();
}
