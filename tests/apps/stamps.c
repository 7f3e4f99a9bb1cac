/*
 * stamps: how often the shim reads the processor's counter in each kind of call, ten calls each:
 * "NAME COUNT" lines. Then a launch beside a capture.
 *
 * The counter is kept from this thread. So each reading is a fault, which is counted if it comes
 * from the shim, and then made good.
 */
#include "tests/apps/app.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <ucontext.h>

enum { CALLS = 10 };

static CUstream stream;
static CUevent event;
static CUdeviceptr memory;
static CUfunction empty;
static volatile long stamps;

static void counter(int is) { prctl(PR_SET_TSC, is, 0, 0, 0); }

/* rdtsc is 0f 31, rdtscp 0f 01 f9. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)registers[REG_RIP];
    const bool with_id = code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9;
    unsigned id = 0;
    Dl_info file;
    (void)info;
    counter(PR_TSC_ENABLE);
    if (!with_id && (code[0] != 0x0f || code[1] != 0x31)) {
        signal(number, SIG_DFL);
        return;
    }
    const unsigned long long now = __builtin_ia32_rdtscp(&id);
    if (dladdr(code, &file) && file.dli_fname && strstr(file.dli_fname, "libcustream_shim"))
        stamps++;
    registers[REG_RAX] = (greg_t)(now & 0xffffffff);
    registers[REG_RDX] = (greg_t)(now >> 32);
    if (with_id) registers[REG_RCX] = id;
    registers[REG_RIP] += with_id ? 3 : 2;
    counter(PR_TSC_SIGSEGV);
}

static void launch_on_stream(void) { LAUNCH(empty, stream); }
static void launch_on_default(void) { LAUNCH(empty, NULL); }
static void launch_on_own(void) { LAUNCH(empty, CU_STREAM_PER_THREAD); }
static void set_on_stream(void) { OK(cuMemsetD8Async, memory, 1, 16, stream); }
static void set_on_default(void) { OK(cuMemsetD8_v2, memory, 1, 16); }
static void record(void) { OK(cuEventRecord, event, stream); }
static void wait_for(void) { OK(cuStreamWaitEvent, stream, event, 0); }
static void query(void) { (void)CU(cuStreamQuery, stream); }
static void synchronize(void) { OK(cuStreamSynchronize, stream); }

static void all(void)
{
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {{"launch", launch_on_stream}, {"launch_default", launch_on_default},
        {"launch_own", launch_on_own}, {"set", set_on_stream}, {"set_default", set_on_default},
        {"record", record}, {"wait", wait_for}, {"synchronize", synchronize}, {"query", query}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        calls[i].call(); /* the first of its kind may have more to do */
        stamps = 0;
        counter(PR_TSC_SIGSEGV);
        for (int n = 0; n < CALLS; n++) calls[i].call();
        counter(PR_TSC_ENABLE);
        printf("%s %ld\n", calls[i].name, stamps);
    }
}

/* Work of a thread's own stream beside a capture: a policy for the order of all work does most
 * about that. */
static void beside_a_capture(void)
{
    CUgraph graph;
    OK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    launch_on_own();
    OK(cuStreamEndCapture, stream, &graph);
}

int main(void)
{
    app_start(0);
    empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate, &event, 0);
    OK(cuMemAlloc_v2, &memory, 16);
    sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, NULL);
    all();
    beside_a_capture();
    return 0;
}
