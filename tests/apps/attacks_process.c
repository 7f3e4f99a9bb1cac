/*
 * attacks_process HOW: programs that end, limit or shut in themselves in ways that are allowed;
 * standard output and status are the same without the shim.
 *
 *     few-files   main leaves by pthread_exit, the other thread allows itself no more than one
 * descriptor and works on shut-in     no thread of the process may open a file any more: the kernel
 * kills it for that writer-killed  a filter kills each thread that writes as the library's does,
 * and the program goes on writer-killed-left  likewise, and main leaves by pthread_exit killed main
 * alone is killed, by a filter, and there is no other thread real-time   main is a real-time
 * thread, where that is allowed, when it meets the driver few-calls   no thread of the process may
 * make other system calls than the program makes, and those that docs/architecture.md names
 *     few-calls-asked  likewise; it says where it is, and reads a line before it goes on
 *     few-calls-thread, -rotate, -full, -trigger, -metrics  likewise, with those for what comes
 * then raw-exit    main leaves by the bare system call, with a status large-frame main leaves by
 * pthread_exit, and an exit handler needs a megabyte of stack one-thread  the user may have one
 * thread more, and main leaves by pthread_exit no-memory   the process may have no more memory than
 * it has before its first kernel cut, grow   somebody makes the trace's file shorter, or longer,
 * while the process lives in-a-call   a signal handler ends the process in the middle of a driver
 * call mappings    how much memory a core would have of the process, and how much of it is there in
 * a child, after 20000 launches cancelled   a thread is cancelled by the time of its first CUDA
 * call, and others go on
 */
#include "tests/apps/app.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>

static CUfunction empty;
static CUstream stream;

static void work(int rounds)
{
    for (int i = 0; i < rounds; i++, app_sleep_ms(50)) LAUNCH(empty, stream);
}

static void open_up(void)
{
    app_start(0);
    empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    work(3);
}

static void say(const char *line)
{
    puts(line);
    fflush(stdout);
}

static void at_exit(void) { say("at exit"); }

static void *with_few_files(void *unused)
{
    struct rlimit one = {1, 1};
    OK(cuCtxSetCurrent, app_context);
    app_flush(), app_rest();
    setrlimit(RLIMIT_NOFILE, &one);
    work(12);
    say("the thread ends");
    _exit(7);
    return unused;
}

/* From here on that call has this action; for the whole process, or the thread alone. */
static void forbid(unsigned call, unsigned action, unsigned flags)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    app_flush(), app_rest();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program))
        exit(2);
}

/* The program's own; then ours. */
static const unsigned allowed[] = {
    SYS_write,
    SYS_clock_nanosleep,
    SYS_exit_group,
    SYS_clock_gettime,
    SYS_gettid,
    SYS_sched_yield,
    SYS_rt_sigreturn,
    SYS_rt_sigaction,
    SYS_futex,
    SYS_nanosleep,
    SYS_getpid,
    SYS_pread64,
    SYS_pwritev,
    SYS_newfstatat,
    SYS_ftruncate,
    SYS_close,
    SYS_rt_sigprocmask,
    SYS_exit,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_munlock,
    SYS_madvise,
    SYS_brk,
    SYS_unlinkat,
};

/* Says where it is, and waits for a line. */
static void wait_after(const char *line)
{
    say(line);
    if (getchar() != '\n') exit(3);
}

/* System calls that docs/architecture.md names for what comes late, and those of a thread of the
 * program's own. */
enum { END = 0xffffffff };
static const struct late {
    const char *what;
    int launches;
    unsigned allowed[10];
} late[] = {
    {"thread", 0,
        {SYS_openat, SYS_prctl, SYS_clone3, SYS_clone, SYS_set_robust_list, SYS_rseq, END}},
    {"rotate", 14000,
        {SYS_openat, SYS_fchmod, SYS_fcntl, SYS_flock, SYS_linkat, SYS_renameat2, SYS_uname, END}},
    {"full", 14000, {SYS_ppoll, SYS_rt_sigpending, END}},
    {"trigger", 0,
        {SYS_openat, SYS_fcntl, SYS_read, SYS_geteuid, SYS_ppoll, SYS_rt_sigpending, END}},
    {"growth", 300000, {END}}, /* all are awaited: more than the table of calls has at first */
    {"metrics", 0, {SYS_openat, SYS_fcntl, SYS_read, SYS_flock, SYS_renameat2, END}},
};

