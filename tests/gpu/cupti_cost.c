/*
 * What CUPTI costs a kernel launch, by what is asked of it, without custream: can it be had
 * cheaper?
 *
 *     build/gpu/cupti_cost [SECONDS [NAME...]]    all variants by turns, for 50 seconds or those; a
 * table for docs/measurements.md build/gpu/cupti_cost one NAME [TURNS]       one variant, in this
 * process: "NANOSECONDS KERNEL_RECORDS LAUNCHES"
 *
 * CUPTI slows a process for good once it is attached. So each variant is measured in a process of
 * its own, and processes of all variants take turns. A process launches an empty kernel in turns of
 * 500, which is less than the driver queues, and waits outside of what it measures; its figure is
 * the median of its turns. CUPTI_COUNT_LIB is the libcupti to open if none is found by its name.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <cupti.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    TURN = 500,
    TURNS = 120,
    TURNS_MAX = 4000,
    WARM_TURNS = 20,
    ROUNDS_MAX = 64,
    KIB = 1 << 10,
    MIB = 1 << 20,
    USUAL = 2 * MIB
};

/* What a variant asks for; every one but `none` attaches. */
enum {
    ATTACH = 1 << 0,
    KERNEL = 1 << 1,
    SERIAL = 1 << 2,
    COPY_SET = 1 << 3,
    DRIVER = 1 << 4,
    SINGLE = 1 << 5,
    RUNTIME = 1 << 6,
    EXTERNAL = 1 << 7,
    CALLBACKS = 1 << 8,
    GRAPH = 1 << 9,
    LATENCY = 1 << 10,
    LAUNCH_ATTRIBUTES = 1 << 11,
    CLOCK = 1 << 12,
    FLUSHES = 1 << 13,
    HARDWARE = 1 << 14,
    LATE = 1 << 15,
    OFF_AGAIN = 1 << 16,
    FINALIZED = 1 << 17,
};

