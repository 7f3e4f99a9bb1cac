/*
 * closes std: closes standard output before it first calls CUDA; what it writes there must fail,
 * since nothing is there. closes all: closes every descriptor but the standard ones while CUDA is
 * in use, as daemons do, and opens files of its own in their place.
 */
#include "tests/apps/app.h"

#include <fcntl.h>

enum { FILES = 16 };

static void work(CUstream stream, CUfunction empty)
{
    for (int i = 0; i < 10; i++) LAUNCH(empty, stream);
    app_flush();
}

int main(int argc, char **argv)
{
    CUstream stream;
    char name[32], text[16] = "";
    int own[FILES], intact = 0;
    int all = argc > 1 && !strcmp(argv[1], "all");
    if (!all) close(1);
    app_start(0);
    CUfunction empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    work(stream, empty);
    if (!all) {
        ssize_t written = write(1, "not for the trace", 17);
        NOTE("written", "%zd", written);
        work(stream, empty);
        return 0;
    }
    for (int fd = 3; fd < 1024; fd++) close(fd);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "own-%d.txt", i);
        own[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (own[i] < 0 || write(own[i], "mine\n", 5) != 5) return 1;
    }
    work(stream, empty);
    for (int i = 0; i < FILES; i++) {
        memset(text, 0, sizeof text);
        intact += pread(own[i], text, sizeof text - 1, 0) == 5 && !strcmp(text, "mine\n");
    }
    printf("own files intact %d\n", intact);
    return 0;
}
