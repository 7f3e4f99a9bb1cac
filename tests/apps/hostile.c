/*
 * Programs that make it hard: forks, replacements and ends at bad moments. hostile HOW; standard
 * output is the same without the shim.
 *
 *     atfork       forks while another thread makes kernels with a lock of the program's held,
 * which the program's own fork handlers take forks-execs  forks and replaces the children while
 * another thread keeps the loader's lock busy; no CUDA forks-early  forks while another thread's
 * first look-up of a driver's symbol is under way; the child looks one up too replaces     calls
 * exec, which fails, while another thread makes CUDA calls ends N       exit in one thread and
 * _exit in another, N tenths of a millisecond later number       puts a file of its own in place of
 * each descriptor above 2, and forks; the child writes to its files moves        changes directory
 * and closes all descriptors inherits     forks with streams, arrows and work behind it; the child
 * makes one call constructor LIBRARY   opens a library whose constructor makes many CUDA calls
 */
#include "tests/apps/app.h"
#include "tests/patience.h"

#include <fcntl.h>
#include <link.h>
#include <signal.h>

enum { DEADLINE_S = 20 };
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop;
static volatile long made;
static CUfunction empty;
static CUstream stream;

static void take(void) { pthread_mutex_lock(&own); }
static void drop(void) { pthread_mutex_unlock(&own); }

/* Before the constructor of any library: so these are taken last. */
static void first_of_all(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "atfork")) pthread_atfork(take, drop, drop);
}
__attribute__((section(".preinit_array"), used)) static void (*const at_start)(
    int, char **) = first_of_all;

static void too_late(int unused)
{
    static const char text[] = "stuck\n";
    (void)unused;
    ssize_t ignored = write(STDOUT_FILENO, text, sizeof text - 1);
    (void)ignored;
    syscall(SYS_exit_group, 9);
}

/* Waits for the child as long as it may take; a child that hangs is ended, and said. */
static int reap(pid_t child, const char *what)
{
    int status = 0;
    for (unsigned ms = patience(DEADLINE_S) * 1000; ms; ms--, app_sleep_ms(1))
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    printf("%s: the child hangs\n", what);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -2;
}

static void open_up(void)
{
    app_start(0);
    empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    LAUNCH(empty, stream);
}

/* --- atfork --- */

static void *makes_kernels(void *unused)
{
    char name[64];
    OK(cuCtxSetCurrent, app_context);
    while (!stop) {
        take();
        snprintf(name, sizeof name, "kernel_%ld", made++);
        app_kernel(name);
        drop();
        for (volatile int i = 0; i < 20000; i++) {}
    }
    return unused;
}

static void atfork(void)
{
    pthread_t thread;
    signal(SIGALRM, too_late);
    app_start(0);
    THREAD(&thread, makes_kernels, NULL);
    while (!made) {}
    for (int i = 0; i < 500; i++) {
        alarm(patience(DEADLINE_S));
        pid_t child = fork();
        if (!child) syscall(SYS_exit_group, 0);
        if (reap(child, "atfork")) break;
    }
    alarm(patience(DEADLINE_S));
    stop = 1;
    pthread_join(thread, NULL);
}

/* --- forks-execs --- */

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
    return (void)info, (void)size, (void)data, 0;
}

static void *keeps_the_loader_busy(void *unused)
{
    while (!stop) dl_iterate_phdr(look, NULL);
    return unused;
}

static void forks_execs(void)
{
    pthread_t thread;
    int good = 0;
    THREAD(&thread, keeps_the_loader_busy, NULL);
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (!child) {
            execl("/bin/sh", "sh", "-c", "exit 11", (char *)NULL);
            _exit(1);
        }
        int status = reap(child, "forks-execs");
        if (status == -2) break;
        good += status == 11;
    }
    printf("children %d\n", good);
    stop = 1;
    pthread_join(thread, NULL);
}

/* --- forks-early --- */

static void *looks_up(void *driver) { return dlsym(driver, "cuStreamCreate"); }

