/* nvtx_signals HOW: signals while NVTX's ranges are pushed and popped, at each instruction of the
 * library. */
#include "tests/apps/app.h"
#include "tests/apps/step.h"

#include <nvtx3/nvToolsExt.h>

static CUstream stream;

/* The levels that NVTX answers: to standard error, since they depend on whether there is a tool. */
#define LEVEL(key, ...) NOTE(key, "%d", (int)(__VA_ARGS__))

/* A thread's first call tells of the ranges that it has open. A handler has ranges of its own
 * meanwhile, at each instruction of the library; `swaps`: it ends the innermost one for that. */
static struct step_code stepped = {.library = "libcustream_shim"};
static int swaps;
static long handled;
static void handler(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    if (!step_is_in(step_place(context), &stepped)) return;
    handled++;
    if (swaps) nvtxRangePop();
    nvtxRangePushA("of the handler");
    if (!swaps) nvtxRangePop();
}

static void *interrupted(void *unused)
{
    nvtxRangePushA("around");
    nvtxRangePushA("within");
    steps(1);
    const CUresult result = CU(cuStreamQuery, stream);
    steps(0);
    NOTE("result", "%d", (int)result);
    LEVEL("popped", nvtxRangePop());
    LEVEL("popped_last", nvtxRangePop());
    LEVEL("pushed", nvtxRangePushA("behind"));
    nvtxRangePop();
    return unused;
}

/* On a stack of its own, at one place of the library alone, another one in each thread: while a
 * thread's first range is pushed the handler pushes one too, or while its first call is made it
 * ends the range that is open. */
static long once_at, once_seen;
static int once_pushes, once_level;
static void handler_once(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    if (!step_is_in(step_place(context), &stepped) || once_seen++ != once_at) return;
    handled++;
    once_level = once_pushes ? nvtxRangePushA("of the handler") : nvtxRangePop();
}

static void *interrupted_once(void *wrong)
{
    static char room[1 << 16];
    const stack_t alternate = {.ss_sp = room, .ss_size = sizeof room},
                  none = {.ss_flags = SS_DISABLE};
    sigaltstack(&alternate, NULL);
    if (!once_pushes) nvtxRangePushA("around");
    steps(1);
    if (once_pushes) nvtxRangePushA("around");
    else CU(cuStreamQuery, stream);
    steps(0);
    int open = once_pushes ? 1 + (handled && once_level >= 0) : handled && once_level >= 0 ? 0 : 1;
    nvtxRangePushA("behind");
    CU(cuStreamQuery, stream);
    nvtxRangePop();
    while (nvtxRangePop() >= 0) open--;
    if (open) *(long *)wrong += 1;
    sigaltstack(&none, NULL);
    return NULL;
}

static void handlers_once(const char *how)
{
    const struct sigaction action = {
        .sa_sigaction = handler_once, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    long wrong = 0, threads = 0;
    once_pushes = !strcmp(how, "pushes");
    step_find(&stepped);
    sigaction(SIGTRAP, &action, NULL);
    nvtxRangePushA("of the handler"); /* its text is known by then */
    nvtxRangePop();
    for (handled = 1; handled; once_at += once_pushes ? 9 : 4, threads++) {
        pthread_t thread;
        handled = once_seen = 0;
        THREAD(&thread, interrupted_once, &wrong);
        pthread_join(thread, NULL);
    }
    NOTE("threads", "%ld", threads);
    NOTE("wrong", "%ld", wrong);
}

static void handlers(const char *how)
{
    swaps = !strcmp(how, "swap");
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    pthread_t thread;
    step_find(&stepped);
    sigaction(SIGTRAP, &action, NULL);
    nvtxRangePushA("of the handler"); /* its text is known by then */
    nvtxRangePop();
    pthread_create(&thread, NULL, interrupted, NULL);
    pthread_join(thread, NULL);
    NOTE("handled", "%ld", handled);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "handlers", *more = argc > 2 ? argv[2] : "";
    app_start(0);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    if (!strcmp(how, "once")) handlers_once(more);
    else handlers(more);
    app_report();
    return 0;
}
