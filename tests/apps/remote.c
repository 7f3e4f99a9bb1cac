/*
 * remote: does what standard input says, one command a line, and answers each with a line: "ok" and
 * what there is to say, once it has been done. A case decides so what comes before what, and asks
 * or stops the process in between (tests/remote.py).
 *
 *   on T COMMAND           on worker thread T, 1 to 4; without it on the main thread
 *   create I, destroy I    stream of slot I; default streams are slots "legacy" and "own"
 *   launch I [N] [KERNEL]  N launches
 *   runtime I [N]          N sets by the CUDA runtime, which sees of CUPTI what the driver does not
 *   copy I, host I, sync I, all
 *   gate I, open           what comes behind the gate runs once it is opened
 *   event E, drop E, record E I, wait I E
 *   profiler start|stop
 *   context new C, set C, end C, none
 *   capture I, captured I
 *   push TEXT, pop, mark TEXT
 *   loop on [N]|off        the workers launch on streams of their own all the time, N times in a
 * millisecond or more (16) wave G N               while they do so: N launches of grid G by each of
 * them close                  every descriptor but the standard ones, and files of its own in their
 * place intact                 how many of those hold what was written client on|off another client
 * of CUPTI that wants kernels; off tells how many it got fork, exec [PROGRAM ARGUMENT], leave,
 * return
 */
#include "tests/apps/app.h"

#include <cupti_activity.h>
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>

CUresult CUDAAPI cuProfilerStart(
    void); /* of cudaProfiler.h, which not every package of headers has */
CUresult CUDAAPI cuProfilerStop(void);

enum { SLOTS = 16, WORKERS = 4, FILES = 300 };

static CUstream streams[SLOTS];
static CUevent events[SLOTS];
static CUcontext contexts[SLOTS];
static CUgraphExec graphs[SLOTS];
static volatile unsigned *gates[SLOTS];
static int gate_count, files[FILES], file_count;
static char **own_argv;
static _Atomic long functions;
static _Atomic int looping, loops, pace;

static CUstream stream_of(const char *slot)
{
    if (!strcmp(slot, "legacy")) return NULL;
    if (!strcmp(slot, "own")) return CU_STREAM_PER_THREAD;
    return streams[atoi(slot) % SLOTS];
}

static struct worker {
    char line[256];
    _Atomic int asked, left; /* launches of the wave */
} workers[WORKERS];
static _Atomic int grid; /* the wave's */

static void CUDA_CB function(void *unused) { (void)unused, functions++; }

/* --- commands; `w` are the words behind the command's, "" where there are no more --- */

