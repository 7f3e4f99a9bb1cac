/* How many bytes of stack calls take: each is made on a stack that was painted before. */
#include "tests/apps/app.h"

#include <nvtx3/nvToolsExt.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { SIZE = 1 << 20, PAINT = 0xa5, CALLS = 3 };

static unsigned char *stack;
static ucontext_t back;
static void (*call)(void);
static CUstream stream;
static CUfunction kernel;
static char text[8000];
static wchar_t wide[8000];

static void nothing(void) {}
static void first(void) { CU(cuDevicePrimaryCtxRetain, &app_context, 0); }
static void threads_first(void) { CU(cuCtxSetCurrent, app_context); }
static void launch(void) { CU(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL); }
static void create(void)
{
    CUstream made;
    if (CU(cuStreamCreate, &made, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS)
        CU(cuStreamDestroy_v2, made);
}

static void range(void) { nvtxRangePushA(text), nvtxRangePop(); }
static void wide_range(void) { nvtxRangePushW(wide), nvtxRangePop(); }

static void run_on_it(void) { call(); }

static long depth(void (*wanted)(void))
{
    ucontext_t there;
    long left = 0;
    memset(stack, PAINT, SIZE);
    call = wanted;
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = SIZE;
    there.uc_link = &back;
    makecontext(&there, run_on_it, 0);
    swapcontext(&back, &there);
    while (left < SIZE && stack[left] == PAINT) left++;
    return SIZE - left;
}

static void tell(const char *what, void (*wanted)(void))
{
    long took = 0;
    for (int i = 0; i < CALLS; i++) took = depth(wanted); /* the last: what is done once is done */
    NOTE(what, "%ld", took - depth(nothing));
}

static void *run(void *unused)
{
    NOTE("thread", "%ld", depth(threads_first) - depth(nothing));
    return unused;
}

int main(void)
{
    pthread_t thread;
    stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(cuInit, 0);
    NOTE("process", "%ld", depth(first) - depth(nothing));
    app_start(0);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    kernel = app_kernel("empty_kernel");
    tell("launch", launch);
    tell("create", create);
    memset(text, 'x', sizeof text - 1), wmemset(wide, L'x', 7999);
    tell("range", range);
    tell("wide", wide_range);
    THREAD(&thread, run, NULL);
    pthread_join(thread, NULL);
    return 0;
}
