/*
 * What a program sees of its descriptors, while CUDA is in use:
 *
 * descriptors list     the numbers that are open, and whether what it closed is closed: the end of
 * a pipe, a lock on a file, a record lock that it keeps descriptors reuse    one thread calls CUDA,
 * the other closes all and opens a file of its own under every number up to 300, again and again
 * descriptors reopened stderr becomes a file of its own, named data.bin, that holds what it writes
 * and nothing else
 */
#include "tests/apps/app.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

static void work(CUstream stream, CUfunction empty, int times)
{
    for (int i = 0; i < times; i++) LAUNCH(empty, stream);
}

/* --- list --- */

static void list(void)
{
    DIR *all = opendir("/proc/self/fd");
    for (struct dirent *one; (one = readdir(all));)
        if (*one->d_name != '.' && atoi(one->d_name) != dirfd(all))
            printf("open %s\n", one->d_name);
    closedir(all);
}

static int keep_and_close(CUstream stream, CUfunction empty, int ends[2], int locked)
{
    char byte;
    struct flock record = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    close(ends[1]);
    printf("the pipe has ended: %zd\n", read(ends[0], &byte, 1));
    close(locked);
    int again = open("locked.txt", O_RDWR);
    printf("the lock has gone: %d\n", flock(again, LOCK_EX | LOCK_NB));
    int own = open("record.txt", O_RDWR | O_CREAT, 0600);
    if (fcntl(own, F_SETLK, &record)) return 1;
    work(stream, empty, 10);
    app_flush(); /* the library has its descriptors */
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        fcntl(own, F_GETLK, &record);
        printf(
            "the record lock is held: %d\n", record.l_type == F_WRLCK && record.l_pid == getppid());
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    list();
    return 0;
}

/* --- reuse --- */

static volatile int stop;
static void *calls(void *empty)
{
    CUstream stream;
    OK(cuCtxSetCurrent, app_context);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    for (; !stop; usleep(200)) work(stream, empty, 20);
    return NULL;
}

static int reuse(CUfunction empty)
{
    enum { SIZE = 64 << 10, LOOPS = 2500 };
    static char own[SIZE], now[SIZE + 1];
    pthread_t thread;
    memset(own, 'U', sizeof own);
    int fd = open("user.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (write(fd, own, SIZE) != SIZE || pthread_create(&thread, NULL, calls, empty)) return 1;
    for (int i = 0; i < LOOPS; i++) {
        if (close_range(3, ~0u, 0)) return 1;
        fd = open("user.dat", O_RDWR);
        for (int n = 4; n < 300; n++) dup2(fd, n);
        usleep(200);
    }
    stop = 1;
    pthread_join(thread, NULL);
    printf("intact %d\n", pread(fd, now, sizeof now, 0) == SIZE && !memcmp(own, now, SIZE));
    return 0;
}

/* --- reopened --- */

static int reopened(CUstream stream, CUfunction empty)
{
    char text[16] = "";
    close(2);
    int fd = open("data.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd != 2 || write(fd, "data\n", 5) != 5) return 1;
    work(stream, empty, 200000); /* more than the trace may hold, which is said */
    app_flush();
    printf("holds %zd\n", pread(fd, text, sizeof text, 0));
    return 0;
}

int main(int argc, char **argv)
{
    CUstream stream;
    int ends[2], locked = open("locked.txt", O_RDWR | O_CREAT, 0600);
    if (argc < 2 || pipe(ends) || flock(locked, LOCK_EX)) return 2;
    app_start(0);
    CUfunction empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    work(stream, empty, 10);
    if (!strcmp(argv[1], "list")) return keep_and_close(stream, empty, ends, locked);
    return !strcmp(argv[1], "reuse") ? reuse(empty) : reopened(stream, empty);
}