static void create(char **w)
{
    OK(cuStreamCreate, &streams[atoi(w[0]) % SLOTS], CU_STREAM_NON_BLOCKING);
    printf(" %p", (void *)streams[atoi(w[0]) % SLOTS]);
}
static void destroy(char **w) { OK(cuStreamDestroy_v2, stream_of(w[0])); }
static void launch(char **w)
{
    CUfunction kernel = app_kernel(*w[2] ? w[2] : "empty_kernel");
    for (int i = 0, n = *w[1] ? atoi(w[1]) : 1; i < n; i++) LAUNCH(kernel, stream_of(w[0]));
}
static void runtime(char **w)
{
    void *library = dlopen("libcudart.so.13", RTLD_NOW);
    int (*set)(CUdeviceptr, int, size_t, CUstream) =
        (__typeof__(set))dlsym(library, "cudaMemsetAsync");
    CUdeviceptr device;
    OK(cuMemAlloc_v2, &device, 64);
    for (int i = 0, n = *w[1] ? atoi(w[1]) : 1; i < n; i++)
        if (set(device, i, 64, stream_of(w[0])))
            fprintf(stderr, "cudaMemsetAsync failed\n"), exit(6);
}
static void copy(char **w)
{
    static char host[64];
    CUdeviceptr device;
    OK(cuMemAlloc_v2, &device, sizeof host);
    OK(cuMemcpyHtoDAsync_v2, device, host, sizeof host, stream_of(w[0]));
}
static void host(char **w) { OK(cuLaunchHostFunc, stream_of(w[0]), function, NULL); }
static void sync_one(char **w) { OK(cuStreamSynchronize, stream_of(w[0])); }
static void all(char **w)
{
    (void)w;
    OK(cuCtxSynchronize);
}
static void gate(char **w) { gates[gate_count++ % SLOTS] = app_gate(stream_of(w[0])); }
static void open_gates(char **w)
{
    (void)w;
    while (gate_count) *gates[--gate_count] = 1;
}
static void event(char **w) { OK(cuEventCreate, &events[atoi(w[0]) % SLOTS], CU_EVENT_DEFAULT); }
static void drop(char **w) { OK(cuEventDestroy_v2, events[atoi(w[0]) % SLOTS]); }
static void record(char **w) { OK(cuEventRecord, events[atoi(w[0]) % SLOTS], stream_of(w[1])); }
static void wait_event(char **w)
{
    OK(cuStreamWaitEvent, stream_of(w[0]), events[atoi(w[1]) % SLOTS], 0);
}
static void profiler(char **w)
{
    if (!strcmp(w[0], "start")) OK(cuProfilerStart);
    else OK(cuProfilerStop);
}
static void context(char **w)
{
    CUcontext *c = &contexts[atoi(w[1]) % SLOTS];
    if (!strcmp(w[0], "new")) OK(cuCtxCreate_v2, c, 0, 0);
    if (!strcmp(w[0], "set")) OK(cuCtxSetCurrent, atoi(w[1]) ? *c : app_context);
    if (!strcmp(w[0], "end")) OK(cuCtxDestroy_v2, *c);
    if (!strcmp(w[0], "none")) OK(cuCtxSetCurrent, NULL);
}
static void capture(char **w)
{
    OK(cuStreamBeginCapture_v2, stream_of(w[0]), CU_STREAM_CAPTURE_MODE_RELAXED);
}
static void captured(char **w)
{
    CUgraph graph;
    OK(cuStreamEndCapture, stream_of(w[0]), &graph);
}
/* graph STREAM SLOT: what has been captured becomes an executable graph. replay SLOT STREAM: it is
 * launched. */
static void graph(char **w)
{
    CUgraph found;
    OK(cuStreamEndCapture, stream_of(w[0]), &found);
    OK(cuGraphInstantiateWithFlags, &graphs[atoi(w[1]) % SLOTS], found, 0);
}
static void replay(char **w) { OK(cuGraphLaunch, graphs[atoi(w[0]) % SLOTS], stream_of(w[1])); }
static void push(char **w) { nvtxRangePushA(w[0]); }
static void pop(char **w) { (void)w, nvtxRangePop(); }
static void mark(char **w) { nvtxMarkA(w[0]); }
static void say_functions(char **w) { (void)w, printf(" %ld", functions); }

static void close_all(char **w)
{
    char name[32];
    (void)w;
    for (int fd = 3; fd < 4096; fd++) close(fd);
    for (file_count = 0; file_count < FILES; file_count++) {
        snprintf(name, sizeof name, "own-%d.txt", file_count);
        files[file_count] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (files[file_count] < 0 || write(files[file_count], "mine\n", 5) != 5) exit(7);
    }
}
static void intact(char **w)
{
    char text[16];
    int n = 0;
    (void)w;
    for (int i = 0; i < file_count; i++)
        n += pread(files[i], text, sizeof text, 0) == 5 && !memcmp(text, "mine\n", 5);
    printf(" %d", n);
}

/* --- another client of CUPTI --- */

static __typeof__(&cuptiActivityGetNextRecord) next_record;
static _Atomic long kernels;

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = aligned_alloc(8, *size = 1 << 16), *most = 0;
}
static void CUPTIAPI completed(
    CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (valid && !next_record(buffer, valid, &record))
        kernels += record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    free(buffer);
}