static void forks_early(void)
{
    pthread_t thread;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) exit(3);
    THREAD(&thread, looks_up, driver);
    app_sleep_ms(50);
    pid_t child = fork();
    if (!child) _exit(dlsym(driver, "cuStreamQuery") ? 11 : 1);
    printf("child %d\n", reap(child, "forks-early"));
    pthread_join(thread, NULL);
}

/* --- replaces --- */

static void *launches(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    while (!stop) LAUNCH(empty, stream);
    return unused;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void replaces(void)
{
    pthread_t thread;
    char *argv[] = {"x", NULL};
    open_up();
    THREAD(&thread, launches, NULL);
    app_sleep_ms(50);
    for (int i = 0; i < 3; i++) {
        (void)!CU(cuStreamQuery, stream);
        double begin = now();
        execv("/no/such/program", argv);
        printf("exec failed %s\n", now() - begin < 5 ? "at once" : "after seconds");
    }
    stop = 1;
    pthread_join(thread, NULL);
}

/* --- ends --- */

static void *leaves(void *after)
{
    nanosleep(&(struct timespec){0, (long)after * 100000}, NULL);
    _exit(7);
}

static void ends(long after)
{
    pthread_t thread;
    open_up();
    app_flush(); /* the thread's first record is no more what the writer waits for */
    for (int i = 0; i < 60000; i++) LAUNCH(empty, stream);
    THREAD(&thread, leaves, (void *)after);
    exit(7);
}

/* --- number, moves --- */

static void number(void)
{
    open_up();
    app_flush(); /* the library has its descriptors */
    int file = open("mine.txt", O_CREAT | O_RDWR | O_TRUNC, 0600), wrong = 0;
    for (int fd = file + 1; fd < 1024; fd++) dup2(file, fd);
    pid_t child = fork();
    if (!child) {
        for (int fd = file + 1; fd < 1024; fd++) wrong += write(fd, "x", 1) != 1;
        _exit(wrong > 99 ? 99 : wrong);
    }
    printf("descriptors gone in the child: %d\n", reap(child, "number"));
}

static void moves(void)
{
    open_up();
    app_flush();
    if (chdir("/")) exit(1);
    for (int fd = 3; fd < 1024; fd++) close(fd);
    for (int i = 0; i < 100; i++) LAUNCH(empty, stream);
}

/* --- inherits --- */

static void inherits(void)
{
    CUevent events[50];
    CUstream more[20], other;
    open_up();
    OK(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 20; i++) {
        OK(cuStreamCreate, &more[i], CU_STREAM_NON_BLOCKING);
        for (int k = 0; k < 10; k++) LAUNCH(empty, more[i]);
    }
    for (int i = 0; i < 50; i++) OK(cuEventCreate, &events[i], CU_EVENT_DISABLE_TIMING);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 50; i++) {
            OK(cuEventRecord, events[i], stream);
            OK(cuStreamWaitEvent, other, events[i], 0);
        }
        app_sleep_ms(2 * round);
        pid_t child = fork();
        if (!child) {
            (void)!CU(cuStreamQuery, more[5]);
            exit(11);
        }
        if (reap(child, "inherits") != 11) break;
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IONBF, 0);
    if (!strcmp(how, "atfork")) atfork();
    else if (!strcmp(how, "forks-execs")) forks_execs();
    else if (!strcmp(how, "forks-early")) forks_early();
    else if (!strcmp(how, "replaces")) replaces();
    else if (!strcmp(how, "ends")) ends(argc > 2 ? atol(argv[2]) : 0);
    else if (!strcmp(how, "number")) number();
    else if (!strcmp(how, "moves")) moves();
    else if (!strcmp(how, "inherits")) inherits();
    else if (!strcmp(how, "constructor") && argc > 2) {
        if (!dlopen(argv[2], RTLD_NOW)) return 1;
    } else return 2;
    printf("%s done\n", how);
    return 0;
}
