/* What rows.h declares but for the table: failures, the GPU, threads. */
#include "tests/api/rows.h"

#include <dlfcn.h>

int failures;
CUcontext context;
CUfunction empty;
char marks[256];

static uint32_t *gate_word; /* open up to this turn */
static uint32_t gate_turn = 1;
static unsigned mark_count;

/* The simulated GPU takes any image. */
static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n"
    ".visible .entry sleep_us_500()\n{\n.reg .pred %p;\n.reg .b64 %t<3>;\nmov.u64 %t0, "
    "%globaltimer;\nagain:\nmov.u64 %t1, %globaltimer;\n"
    "sub.u64 %t2, %t1, %t0;\nsetp.lt.u64 %p, %t2, 500000;\n@%p bra again;\nret;\n}\n";
static CUmodule module;

CUfunction kernel_of(const char *name)
{
    CUfunction function = NULL;
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

void start(void)
{
    OK(cuInit(0));
    context = primary_of(0);
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, ptx));
    empty = kernel_of("empty");
    OK(cuMemAllocHost((void **)&gate_word, sizeof *gate_word));
    *gate_word = 0;
}

int simulated(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    return dlsym(driver, "custream_fakecuda_version") != NULL;
}

void hold(CUstream stream)
{
    OK(cuStreamWaitValue32(
        stream, (CUdeviceptr)(uintptr_t)gate_word, gate_turn, CU_STREAM_WAIT_VALUE_GEQ));
}
void open_gate(void) { __atomic_store_n(gate_word, gate_turn++, __ATOMIC_RELEASE); }

static void put_mark(void *c)
{
    unsigned at = __atomic_fetch_add(&mark_count, 1, __ATOMIC_SEQ_CST);
    if (at < sizeof marks - 1) __atomic_store_n(&marks[at], (char)(uintptr_t)c, __ATOMIC_SEQ_CST);
}
void mark(CUstream stream, char c)
{
    OK(cuLaunchHostFunc(stream, put_mark, (void *)(uintptr_t)(unsigned char)c));
}

int marks_are(const char *expected)
{
    if (strcmp(marks, expected) == 0) return 1;
    fprintf(stderr, "marks: \"%s\", not \"%s\"\n", marks, expected);
    return 0;
}

static void *thread_main(void *function)
{
    ((void (*)(void))(uintptr_t)function)();
    return NULL;
}
void in_thread(void (*function)(void))
{
    pthread_t thread;

    OK(pthread_create(&thread, NULL, thread_main, (void *)(uintptr_t)function));
    pthread_join(thread, NULL);
}