#define CUPTI(name) ((__typeof__(&name))dlsym(library, #name))
static void client(char **w)
{
    void *library = dlopen("libcupti.so.13", RTLD_NOW);
    next_record = CUPTI(cuptiActivityGetNextRecord);
    int failed;
    if (!strcmp(w[0], "on")) {
        failed = CUPTI(cuptiActivityRegisterCallbacks)(requested, completed) ||
                 CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    } else {
        failed = CUPTI(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ||
                 CUPTI(cuptiActivityFlushAll)(0);
        printf(" %ld", kernels);
    }
    if (failed) fprintf(stderr, "CUPTI refused\n"), exit(6);
}

static void fork_child(char **w)
{
    int status;
    (void)w;
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        if (*w[0]) CU(cuCtxSetCurrent, NULL); /* of the calls that a closed window sees */
        int answer = (int)CU(cuStreamSynchronize, streams[0]);
        app_sleep_ms(*w[0] ? atoi(w[0]) : 0);
        _exit(answer == 3 ? 11 : 12);
    }
    printf(" %d", (int)child);
    if (!*w[0]) waitpid(child, &status, 0), printf(" %d", WEXITSTATUS(status));
}
static void exec_self(char **w)
{
    printf(" exec\n");
    fflush(stdout);
    execv(*w[0] ? w[0] : own_argv[0], *w[0] ? (char *[]){w[0], w[1], NULL} : own_argv);
}
static void leave(char **w) { _exit(atoi(w[0])); }
static void finish(char **w) { exit(atoi(w[0])); }
static void set_loop(char **w)
{
    pace = atoi(w[1]) > 0 ? atoi(w[1]) : 16;
    looping = !strcmp(w[0], "on");
    while (loops != (looping ? WORKERS : 0)) app_sleep_ms(1);
}

static void wave(char **w)
{
    grid = atoi(w[0]);
    for (int i = 0; i < WORKERS; i++) workers[i].left = atoi(w[1]);
    for (int i = 0; i < WORKERS; i++)
        while (workers[i].left) app_sleep_ms(1);
}

static const struct command {
    const char *name;
    void (*run)(char **words);
} commands[] = {
    {"create", create},
    {"destroy", destroy},
    {"launch", launch},
    {"runtime", runtime},
    {"copy", copy},
    {"host", host},
    {"sync", sync_one},
    {"all", all},
    {"gate", gate},
    {"open", open_gates},
    {"event", event},
    {"drop", drop},
    {"record", record},
    {"wait", wait_event},
    {"profiler", profiler},
    {"context", context},
    {"capture", capture},
    {"captured", captured},
    {"push", push},
    {"pop", pop},
    {"mark", mark},
    {"functions", say_functions},
    {"close", close_all},
    {"graph", graph},
    {"replay", replay},
    {"intact", intact},
    {"fork", fork_child},
    {"exec", exec_self},
    {"leave", leave},
    {"return", finish},
    {"loop", set_loop},
    {"client", client},
    {"wave", wave},
};

static void run(char *line)
{
    char *words[8] = {"", "", "", "", "", "", "", ""}, *rest = line;
    int n = 0;
    for (char *word; n < 8 && (word = strsep(&rest, " \n"));)
        if (*word) words[n++] = word;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(commands[i].name, words[0])) return commands[i].run(words + 1);
    fprintf(stderr, "no command %s\n", words[0]);
    exit(5);
}

/* --- workers --- */

static void *work(void *which)
{
    struct worker *own = which;
    CUstream stream = NULL;
    for (;; app_sleep_ms(1)) {
        if (own->asked) run(own->line), own->asked = 0;
        if (!looping) continue;
        OK(cuCtxSetCurrent, app_context);
        OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
        CUfunction empty = app_kernel("empty_kernel");
        loops++;
        for (long i = 0; looping; i++) {
            int of_wave = own->left;
            OK(cuLaunchKernel, empty, of_wave ? (unsigned)grid : 1, 1, 1, 32, 1, 1, 0, stream, NULL,
                NULL);
            if (of_wave) own->left--;
            if (i % pace == 0)
                app_sleep_ms(1); /* no flood: whatever is asked meanwhile is to be done soon on a
                                    busy machine too */
        }
        OK(cuStreamSynchronize, stream);
        OK(cuStreamDestroy_v2, stream);
        loops--;
    }
    return NULL;
}

static void on(struct worker *worker, const char *line)
{
    snprintf(worker->line, sizeof worker->line, "%s", line);
    worker->asked = 1;
    while (worker->asked) app_sleep_ms(1);
}

int main(int unused, char **argv)
{
    static char line[256];
    pthread_t id;
    (void)unused;
    own_argv = argv;
    app_start(0);
    for (int i = 0; i < WORKERS; i++) THREAD(&id, work, &workers[i]);
    printf("ok %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        int which = 0, at = 0;
        printf("ok");
        if (sscanf(line, "on %d %n", &which, &at) == 1 && which > 0 && which <= WORKERS)
            on(&workers[which - 1], line + at);
        else run(line);
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
