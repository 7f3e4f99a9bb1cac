/*
 * gates WHAT CALL: a signal arrives at each instruction of the shim on the way of a call, once or
 * more, and its handler does one of these:
 *
 *     unwind    walks the stack, and must come to whoever made the call
 *     fork      the child goes on with the call, as the parent does
 *     leave     ends the thread; the next instruction is another thread's, which is given what the
 * first one left launch    launches, many times at each instruction; then launches come without
 * signals, of a kernel with another name text      marks a text that was never seen; the call is a
 * range with such a text
 *
 * The call `first` is a thread's first one, of a new thread each time. Of its instructions those
 * are stepped that come after the shim has asked who it is, and makes the thread's state.
 * libother_preload.so, behind the shim, sees it ask.
 */
#include "tests/apps/app.h"
#include "tests/apps/step.h"

#include <nvtx3/nvToolsExt.h>
#include <unwind.h>

enum { TIMES = 20, QUIET = 100, CHILD = 7, FIRST = 100, MANY = 300 };

static CUstream stream;
static CUevent event;
static CUfunction kernel;
static struct step_code shim = {.library = "libcustream_shim"};
static unsigned char met[16 << 20];
static unsigned times = 1;
static long handled, astray;
static void (*handler)(ucontext_t *);

/* --- calls --- */

static void launch(void) { CU(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL); }
static void record(void) { CU(cuEventRecord, event, stream); }
static int asks; /* its own id: the next time, stepping begins */

static void first(void)
{
    steps(0);
    asks = 1;
    CU(cuCtxSetCurrent, app_context);
    asks = 0;
}

static void made(long number, const void *caller)
{
    if (number == SYS_getpid && asks && handled < FIRST && step_is_in((uintptr_t)caller, &shim))
        asks = 0, steps(1);
}

/* As many as find the end of the ring's first memory. */
static void many(void)
{
    for (int i = 0; i < MANY; i++) {
        steps(i > MANY - 60 && handler);
        launch();
    }
    steps(0);
}

static void query(void) { CU(cuStreamQuery, stream); }

static void create(void)
{
    CUstream made;
    if (CU(cuStreamCreate, &made, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS)
        CU(cuStreamDestroy_v2, made);
}

static void range(void)
{
    static int n;
    char text[32];
    snprintf(text, sizeof text, "range %d", n++);
    nvtxRangePushA(text);
    nvtxRangePop();
}

/* --- handlers --- */

static __attribute__((noinline)) void made_by(void (*call)(void))
{
    steps(1);
    call();
    steps(0);
    __asm__ volatile("" ::: "memory"); /* no tail call: this frame is looked for */
}

static _Unwind_Reason_Code visit(struct _Unwind_Context *frame, void *found)
{
    if (_Unwind_FindEnclosingFunction((void *)(_Unwind_GetIP(frame) - 1)) == (void *)made_by)
        *(int *)found = 1;
    return _URC_NO_REASON;
}

static void unwind(ucontext_t *at)
{
    int found = 0;
    _Unwind_Backtrace(visit, &found);
    if (!found) astray++, NOTE("astray", "%lx", (unsigned long)(step_place(at) - shim.from));
}

static void go_on_as_child(ucontext_t *at)
{
    int status;
    const pid_t child = fork();
    if (!child) {
        step_no_more(at);
        handler = NULL;
        return;
    }
    if (waitpid(child, &status, 0) == child && status == CHILD << 8) return;
    astray++;
    NOTE("astray", "%lx with %x", (unsigned long)(step_place(at) - shim.from), status);
}

static void leave(ucontext_t *unused)
{
    (void)unused;
    pthread_exit(&handled);
}

static void launch_too(ucontext_t *unused)
{
    (void)unused;
    launch();
}

static void mark(ucontext_t *unused)
{
    char text[32];
    (void)unused;
    snprintf(text, sizeof text, "mark %ld", handled);
    nvtxMarkA(text);
}

static void trapped(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    const int saved = errno;
    const uintptr_t at = step_place(context);
    if (handler && step_is_in(at, &shim) && met[at - shim.from] < times) {
        met[at - shim.from]++;
        handled++;
        handler(context);
    }
    errno = saved;
}

/* --- what there is --- */

static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {{"launch", launch}, {"many", many}, {"record", record}, {"query", query},
    {"create", create}, {"range", range}, {"first", first}, {NULL, NULL}},
  *called = calls;

static const struct {
    const char *name;
    void (*handler)(ucontext_t *);
    unsigned times;
} handlers[] = {{"unwind", unwind, 1}, {"fork", go_on_as_child, 1}, {"leave", leave, 1},
    {"launch", launch_too, TIMES}, {"text", mark, 1}, {NULL, NULL, 0}},
  *what = handlers;

static void make_call(void)
{
    const pid_t parent = getpid();
    made_by(called->call);
    if (getpid() == parent) return;
    syscall(SYS_exit_group, CHILD);
}

/* Their rings are given to later threads, which find them used. */
static void *run_before(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    for (int i = 0; i < TIMES; i++) launch();
    return unused;
}

static void *run_first(void *unused)
{
    const long before = handled;
    (void)unused;
    make_call();
    return before < handled ? &handled : NULL;
}

static void *run(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    for (long before = -1; before < handled;) {
        before = handled;
        make_call();
    }
    handler = NULL;
    kernel = app_kernel("quiet_kernel");
    for (int i = 0; i < QUIET; i++) launch();
    return unused;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    pthread_t thread;
    void *left;
    while (argc == 3 && what->name && strcmp(what->name, argv[1])) what++;
    while (argc == 3 && called->name && strcmp(called->name, argv[2])) called++;
    if (argc != 3 || !what->name || !called->name) return 2;
    sigaction(SIGTRAP, &action, NULL);
    app_start(0);
    kernel = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    called->call();
    step_find(&shim);
    void (**other_made)(long, const void *) = dlsym(RTLD_DEFAULT, "other_made");
    if (other_made) *other_made = made;
    for (int i = 0; called->call == first && i < TIMES; i++) {
        THREAD(&thread, run_before, NULL);
        pthread_join(thread, &left);
        app_sleep_ms(5);
    }
    times = what->times;
    handler = what->handler;
    do {
        THREAD(&thread, called->call == first ? run_first : run, NULL);
        pthread_join(thread, &left);
    } while (left);
    NOTE("handled", "%ld", handled);
    printf("astray %ld\n", astray);
    app_report();
    return 0;
}
