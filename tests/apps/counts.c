/*
 * counts FILE THREADS [WAY]: every thread makes calls on a stream of its own as fast as it can, and
 * counts in FILE each call that has returned: it is shared memory, so the numbers outlive a kill.
 * Without an end; FILE's first number is how often all have begun. WAY:
 *
 *   paced   nothing more; as with those below, there is a pause after every hundred calls
 *   short   without a pause: threads that end after 3000 calls, and others after them
 *   limit   files may have 1 MiB at most from here on, and a write beyond that is a signal
 *   clone   a child by a bare clone makes calls, and ends; then as without
 *   left    the same, and it ends by exit()
 *   _Fork   the same by the C library's function that runs no handlers
 *   vfork   the same by vfork: until it has ended, it borrows the parent's memory and thread
 *   lives   a child by a bare clone does nothing, and lives on; then as without
 *   fork    a child by fork does the same in THREADS threads, and counts in FILE.child
 *   exec    after 2000 calls the program becomes itself again, paced
 *   failed  after 2000 calls an exec fails; then as without
 */
#include "tests/apps/app.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { MOST = 64, SHORT = 3000, FIRST = 2000 };

static struct counts {
    _Atomic long begun, returned[MOST];
} *counts;
static const char *way = "";
static bool paced;
static CUfunction empty;

static void counts_open(const char *path, const char *more)
{
    char name[4096];
    snprintf(name, sizeof name, "%s%s", path, more);
    const int fd = open(name, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *counts)) exit(9);
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (counts == MAP_FAILED) exit(9);
}

static void calls(long thread, long most)
{
    CUstream stream;
    CUevent event;
    OK(cuCtxSetCurrent, app_context);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &event, 0);
    for (long i = 0; i < most; i++) {
        if (i % 2) LAUNCH(empty, stream);
        else OK(cuEventRecord, event, stream);
        atomic_fetch_add(&counts->returned[thread], 1);
        if (i == 20) atomic_fetch_add(&counts->begun, 1);
        if (i % 100 == 99 && paced) app_sleep_ms(3);
        if (i % 1000 == 999) OK(cuStreamSynchronize, stream);
    }
    OK(cuEventDestroy_v2, event);
    OK(cuStreamDestroy_v2, stream);
}

static void *thread_runs(void *number)
{
    calls((long)number, !strcmp(way, "short") ? SHORT : __LONG_MAX__);
    return NULL;
}

static void all_run(long threads)
{
    pthread_t id[MOST];
    do {
        for (long i = 0; i < threads; i++) THREAD(&id[i], thread_runs, (void *)i);
        for (long i = 0; i < threads; i++) pthread_join(id[i], NULL);
    } while (!strcmp(way, "short"));
}

/* In a child CUDA does not work on, and calls return errors. */
static void child_runs(const char *file, long times)
{
    CUevent event = (CUevent)(uintptr_t)16;
    counts_open(file, ".child");
    for (long i = 0; i < times; i++) {
        CU(cuEventRecord, event, NULL);
        atomic_fetch_add(&counts->returned[0], 1);
        if (i == 20) atomic_fetch_add(&counts->begun, 1);
        if (i % 100 == 99) app_sleep_ms(3);
    }
}

int main(int argc, char **argv)
{
    long threads = argc > 2 ? atol(argv[2]) : 0;
    if (threads < 1 || threads > MOST) return 2;
    if (argc > 3) way = argv[3];
    paced = *way && strcmp(way, "short");
    counts_open(argv[1], "");
    if (!strcmp(way, "limit")) setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 20, RLIM_INFINITY});
    app_start(0);
    empty = app_kernel("empty_kernel");
    if (!strcmp(way, "clone") || !strcmp(way, "left") || !strcmp(way, "_Fork")) {
        pid_t (*without_handlers)(void) = (__typeof__(without_handlers))dlsym(RTLD_DEFAULT, way);
        calls(0, FIRST);
        const pid_t child =
            *way == '_' ? without_handlers() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (!child)
            child_runs(argv[1], FIRST), *way == 'c' ? (void)syscall(SYS_exit_group, 0) : exit(0);
        waitpid(child, NULL, 0);
    }
    if (!strcmp(way, "vfork")) {
        calls(0, FIRST);
        const pid_t child = vfork();
        if (!child) calls(0, FIRST), syscall(SYS_exit_group, 0);
        waitpid(child, NULL, 0);
    }
    if (!strcmp(way, "lives")) {
        calls(0, FIRST);
        if (!syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL)) pause();
    }
    if (!strcmp(way, "fork")) {
        calls(0, FIRST);
        if (!fork()) child_runs(argv[1], __LONG_MAX__);
    }
    if (!strcmp(way, "exec")) {
        calls(0, FIRST);
        execl(argv[0], argv[0], argv[1], argv[2], "paced", (char *)NULL);
        return 9;
    }
    if (!strcmp(way, "failed")) {
        calls(0, FIRST);
        execl("/nowhere/at all", "nothing", (char *)NULL);
    }
    all_run(threads);
    return 0;
}