static void *works(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    work(3);
    return unused;
}

static unsigned short allow(struct sock_filter *filter, unsigned short at, unsigned call)
{
    filter[at] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
    filter[at + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return at + 2;
}

static int with_few_calls_late(const char *what)
{
    const struct late *l = late;
    pthread_t id;
    struct sock_filter filter[128] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short n = 1;
    while (strcmp(l->what, what)) l++;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) n = allow(filter, n, allowed[i]);
    for (const unsigned *call = l->allowed; *call != END; call++) n = allow(filter, n, *call);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {n, filter};
    volatile unsigned *gate = !strcmp(what, "growth") ? app_gate(stream) : NULL;
    app_rest();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
        return 2;
    say("shut in");
    for (int i = 0; i < l->launches; i++) LAUNCH(empty, stream);
    if (gate) *gate = 1;
    if (!strcmp(what, "thread")) {
        THREAD(&id, works, NULL);
        pthread_join(id, NULL);
    }
    const bool waits = !strcmp(what, "trigger") || !strcmp(what, "metrics");
    work(12);
    if (waits) wait_after("worked");
    work(1);
    say("still here");
    return 5;
}

static int with_few_calls(int asked)
{
    if (asked) {
        wait_after("open");
        work(12);
        wait_after("worked");
    }
    enum { N = sizeof allowed / sizeof *allowed };
    struct sock_filter filter[N + 4] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    struct sock_fprog program = {N + 4, filter};
    for (int i = 0; i < N; i++)
        filter[1 + i] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], N + 1 - i, 0);
    filter[1 + N] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, asked ? SYS_read : SYS_write, 1, 0);
    filter[2 + N] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    filter[3 + N] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    app_flush(), app_rest();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
        return 2;
    if (asked) wait_after("shut in");
    work(12);
    say("still here");
    return 5;
}

static int shut_in(void)
{
    forbid(SYS_openat, SECCOMP_RET_KILL_PROCESS, SECCOMP_FILTER_FLAG_TSYNC);
    work(12);
    say("still here");
    return 5;
}

static int kill_the_writer(void)
{
    forbid(SYS_pwritev, SECCOMP_RET_KILL_THREAD, SECCOMP_FILTER_FLAG_TSYNC);
    for (int i = 0; i < 14; i++, app_sleep_ms(50))
        for (int k = 0; k < 1000; k++) LAUNCH(empty, stream);
    say("still here");
    return 5;
}

static int real_time(void)
{
    struct dirent *one;
    int urgent = 0;
    if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){1})) {
    } /* where that is not allowed, nothing is shown */
    open_up();
    DIR *threads = opendir("/proc/self/task");
    while ((one = readdir(threads)))
        if (atoi(one->d_name) > 0 && atoi(one->d_name) != getpid() &&
            sched_getscheduler(atoi(one->d_name)) == SCHED_FIFO)
            urgent++;
    printf("real-time threads besides main: %d\n", urgent);
    return 5;
}

static int without_memory(void)
{
    struct rlimit none = {1, 1};
    CUdeviceptr memory;
    app_start(0);
    empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuMemAlloc_v2, &memory, 64);
    OK(cuMemsetD8Async, memory, 0, 64, stream);
    OK(cuStreamSynchronize, stream);
    setrlimit(RLIMIT_AS, &none);
    work(3);
    say("still here");
    return 5;
}

static int change_file(off_t size)
{
    if (truncate(getenv("CUSTREAM_TRACE"), size)) {} /* there is none without the shim */
    work(12);
    say("still here");
    return 5;
}

/* kB of what can be written and has no file of the program's: that a core would have, and that is
 * there. */
