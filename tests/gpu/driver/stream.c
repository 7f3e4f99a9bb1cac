/* Streams, events, launches, host functions, values in memory, threads. */
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 4096 };

static void ask_about(const char *what, CUstream s)
{
    unsigned flags = 99;
    int priority = 99;
    unsigned long long id = 0;
    CUcontext ctx = NULL, current = NULL;
    CUgreenCtx green = NULL;
    CUdevice dev = -1;
    cuCtxGetCurrent(&current);
    fprintf(out, " %s\n", what);
    RUN(cuStreamGetFlags, s, &flags);
    RUN(cuStreamGetPriority, s, &priority);
    RUN(cuStreamGetId, s, &id);
    RUN(cuStreamGetCtx, s, &ctx);
    fprintf(out, "  flags %u priority %d id %s context %s\n", flags, priority,
        id ? "given" : "none", ctx == current ? "current" : "other");
    FOUND(cuStreamGetCtx_v2, s, &ctx, &green);
    FOUND(cuStreamGetDevice, s, &dev);
    FOUND(cuStreamGetGreenCtx, s, &green);
    fprintf(out, "  device %d green %s\n", dev, green ? "yes" : "no");
}

void section_stream(struct gpu *g)
{
    CUstream s[5] = {0};
    int least = 99, greatest = 99;
    unsigned long long ids[2] = {0, 0};
    (void)g;
    RUN(cuCtxGetStreamPriorityRange, &least, &greatest);
    fprintf(out, "  range %d %d\n", least, greatest);
    RUN(cuStreamCreate, &s[0], CU_STREAM_DEFAULT);
    RUN(cuStreamCreate, &s[1], CU_STREAM_NON_BLOCKING);
    RUN(cuStreamCreateWithPriority, &s[2], CU_STREAM_NON_BLOCKING, -100);
    RUN(cuStreamCreateWithPriority, &s[3], CU_STREAM_DEFAULT, 100);
    RUN(cuStreamCreateWithPriority, &s[4], CU_STREAM_NON_BLOCKING, greatest);
    const char *const names[] = {
        "blocking", "non-blocking", "priority -100", "priority 100", "greatest"};
    for (int i = 0; i < 5; i++) ask_about(names[i], s[i]);
    ask_about("null", NULL);
    ask_about("legacy", CU_STREAM_LEGACY);
    ask_about("per-thread", CU_STREAM_PER_THREAD);
    cuStreamGetId(s[0], &ids[0]);
    cuStreamGetId(s[1], &ids[1]);
    fprintf(out, " ids %s\n", ids[0] == ids[1] ? "equal" : "differ");

    fprintf(out, " attributes\n");
    CUstreamAttrValue value;
    memset(&value, 0, sizeof value);
    value.syncPolicy = CU_SYNC_POLICY_YIELD;
    RUN(cuStreamSetAttribute, s[0], CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
    RUN(cuStreamCopyAttributes, s[1], s[0]);
    memset(&value, 0, sizeof value);
    RUN(cuStreamGetAttribute, s[1], CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
    fprintf(out, "  policy %d\n", (int)value.syncPolicy);

    fprintf(out, " refused\n");
    RUN(cuStreamCreate, NULL, 0);
    RUN(cuStreamCreate, &s[0], 0xff00);
    RUN(cuStreamDestroy_v2, NULL);
    RUN(cuStreamWaitEvent, s[1], NULL, 0);
    RUN(cuEventRecord, NULL, s[1]);
    RUN(cuEventSynchronize, NULL);
    RUN(cuEventQuery, NULL);
    RUN(cuEventDestroy_v2, NULL);

    fprintf(out, " events\n");
    CUevent e[4] = {0};
    float ms = -1;
    RUN(cuEventCreate, &e[0], CU_EVENT_DEFAULT);
    RUN(cuEventCreate, &e[1], CU_EVENT_BLOCKING_SYNC);
    RUN(cuEventCreate, &e[2], CU_EVENT_DISABLE_TIMING);
    RUN(cuEventCreate, &e[3], 0xff00);
    RUN(cuEventQuery, e[0]);
    RUN(cuEventElapsedTime, &ms, e[0], e[1]);
    RUN(cuEventRecord, e[0], s[1]);
    RUN(cuStreamWaitEvent, s[2], e[0], CU_EVENT_WAIT_DEFAULT);
    RUN(cuStreamWaitEvent, s[2], e[0], 0x77);
    RUN(cuEventRecordWithFlags, e[1], s[2], CU_EVENT_RECORD_DEFAULT);
    RUN(cuEventRecordWithFlags, e[1], s[2], 0x77);
    RUN(cuEventRecord, e[2], NULL);
    RUN(cuEventSynchronize, e[1]);
    RUN(cuEventSynchronize, e[2]);
    RUN(cuEventQuery, e[1]);
    RUN(cuEventElapsedTime, &ms, e[0], e[1]);
    fprintf(out, "  time %s\n", ms >= 0 ? "given" : "none");
    FOUND(cuEventElapsedTime_v2, &ms, e[0], e[1]);
    RUN(cuEventElapsedTime, &ms, e[0], e[2]);
    RUN(cuEventDestroy, e[0]); /* the version of CUDA 2, still exported */
    RUN(cuEventDestroy_v2, e[1]);
    RUN(cuEventDestroy_v2, e[2]);
    for (int i = 1; i < 4; i++)
        RUN(cuStreamSynchronize, s[i]), RUN(cuStreamQuery, s[i]), RUN(cuStreamDestroy_v2, s[i]);
    RUN(cuStreamDestroy, s[4]);
}

static int host_calls[8], host_count;

static void host_func(void *arg)
{
    host_calls[__atomic_fetch_add(&host_count, 1, __ATOMIC_SEQ_CST) & 7] = (int)(intptr_t)arg;
}

static void callback(CUstream s, CUresult rc, void *arg)
{
    (void)s;
    host_func((void *)((intptr_t)arg * 100 + rc));
}

void section_launch(struct gpu *g)
{
    CUstream s[2];
    CUdeviceptr p = 0;
    RUN(cuMemAlloc_v2, &p, N * 4);
    RUN(cuStreamCreate, &s[0], CU_STREAM_DEFAULT);
    RUN(cuStreamCreateWithPriority, &s[1], CU_STREAM_NON_BLOCKING, -1);
    RUN(cuMemsetD32_v2, p, 5, N);
    RUN(cuCtxSynchronize);
    LAUNCH_ADD(g, p, N, 1, s[0]);
    RUN(cuStreamSynchronize, s[0]);
    LAUNCH_ADD(g, p, N, 2, NULL);
    RUN(cuStreamSynchronize, NULL);
    LAUNCH_ADD(g, p, N, 3, CU_STREAM_LEGACY);
    LAUNCH_ADD(g, p, N, 4, CU_STREAM_PER_THREAD);
    RUN(cuStreamSynchronize, CU_STREAM_PER_THREAD);

    struct {
        CUdeviceptr p;
        unsigned n, k;
    } packed = {p, N, 5};
    size_t size = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
        CU_LAUNCH_PARAM_END};
    RUN(cuLaunchKernel, g->add, N / 256, 1, 1, 256, 1, 1, 0, s[0], NULL, extra);

    CUlaunchAttribute attr[1];
    memset(attr, 0, sizeof attr);
    attr[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attr[0].value.priority = -1;
    CUlaunchConfig config = {N / 256, 1, 1, 256, 1, 1, 0, s[0], attr, 1};
    RUN(cuLaunchKernelEx, &config, g->add, ADD_ARGS(p, N, 6), NULL);
    config.attrs = NULL;
    config.numAttrs = 0;
    config.hStream = NULL;
    RUN(cuStreamSynchronize, s[0]);
    RUN(cuLaunchKernelEx, &config, g->add, ADD_ARGS(p, N, 7), NULL);
    RUN(cuCtxSynchronize);
    RUN(cuLaunchCooperativeKernel, g->add, N / 256, 1, 1, 256, 1, 1, 0, s[0], ADD_ARGS(p, N, 8));
    RUN(cuStreamSynchronize, s[0]);
    print_sum("added", p, N);

    fprintf(out, " refused\n");
    RUN(cuLaunchKernel, g->empty, 1, 1, 1, 5000, 1, 1, 0, s[0], NULL, NULL);
    RUN(cuLaunchKernel, g->empty, 0, 1, 1, 1, 1, 1, 0, s[0], NULL, NULL);
    RUN(cuLaunchKernel, g->empty, 1, 1, 1, 1, 1, 1, 1 << 30, s[0], NULL, NULL);
    config.blockDimX = 5000;
    RUN(cuLaunchKernelEx, &config, g->empty, NULL, NULL);
    RUN(cuLaunchCooperativeKernel, g->empty, 1 << 30, 1, 1, 1024, 1, 1, 0, s[0], NULL);

    fprintf(out, " host functions\n");
    RUN(cuLaunchHostFunc, s[0], host_func, (void *)1);
    RUN(cuStreamAddCallback, s[0], callback, (void *)2, 0);
    RUN(cuLaunchHostFunc, s[0], host_func, (void *)3);
    RUN(cuLaunchHostFunc, s[0], NULL, NULL);
    RUN(cuStreamAddCallback, s[0], callback, NULL, 7);
    RUN(cuStreamSynchronize, s[0]);
    RUN(cuLaunchHostFunc, NULL, host_func, (void *)4);
    RUN(cuStreamSynchronize, NULL);
    fprintf(out, "  called %d: %d %d %d %d\n", host_count, host_calls[0], host_calls[1],
        host_calls[2], host_calls[3]);

    fprintf(out, " spin on two streams\n");
    unsigned long long ns = 200000;
    for (int i = 0; i < 4; i++)
        RUN(cuLaunchKernel, g->spin, 1, 1, 1, 1, 1, 1, 0, s[i & 1], (void *[]){&ns}, NULL);
    RUN(cuCtxSynchronize);
    RUN(cuStreamDestroy_v2, s[0]);
    RUN(cuStreamDestroy_v2, s[1]);
    RUN(cuMemFree_v2, p);
}

void section_memop(struct gpu *g)
{
    CUstream s[2];
    CUevent e;
    CUdeviceptr p = 0;
    RUN(cuMemAlloc_v2, &p, N * 4);
    RUN(cuStreamCreate, &s[0], CU_STREAM_NON_BLOCKING);
    RUN(cuStreamCreate, &s[1], CU_STREAM_NON_BLOCKING);
    RUN(cuEventCreate, &e, CU_EVENT_DISABLE_TIMING);
    RUN(cuMemsetD32_v2, p, 0, N);
    RUN(cuCtxSynchronize);
    /* What follows the wait cannot run before the other stream writes: "not ready" is the only
     * right answer in between. */
    int held = RUN(cuStreamWaitValue32_v2, s[0], p, 1, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS;
    LAUNCH_ADD(g, p, N, 10, s[0]);
    RUN(cuEventRecord, e, s[0]);
    if (held) RUN(cuStreamQuery, s[0]), RUN(cuEventQuery, e);
    RUN(cuStreamWriteValue32_v2, s[1], p, 1, CU_STREAM_WRITE_VALUE_DEFAULT);
    RUN(cuStreamSynchronize, s[1]);
    RUN(cuEventSynchronize, e);
    RUN(cuStreamSynchronize, s[0]);
    RUN(cuStreamQuery, s[0]);

    RUN(cuStreamWriteValue64_v2, s[0], p + 8, 0x123456789abcdef0ull, CU_STREAM_WRITE_VALUE_DEFAULT);
    RUN(cuStreamWaitValue64_v2, s[0], p + 8, 0x123456789abcdef0ull, CU_STREAM_WAIT_VALUE_EQ);
    CUstreamBatchMemOpParams ops[3];
    memset(ops, 0, sizeof ops);
    ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[0].writeValue.address = p + 16;
    ops[0].writeValue.value = 77;
    ops[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[1].waitValue.address = p + 16;
    ops[1].waitValue.value = 77;
    ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    ops[2].operation = CU_STREAM_MEM_OP_BARRIER;
    RUN(cuStreamBatchMemOp_v2, s[0], 2, ops, 0);
    RUN(cuStreamBatchMemOp_v2, s[1], 3, ops, 0);
    RUN(cuStreamSynchronize, s[0]);
    RUN(cuStreamSynchronize, s[1]);
    print_sum("written", p, N);

    fprintf(out, " first versions\n"); /* most drivers refuse them; the values they would wait for
                                          stand there already */
    FOUND(cuStreamWriteValue32, s[0], p, 3, 0);
    FOUND(cuStreamWriteValue64, s[0], p + 8, 4, 0);
    FOUND(cuStreamBatchMemOp, s[0], 1, ops, 0);
    RUN(cuStreamWriteValue32_v2, s[0], p, 3, 0);
    RUN(cuStreamWriteValue64_v2, s[0], p + 8, 4, 0);
    FOUND(cuStreamWaitValue32, s[0], p, 3, CU_STREAM_WAIT_VALUE_EQ);
    FOUND(cuStreamWaitValue64, s[0], p + 8, 4, CU_STREAM_WAIT_VALUE_EQ);
    RUN(cuStreamSynchronize, s[0]);
    RUN(cuEventDestroy_v2, e);
    RUN(cuStreamDestroy_v2, s[0]);
    RUN(cuStreamDestroy_v2, s[1]);
    RUN(cuMemFree_v2, p);
}

struct worker {
    struct gpu *gpu;
    int number;
    char *text;
    size_t length;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    struct gpu *g = w->gpu;
    uint32_t host[N];
    CUdeviceptr p = 0;
    CUstream s = NULL;
    CUevent e = NULL;
    out = open_memstream(&w->text, &w->length);
    fprintf(out, " thread %d\n", w->number);
    for (int i = 0; i < N; i++) host[i] = (uint32_t)(i * w->number);
    RUN(cuCtxSetCurrent, g->ctx);
    RUN(cuMemAlloc_v2, &p, sizeof host);
    RUN(cuStreamCreateWithPriority, &s, CU_STREAM_NON_BLOCKING, -w->number);
    RUN(cuEventCreate, &e, CU_EVENT_DISABLE_TIMING);
    /* Explicit per-thread symbols, as a program compiled for per-thread default streams calls them.
     */
    RUN(cuMemcpyHtoD_v2_ptds, p, host, sizeof host);
    RUN(cuMemsetD32_v2_ptds, p, (unsigned)w->number, 16);
    RUN(cuLaunchKernel_ptsz, g->add, N / 256, 1, 1, 256, 1, 1, 0, NULL, ADD_ARGS(p, N, 1), NULL);
    RUN(cuEventRecord_ptsz, e, NULL);
    RUN(cuStreamWaitEvent_ptsz, s, e, 0);
    for (int i = 0; i < 200; i++)
        if (cuLaunchKernel(g->add, N / 256, 1, 1, 256, 1, 1, 0, s, ADD_ARGS(p, N, 1), NULL))
            fprintf(out, "  launch %d failed\n", i);
    RUN(cuMemsetD8Async_ptsz, p, 1, 4, s);
    RUN(cuMemcpyDtoHAsync_v2_ptsz, host, p, sizeof host, s);
    RUN(cuStreamSynchronize_ptsz, s);
    RUN(cuStreamSynchronize_ptsz, NULL);
    RUN(cuStreamQuery_ptsz, NULL);
    uint32_t sum = 0;
    for (int i = 0; i < N; i++) sum = sum * 31 + host[i];
    fprintf(out, "  sum %08x\n", sum);
    RUN(cuEventDestroy_v2, e);
    RUN(cuStreamDestroy_v2, s);
    RUN(cuMemFree_v2, p);
    fclose(out);
    return NULL;
}

void section_thread(struct gpu *g)
{
    pthread_t thread[4];
    struct worker w[4];
    for (int i = 0; i < 4; i++) {
        w[i] = (struct worker){.gpu = g, .number = i + 1};
        pthread_create(&thread[i], NULL, work, &w[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        fputs(w[i].text, out);
        free(w[i].text);
    }
    /* A child that uses no CUDA must end quietly and leave our trace alone. */
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(7);
    int status = 0;
    waitpid(child, &status, 0);
    fprintf(out, "  child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}
