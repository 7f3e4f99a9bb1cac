/*
 * sharing WHAT [ARGUMENT...]: creates and destroys streams and prints which handles it got,
 * numbered as they were first seen. What a pool makes of that is for the case to say.
 *
 *   script STEP...      cK creates a stream of kind K, dI destroys the I-th created, wI puts work
 * on it, bI and eI begin and end a capture on it, jI has it join the capture of the stream created
 * before it threads T ROUNDS N  T threads create, use and destroy at once, then N streams are made
 * and kept contexts            contexts that end in every way, with streams in them fork what a
 * child may do with them
 */
#include "tests/apps/app.h"

static CUstream seen[4096];
static int seen_count;
static int number(CUstream stream)
{
    for (int i = 0; i < seen_count; i++)
        if (seen[i] == stream) return i;
    seen[seen_count] = stream;
    return seen_count++;
}

static const struct {
    unsigned flags;
    int priority;
} kinds[] = {{CU_STREAM_DEFAULT, 0}, {CU_STREAM_NON_BLOCKING, 0}, {CU_STREAM_NON_BLOCKING, -1},
    {CU_STREAM_NON_BLOCKING, -5}, {CU_STREAM_NON_BLOCKING, -100}, {CU_STREAM_DEFAULT, 7}};

static CUresult create(int kind, CUstream *out)
{
    int priority = kinds[kind].priority;
    return kind ? CU(cuStreamCreateWithPriority, out, kinds[kind].flags, priority)
                : CU(cuStreamCreate, out, kinds[kind].flags);
}

/* Whether the stream is what was asked for. */
static int is_kind(CUstream stream, int kind)
{
    unsigned flags = 99;
    int priority = 99, wanted = kinds[kind].priority < -5  ? -5
                                : kinds[kind].priority > 0 ? 0
                                                           : kinds[kind].priority;
    OK(cuStreamGetFlags, stream, &flags);
    OK(cuStreamGetPriority, stream, &priority);
    return flags == kinds[kind].flags && priority == wanted;
}

static CUdeviceptr byte;

static void step(char what, int i)
{
    static CUstream made[4096];
    static int count;
    CUresult result = CUDA_SUCCESS;
    CUgraph graph = NULL;
    CUevent event;
    switch (what) {
    case 'c':
        result = create(i, &made[count]);
        if (result == CUDA_SUCCESS)
            printf("stream %d%s\n", number(made[count]),
                is_kind(made[count], i) ? "" : " of another kind");
        count++;
        break;
    case 'd': result = CU(cuStreamDestroy_v2, made[i]); break;
    case 'w': result = CU(cuMemsetD8Async, byte, 1, 1, made[i]); break;
    case 'b': result = CU(cuStreamBeginCapture_v2, made[i], CU_STREAM_CAPTURE_MODE_RELAXED); break;
    case 'e': result = CU(cuStreamEndCapture, made[i], &graph); break;
    case 'j':
        OK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
        OK(cuEventRecord, event, made[i - 1]);
        result = CU(cuStreamWaitEvent, made[i], event, 0);
        break;
    }
    printf("%c%d result %d\n", what, i, (int)result);
}

/* --- threads --- */

static int rounds;
static pthread_barrier_t start;
static void *creates(void *argument)
{
    const int kind = (int)(size_t)argument % 2;
    OK(cuCtxSetCurrent, app_context);
    pthread_barrier_wait(&start);
    for (int i = 0; i < rounds; i++) {
        CUstream stream[3];
        for (int k = 0; k < 3; k++)
            OK(cuStreamCreateWithPriority, &stream[k], kinds[kind].flags, 0);
        for (int k = 0; k < 3; k++) OK(cuMemsetD8Async, byte, 1, 1, stream[k]);
        for (int k = 0; k < 3; k++) OK(cuStreamDestroy_v2, stream[k]);
    }
    return NULL;
}

static void threads(int n, int keep)
{
    pthread_t ids[64];
    pthread_barrier_init(&start, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) THREAD(&ids[i], creates, (void *)(size_t)i);
    for (int i = 0; i < n; i++) pthread_join(ids[i], NULL);
    for (int kind = 0; kind < 2; kind++) {
        const int before = seen_count;
        for (int i = 0; i < keep; i++) {
            CUstream stream;
            OK(cuStreamCreateWithPriority, &stream, kinds[kind].flags, 0);
            number(stream);
        }
        printf("distinct %d\n", seen_count - before);
    }
}

/* --- contexts --- */

static void use(const char *what, int n)
{
    CUstream stream;
    CUcontext current, of;
    CUdeviceptr memory;
    int there = 0;
    OK(cuCtxGetCurrent, &current);
    OK(cuMemAlloc_v2, &memory, 16);
    for (int i = 0; i < n; i++) {
        OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
        OK(cuStreamGetCtx, stream, &of);
        there += of == current;
        OK(cuMemsetD8Async, memory, 1, 1, stream);
        OK(cuStreamSynchronize, stream);
    }
    printf("%s %d of %d in the current context\n", what, there, n);
    OK(cuStreamDestroy_v2, stream);
}

static void contexts(void)
{
    CUcontext a, b;
    for (int i = 0; i < 3; i++) {
        OK(cuCtxCreate_v2, &a, 0, 0);
        use("first", 5);
        OK(cuCtxCreate_v2, &b, 0, 0);
        use("second", 5);
        OK(cuCtxSetCurrent, a);
        use("first again", 2);
        OK(cuCtxDestroy_v2, b);
        OK(cuCtxDestroy_v2, a);
    }
    OK(cuCtxSetCurrent, app_context);
    use("primary", 5);
    OK(cuDevicePrimaryCtxReset_v2, 0);
    OK(cuDevicePrimaryCtxRelease_v2, 0); /* the reset left our reference */
    OK(cuDevicePrimaryCtxRetain, &app_context, 0);
    OK(cuCtxSetCurrent, app_context);
    use("primary after reset", 5);
    OK(cuDevicePrimaryCtxRelease_v2, 0);
    OK(cuDevicePrimaryCtxRetain, &app_context, 0);
    OK(cuCtxSetCurrent, app_context);
    use("primary once more", 5);
    CUgreenCtx green;
    OK(cuGreenCtxCreate, &green, NULL, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    OK(cuDevicePrimaryCtxRelease_v2, 0);
    use("primary of a green one", 5);
    OK(cuGreenCtxDestroy, green); /* which had the last reference */
    OK(cuDevicePrimaryCtxRetain, &app_context, 0);
    OK(cuCtxSetCurrent, app_context);
    use("primary after the green one", 5);
}

static void forked(void)
{
    CUstream stream = NULL, other = NULL;
    OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        SAY(cuStreamCreate, &other, CU_STREAM_DEFAULT);
        SAY(cuStreamDestroy_v2, stream);
        fflush(stdout);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %d\n", status);
    OK(cuMemsetD8Async, byte, 1, 1, stream);
    SAY(cuStreamDestroy_v2, stream);
}

int main(int argc, char **argv)
{
    app_start(0);
    void *memory;
    OK(cuMemAllocHost_v2, &memory, 64);
    byte = (CUdeviceptr)(size_t)memory;
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "script"))
        for (int i = 2; i < argc; i++) step(*argv[i], atoi(argv[i] + 1));
    else if (!strcmp(what, "threads"))
        rounds = atoi(argv[3]), threads(atoi(argv[2]), atoi(argv[4]));
    else if (!strcmp(what, "contexts")) contexts();
    else if (!strcmp(what, "fork")) forked();
    else return 2;
    return 0;
}