static void note_mappings(const char *who)
{
    char line[512], key[32] = "";
    long size = 0, there = 0, dumped = 0, sum = 0;
    int counts = 0;
    FILE *all = fopen("/proc/self/smaps", "r");
    while (all && fgets(line, sizeof line, all)) {
        if (strchr("0123456789abcdef", *line))
            counts = strstr(line, " rw") && (!strchr(line, '/') || strstr(line, "custream"));
        sscanf(line, "Size: %ld", &size);
        sscanf(line, "Rss: %ld", &there);
        if (strncmp(line, "VmFlags:", 8) || !counts) continue;
        sum += there;
        if (!strstr(line, " dd")) dumped += size;
    }
    if (all) fclose(all);
    snprintf(key, sizeof key, "%s-core", who);
    NOTE(key, "%ld", dumped);
    snprintf(key, sizeof key, "%s-there", who);
    NOTE(key, "%ld", sum);
}

static void ends(int unused)
{
    (void)unused;
    exit(7);
}

static void end_in_a_call(void)
{
    app_gate(stream);
    signal(SIGALRM, ends);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 100000}}, NULL);
    OK(cuStreamSynchronize, stream);
}

static int mappings(void)
{
    for (int i = 0; i < 20000; i++) LAUNCH(empty, stream);
    app_sleep_ms(100);
    note_mappings("parent");
    const pid_t child = fork();
    if (!child) note_mappings("child"), _exit(0);
    waitpid(child, NULL, 0);
    return 5;
}

static void large_frame(void)
{
    volatile char frame[1 << 20];
    for (size_t i = 0; i < sizeof frame; i += 4096) frame[i] = 1;
    say("at exit");
}

static void one_thread(void)
{
    enum { NOBODY = 64023 }; /* whose processes are ours alone */
    struct rlimit two = {2, 2};
    if (setgid(NOBODY) || setuid(NOBODY) || setrlimit(RLIMIT_NPROC, &two)) exit(2);
    atexit(at_exit);
    app_start(0);
    pthread_exit(NULL);
}

static volatile int cancelled;
static void *first_call(void *unused)
{
    unsigned flags;
    int active;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    while (!cancelled) app_sleep_ms(1);
    OK(cuInit, 0);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    OK(cuDevicePrimaryCtxGetState, 0, &flags, &active);
    OK(cuDevicePrimaryCtxRetain, &app_context, 0);
    cancelled = 2;
    pthread_testcancel();
    return unused;
}

static int cancel(void)
{
    pthread_t thread;
    THREAD(&thread, first_call, NULL);
    pthread_cancel(thread);
    cancelled = 1;
    pthread_join(thread, NULL);
    printf("its call returned: %d\n", cancelled == 2);
    open_up();
    say("others go on");
    return 5;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "cancelled")) return cancel();
    if (!strcmp(how, "one-thread")) one_thread();
    if (!strcmp(how, "no-memory")) return without_memory();
    if (!strcmp(how, "real-time")) return real_time();
    open_up();
    if (!strcmp(how, "writer-killed")) return kill_the_writer();
    if (!strcmp(how, "writer-killed-left")) atexit(at_exit), kill_the_writer();
    if (!strcmp(how, "killed")) forbid(SYS_getppid, SECCOMP_RET_KILL_THREAD, 0), getppid();
    if (!strncmp(how, "few-calls-", 10) && strcmp(how, "few-calls-asked"))
        return with_few_calls_late(how + 10);
    if (!strcmp(how, "few-calls") || !strcmp(how, "few-calls-asked")) return with_few_calls(how[9]);
    if (!strcmp(how, "in-a-call")) end_in_a_call();
    if (!strcmp(how, "mappings")) return mappings();
    if (!strcmp(how, "shut-in")) return shut_in();
    if (!strcmp(how, "cut")) return change_file(0);
    if (!strcmp(how, "grow")) return change_file(1 << 20);
    if (!strcmp(how, "raw-exit")) syscall(SYS_exit, 7);
    if (!strcmp(how, "large-frame")) atexit(large_frame);
    if (!strcmp(how, "few-files")) THREAD(&thread, with_few_files, NULL);
    pthread_exit(NULL);
}