static const struct variant {
    const char *name, *what;
    unsigned asks;
    size_t buffer;     /* bytes; 0: USUAL */
    unsigned flush_ms; /* cuptiActivityFlushPeriod; 0: not asked for */
    int attribute;     /* + 1, so that 0 is none */
    size_t value;
} variants[] = {
#define ATTRIBUTE(name, number) .attribute = CUPTI_ACTIVITY_ATTR_##name + 1, .value = number
    {"none", "no CUPTI", .asks = 0},
    {"attached", "attached, no kind", .asks = ATTACH},
    {"kernel", "CONCURRENT_KERNEL, buffers of 2 MiB", .asks = ATTACH | KERNEL},
    {"buffer-32K", "the same, buffers of 32 KiB", .asks = ATTACH | KERNEL, .buffer = 32 * KIB},
    {"buffer-256K", "256 KiB", .asks = ATTACH | KERNEL, .buffer = 256 * KIB},
    {"buffer-8M", "8 MiB", .asks = ATTACH | KERNEL, .buffer = 8 * MIB},
    {"buffer-32M", "32 MiB", .asks = ATTACH | KERNEL, .buffer = 32 * MIB},
    {"zeroed", "kernels, buffers given zeroed", .asks = ATTACH | KERNEL,
        ATTRIBUTE(ZEROED_OUT_ACTIVITY_BUFFER, 1)},
    {"per-thread", "kernels, PER_THREAD_ACTIVITY_BUFFER 1", .asks = ATTACH | KERNEL,
        ATTRIBUTE(PER_THREAD_ACTIVITY_BUFFER, 1)},
    {"not-per-thread", "kernels, PER_THREAD_ACTIVITY_BUFFER 0", .asks = ATTACH | KERNEL,
        ATTRIBUTE(PER_THREAD_ACTIVITY_BUFFER, 0)},
    {"device-32M", "kernels, DEVICE_BUFFER_SIZE 32 MiB", .asks = ATTACH | KERNEL,
        ATTRIBUTE(DEVICE_BUFFER_SIZE, 32 * MIB)},
    {"device-64", "kernels, 64 device buffers made ahead", .asks = ATTACH | KERNEL,
        ATTRIBUTE(DEVICE_BUFFER_PRE_ALLOCATE_VALUE, 64)},
    {"pinned", "kernels, device buffers in pinned host memory", .asks = ATTACH | KERNEL,
        ATTRIBUTE(MEM_ALLOCATION_TYPE_HOST_PINNED, 1)},
    {"copies", "kernels, MEMCPY, MEMSET", .asks = ATTACH | KERNEL | COPY_SET},
    {"single", "kernels, records of cuLaunchKernel alone", .asks = ATTACH | KERNEL | SINGLE},
    {"driver", "kernels, DRIVER: records of all driver calls", .asks = ATTACH | KERNEL | DRIVER},
    {"runtime", "kernels, RUNTIME", .asks = ATTACH | KERNEL | RUNTIME},
    {"external", "kernels, EXTERNAL_CORRELATION, an id pushed for each launch",
        .asks = ATTACH | KERNEL | DRIVER | EXTERNAL},
    {"callbacks", "kernels, a callback for cuLaunchKernel", .asks = ATTACH | KERNEL | CALLBACKS},
    {"callbacks-only", "a callback for cuLaunchKernel, no kind", .asks = ATTACH | CALLBACKS},
    {"graph", "kernels, GRAPH_TRACE", .asks = ATTACH | KERNEL | GRAPH},
    {"shim",
        "as custream: kernels, MEMCPY, MEMSET, GRAPH_TRACE, single calls, a flush every 200 ms",
        .asks = ATTACH | KERNEL | COPY_SET | GRAPH | SINGLE | FLUSHES},
    {"serial", "KERNEL, which lets kernels run one by one", .asks = ATTACH | SERIAL},
    {"latency", "kernels, latency time stamps", .asks = ATTACH | KERNEL | LATENCY},
    {"attributes", "kernels, launch attributes", .asks = ATTACH | KERNEL | LAUNCH_ATTRIBUTES},
    {"clock", "kernels, a clock of the client's", .asks = ATTACH | KERNEL | CLOCK},
    {"period-1", "kernels, flush period 1 ms", .asks = ATTACH | KERNEL, .flush_ms = 1},
    {"period-100", "flush period 100 ms", .asks = ATTACH | KERNEL, .flush_ms = 100},
    {"period-1000", "flush period 1000 ms", .asks = ATTACH | KERNEL, .flush_ms = 1000},
    {"flushes", "kernels, cuptiActivityFlushAll(0) every 200 ms",
        .asks = ATTACH | KERNEL | FLUSHES},
    {"hardware", "kernels, cuptiActivityEnableHWTrace", .asks = ATTACH | KERNEL | HARDWARE},
    {"late", "kernels, asked for when there is a context and work", .asks = ATTACH | KERNEL | LATE},
    {"off-again", "kernels for a while, then no kind", .asks = ATTACH | KERNEL | OFF_AGAIN},
    {"finalized", "kernels for a while, then cuptiFinalize", .asks = ATTACH | KERNEL | FINALIZED},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* --- CUPTI, of which a program alone needs none --- */

#define CUPTI(X) \
    X(cuptiActivityRegisterCallbacks) X(cuptiActivityEnable) X(cuptiActivityDisable) \
    X(cuptiActivityFlushAll) X(cuptiActivityGetNextRecord) \
    X(cuptiActivityFlushPeriod) X(cuptiActivitySetAttribute) X(cuptiActivityEnableDriverApi) \
    X(cuptiActivityPushExternalCorrelationId) \
    X(cuptiActivityPopExternalCorrelationId) X(cuptiActivityEnableLatencyTimestamps) \
    X(cuptiActivityEnableLaunchAttributes) \
    X(cuptiActivityRegisterTimestampCallback) X(cuptiActivityEnableHWTrace) X(cuptiSubscribe) \
    X(cuptiEnableCallback) X(cuptiFinalize)
#define POINTER(name) static __typeof__(&name) p_##name;
CUPTI(POINTER)

static unsigned long kernels;
static size_t buffer_size = USUAL;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Used again, so that the system's new pages are no part of what is measured. */
static void *spare[64];
static void CUPTIAPI buffer_asked(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = NULL;
    for (size_t i = 0; i < sizeof spare / sizeof *spare && !*buffer; i++)
        *buffer = __atomic_exchange_n(&spare[i], NULL, __ATOMIC_ACQ_REL);
    if (!*buffer && !posix_memalign((void **)buffer, 4096, buffer_size))
        memset(*buffer, 0, buffer_size);
    *size = *buffer ? buffer_size : 0;
    *most = 0;
}

static void CUPTIAPI buffer_done(
    CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (valid && p_cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
            record->kind == CUPTI_ACTIVITY_KIND_KERNEL)
            __atomic_fetch_add(&kernels, 1, __ATOMIC_RELAXED);
    memset(buffer, 0, valid);
    for (size_t i = 0; i < sizeof spare / sizeof *spare; i++) {
        void *nothing = NULL;
        if (__atomic_compare_exchange_n(
                &spare[i], &nothing, buffer, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return;
    }
    free(buffer);
}

static uint64_t CUPTIAPI own_clock(void) { return (uint64_t)now_ns(); }
static void CUPTIAPI called(
    void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId call, const void *data)
{
    (void)unused, (void)domain, (void)call, (void)data;
}

static void *flush_thread(void *unused)
{
    for (;; usleep(200000)) p_cuptiActivityFlushAll(0);
    return unused;
}

/* What CUPTI does not have is NULL, and the variant that wants it is left out. */
static int cupti_open(void)
{
    const char *path = getenv("CUPTI_COUNT_LIB");
    void *library = path && *path ? dlopen(path, RTLD_NOW) : NULL;
    if (!library) library = dlopen("libcupti.so.13", RTLD_NOW);
    if (!library) library = dlopen("libcupti.so.12", RTLD_NOW);
    if (!library) return fprintf(stderr, "cupti_cost: %s\n", dlerror()), 0;
#define LOOK_UP(name) p_##name = (__typeof__(p_##name))dlsym(library, #name);
    CUPTI(LOOK_UP)
    return 1;
}

/* The first thing that CUPTI refuses ends the variant. */
#define ASK(function, ...) \
    do { \
        const CUptiResult rc_ = p_##function ? p_##function(__VA_ARGS__) : \
        CUPTI_ERROR_NOT_SUPPORTED; \
        if (rc_ == CUPTI_SUCCESS) break; \
        printf("refused %s %d\n", #function, (int)rc_); \
        exit(3); \
    } while (0)

static void kinds(const struct variant *v, int on)
{
    static const struct {
        unsigned asks;
        CUpti_ActivityKind kind;
    } rows[] = {{KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL},
        {SERIAL, CUPTI_ACTIVITY_KIND_KERNEL}, {COPY_SET, CUPTI_ACTIVITY_KIND_MEMCPY},
        {COPY_SET, CUPTI_ACTIVITY_KIND_MEMSET}, {GRAPH, CUPTI_ACTIVITY_KIND_GRAPH_TRACE},
        {DRIVER, CUPTI_ACTIVITY_KIND_DRIVER}, {RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME},
        {EXTERNAL, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!(v->asks & rows[i].asks)) continue;
        if (on) ASK(cuptiActivityEnable, rows[i].kind);
        else ASK(cuptiActivityDisable, rows[i].kind);
    }
}

static void attach(const struct variant *v)
{
    static CUpti_SubscriberHandle subscriber;
    static pthread_t thread;
    size_t size = sizeof v->value, value = v->value;
    uint8_t small = (uint8_t)value;
    const int narrow = v->attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER + 1 ||
                       v->attribute == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER + 1 ||
                       v->attribute == CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED + 1;
    if (v->buffer) buffer_size = v->buffer;
    if (narrow) size = sizeof small;
    if (v->attribute)
        ASK(cuptiActivitySetAttribute, (CUpti_ActivityAttribute)(v->attribute - 1), &size,
            narrow ? (void *)&small : &value);
    if (v->asks & CLOCK) ASK(cuptiActivityRegisterTimestampCallback, own_clock);
    ASK(cuptiActivityRegisterCallbacks, buffer_asked, buffer_done);
    if (v->asks & HARDWARE) ASK(cuptiActivityEnableHWTrace, 1);
    if (v->asks & LATENCY) ASK(cuptiActivityEnableLatencyTimestamps, 1);
    if (v->asks & LAUNCH_ATTRIBUTES) ASK(cuptiActivityEnableLaunchAttributes, 1);
    if (v->asks & SINGLE)
        ASK(cuptiActivityEnableDriverApi, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 1);
    kinds(v, 1);
    if (v->asks & CALLBACKS) ASK(cuptiSubscribe, &subscriber, called, NULL);
    if (v->asks & CALLBACKS)
        ASK(cuptiEnableCallback, 1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
            CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
    if (v->flush_ms) ASK(cuptiActivityFlushPeriod, v->flush_ms);
    if (v->asks & FLUSHES) pthread_create(&thread, NULL, flush_thread, NULL);
}

/* --- one variant --- */

static CUfunction empty;
static CUstream stream;

static void must(const char *what, CUresult rc)
{
    if (rc == CUDA_SUCCESS) return;
    fprintf(stderr, "cupti_cost: %s: %d\n", what, (int)rc);
    exit(1);
}

static void set_up(void)
{
    static const char ptx[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n";
    CUdevice device;
    CUcontext context;
    CUmodule module;
    must("cuDeviceGet", cuDeviceGet(&device, 0));
    must("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, device));
    must("cuCtxSetCurrent", cuCtxSetCurrent(context));
    must("cuModuleLoadData", cuModuleLoadData(&module, ptx));
    must("cuModuleGetFunction", cuModuleGetFunction(&empty, module, "empty"));
    must("cuStreamCreate", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

/* Nanoseconds of a launch. */
static double turn(int pushes)
{
    uint64_t last;
    const double start = now_ns();
    for (int i = 0; i < TURN; i++) {
        if (pushes)
            p_cuptiActivityPushExternalCorrelationId(
                CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, (uint64_t)i);
        must("cuLaunchKernel", cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
        if (pushes)
            p_cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
    }
    const double end = now_ns();
    must("cuStreamSynchronize", cuStreamSynchronize(stream));
    return (end - start) / TURN;
}

static int ascending(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static int measure(const struct variant *v, int turns)
{
    static double ns[TURNS_MAX];
    const int pushes = (v->asks & EXTERNAL) != 0;
    if (v->asks && !cupti_open()) return 1;
    must("cuInit", cuInit(0));
    if (v->asks && !(v->asks & LATE)) attach(v);
    set_up();
    for (int i = 0; i < WARM_TURNS; i++) turn(pushes && !(v->asks & LATE));
    if (v->asks & LATE) attach(v);
    if (v->asks & OFF_AGAIN) kinds(v, 0);
    if (v->asks & FINALIZED) ASK(cuptiFinalize);
    if (v->asks) p_cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    for (int i = 0; i < WARM_TURNS; i++) turn(pushes);
    for (int i = 0; i < turns; i++) ns[i] = turn(pushes);
    if (v->asks && !(v->asks & FINALIZED))
        p_cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    printf("%.1f %lu %d\n", median(ns, turns), kernels, (turns + 2 * WARM_TURNS) * TURN);
    return 0;
}

/* --- all variants by turns --- */

struct found {
    double ns[ROUNDS_MAX];
    int count;
    double records;   /* of kernels, a launch */
    char refused[96]; /* why there is none */
};

static void run_one(const char *self, const struct variant *v, struct found *found)
{
    char line[128] = "", command[4096];
    double ns;
    unsigned long records;
    int launches;
    snprintf(command, sizeof command, "exec '%s' one %s", self, v->name);
    FILE *child = popen(command, "r");
    if (child && !fgets(line, sizeof line, child)) line[0] = 0;
    if (child) pclose(child);
    if (sscanf(line, "%lf %lu %d", &ns, &records, &launches) == 3) {
        found->ns[found->count++] = ns;
        found->records = (double)records / launches;
        return;
    }
    line[strcspn(line, "\n")] = 0;
    snprintf(found->refused, sizeof found->refused, "%.95s", *line ? line : "it failed");
}

static int is_wanted(const struct variant *v, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(v->name, names[i])) return 1;
    return !count;
}

static void table(struct found *found, char **names, int count)
{
    const double none = found[0].count ? median(found[0].ns, found[0].count) : 0;
    printf("| variant | what is asked of CUPTI | ns a launch | lowest to highest | over none | "
           "kernel records a launch | processes |\n");
    printf("| --- | --- | --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < VARIANTS; i++) {
        struct found *f = &found[i];
        if (!is_wanted(&variants[i], names, count)) continue;
        if (!f->count) {
            printf("| `%s` | %s | %s | | | | |\n", variants[i].name, variants[i].what,
                *f->refused ? f->refused : "no time was left");
            continue;
        }
        const double middle = median(f->ns, f->count);
        printf("| `%s` | %s | %.0f | %.0f to %.0f |", variants[i].name, variants[i].what, middle,
            f->ns[0], f->ns[f->count - 1]);
        if (none > 0) printf(" %.3f |", middle / none);
        else printf(" |");
        printf(" %.2f | %d |\n", f->records, f->count);
    }
}

static int measure_all(double seconds, char **names, int count)
{
    static struct found found[VARIANTS];
    char self[4000];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    const double begin = now_ns();
    double longest = 0;
    if (length < 0) return perror("cupti_cost"), 1;
    self[length] = 0;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        const double start = now_ns();
        if (round && start - begin + longest > seconds * 1e9) break;
        for (int n = 0; n < VARIANTS && now_ns() - begin < seconds * 1e9; n++) {
            const int i = (n + round * 7) % VARIANTS; /* another one first */
            if (is_wanted(&variants[i], names, count) && !*found[i].refused)
                run_one(self, &variants[i], &found[i]);
        }
        if (now_ns() - start > longest) longest = now_ns() - start;
    }
    table(found, names, count);
    return 0;
}

int main(int argc, char **argv)
{
    const int is_one = argc > 2 && !strcmp(argv[1], "one");
    const double seconds = argc > 1 && !is_one ? atof(argv[1]) : 50;
    const int turns = is_one && argc > 3 ? atoi(argv[3]) : TURNS;
    if (!is_one && seconds > 0)
        return measure_all(seconds, argv + (argc > 1 ? 2 : 1), argc > 2 ? argc - 2 : 0);
    for (int i = 0; i < VARIANTS && is_one && turns > 0 && turns <= TURNS_MAX; i++)
        if (!strcmp(variants[i].name, argv[2])) return measure(&variants[i], turns);
    return fprintf(stderr, "usage: cupti_cost [SECONDS [NAME...]] | cupti_cost one NAME [TURNS]\n"),
           2;
}
