/*
 * What a wrapped call costs, on a driver whose launch is an empty function (the simulated GPU with
 * CUSTREAM_FAKE_DIRECT=1), under the preload.
 *
 *   calls pass     tracing off: wrapper over direct call          -> passthrough_ns
 *   calls closed   the same outside of a window, as after ctl off -> closed_ns
 *   calls objects  the same under a policy for streams            -> steered_objects_ns
 *   calls steered  the same under a policy for default streams: on a stream, and on the default
 * stream -> steered_ns, steered_default_ns calls hooks    a recorded launch: as it is, beside a
 * hook of another kind, with one of its own, after both have gone -> hooks_none_ns, ... calls
 * record   recorded call, and the floor beside it         -> record_ns, record_floor_ns,
 * record_ratio, ... the same over a floor that nobody reads        -> record_floor_alone_ns,
 * record_alone_ratio calls threads  recorded calls on one thread and on two        ->
 * thread_one_ns, thread_two_ns (a call on each of them), thread_ratio calls writer   launches with
 * GPU times (without CUSTREAM_FAKE_DIRECT): what one core of the writer handles, and what they take
 * of the trace
 *                  -> writer_launches_per_second, trace_bytes_per_launch;
 * pftrace_launches_per_second, pftrace_bytes_per_launch for a .pftrace;
 *                     writer_first_launches_per_second, pftrace_first_...: of the first 262,144,
 * which each touch memory of the library's tables first calls rate     a million calls a second for
 * ten seconds; the trace's trailer then tells what was lost
 *
 * The direct pointer is read from the driver's symbol table, where no preload can change it.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/custream.h"
#include "shim/base/clock.h"
#include "shim/base/realdl.h"
#include "tests/bench/bench.h"

enum { CALLS = 10000, ROUNDS = 61 };

typedef __typeof__(&cuLaunchKernel) launch_fn;
static launch_fn wrapper, direct;
static CUfunction kernel;
static CUstream streams[2];
static CUcontext context;

static double launches(launch_fn launch, CUstream stream, clockid_t clock)
{
    double start = seconds(clock);
    for (int i = 0; i < CALLS; i++) launch(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
    return (seconds(clock) - start) / CALLS * 1e9;
}

/* Two time stamps and one 64-byte store to a ring as large as a thread's: what recording costs at
 * the least. */
enum { SLOTS = (4 << 20) / 64 };
struct floor_ring {
    struct slot {
        cs_u64 word[8];
    } __attribute__((aligned(64))) slots[SLOTS];
    _Atomic cs_u64 head; /* slots that were written */
    _Alignas(64) cs_u64 read;
};

static double floor_ns(struct floor_ring *ring)
{
    double start = seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < CALLS; i++) {
        cs_u64 begin = cs_ticks(), end = cs_ticks(), head = cs_load(&ring->head);
        ring->slots[head % SLOTS] = (struct slot){{begin, end, (cs_u64)i, 4, 5, 6, 7, 8}};
        cs_store_rel(&ring->head, head + 1);
    }
    return (seconds(CLOCK_MONOTONIC) - start) / CALLS * 1e9;
}

/* Reads each slot once, as the writer does, and as often. */
static void *floor_reader(void *arg)
{
    struct floor_ring *ring = arg;
    for (volatile cs_u64 sum = 0;; usleep(2000))
        for (; ring->read < cs_load_acq(&ring->head); ring->read++)
            for (int i = 0; i < 8; i++) sum += ring->slots[ring->read % SLOTS].word[i];
    return NULL;
}

static void rest(void)
{
    usleep(30000);
} /* the writer empties the ring: its work is not the caller's */

static void bench_pass(const char *name, CUstream stream)
{
    double over[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double a = launches(direct, stream, CLOCK_MONOTONIC),
               b = launches(wrapper, stream, CLOCK_MONOTONIC);
        over[i] = b - a;
    }
    line(name, median(over, ROUNDS), "ns");
}

/* The cost of recording is the recorded call less the driver's own function, which is a few ns here
 * and nobody's but the double's. */
struct recorded {
    double call, own, bare, ratio; /* ns, of the medians */
};
static struct recorded record_over(struct floor_ring *ring)
{
    double call[ROUNDS], bare[ROUNDS], own[ROUNDS], ratio[ROUNDS];
    for (int i = 0; i < 8; i++)
        launches(wrapper, streams[0], CLOCK_MONOTONIC), floor_ns(ring),
            rest(); /* both rings touched once round */
    for (int i = 0; i < ROUNDS; i++) {
        rest();
        floor_ns(ring), launches(wrapper, streams[0], CLOCK_MONOTONIC); /* awake again */
        bare[i] = floor_ns(ring);
        own[i] = launches(direct, streams[0], CLOCK_MONOTONIC);
        call[i] = launches(wrapper, streams[0], CLOCK_MONOTONIC);
        ratio[i] = (call[i] - own[i]) / bare[i];
    }
    return (struct recorded){
        median(call, ROUNDS), median(own, ROUNDS), median(bare, ROUNDS), median(ratio, ROUNDS)};
}

static void bench_record(void)
{
    static struct floor_ring alone, read;
    pthread_t reader;
    const struct recorded over_alone = record_over(&alone);
    if (pthread_create(&reader, NULL, floor_reader, &read)) exit(2);
    const struct recorded over_read = record_over(&read);
    line("record_ns", over_read.call, "ns");
    line("record_direct_ns", over_read.own, "ns");
    line("record_floor_ns", over_read.bare, "ns");
    line("record_ratio", over_read.ratio, "ratio");
    line("record_floor_alone_ns", over_alone.bare, "ns");
    line("record_alone_ratio", over_alone.ratio, "ratio");
}

typedef __typeof__(&custream_register_hook) register_fn;
typedef __typeof__(&custream_unregister_hook) unregister_fn;

static void hook(custream_hook_info_t *info, void *count) { (void)info, ++*(long *)count; }

static double recorded_launch(void)
{
    double call[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        rest(), launches(wrapper, streams[0], CLOCK_MONOTONIC),
            call[i] = launches(wrapper, streams[0], CLOCK_MONOTONIC);
    return median(call, ROUNDS);
}

static void bench_hooks(void)
{
    static long calls;
    custream_hook_t destroy, enqueue;
    register_fn begin = (register_fn)dlsym(RTLD_DEFAULT, "custream_register_hook");
    unregister_fn end = (unregister_fn)dlsym(RTLD_DEFAULT, "custream_unregister_hook");
    line("hooks_none_ns", recorded_launch(), "ns");
    if (begin(CUSTREAM_HOOK_DESTROY, hook, &calls, &destroy)) exit(2);
    line("hooks_other_kind_ns", recorded_launch(), "ns");
    if (begin(CUSTREAM_HOOK_ENQUEUE, hook, &calls, &enqueue)) exit(2);
    line("hooks_ns", recorded_launch(), "ns");
    if (!calls || end(destroy) || end(enqueue)) exit(2);
    line("hooks_gone_ns", recorded_launch(), "ns");
}

static pthread_barrier_t together;
static double per_call[2];

static void *one_thread(void *index)
{
    long i = (long)index;
    ((__typeof__(&cuCtxSetCurrent))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuCtxSetCurrent"))(
        context);
    launches(wrapper, streams[i], CLOCK_THREAD_CPUTIME_ID);
    rest();
    pthread_barrier_wait(&together);
    per_call[i] = launches(wrapper, streams[i], CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

static double on_threads(int n)
{
    pthread_t threads[2];
    pthread_barrier_init(&together, NULL, (unsigned)n);
    for (long i = 0; i < n; i++) pthread_create(&threads[i], NULL, one_thread, (void *)i);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    rest();
    return n == 1 ? per_call[0] : (per_call[0] + per_call[1]) / 2;
}

static void bench_threads(void)
{
    enum { N = 15 };
    double one[N], two[N], ratio[N];
    for (int i = 0; i < N; i++) {
        one[i] = on_threads(1);
        two[i] = on_threads(2);
        ratio[i] = two[i] / one[i];
    }
    line("thread_one_ns", median(one, N), "ns");
    line("thread_two_ns", median(two, N), "ns");
    line("thread_ratio", median(ratio, N), "ratio");
}

/* The processor time of the thread of that name. */
static double thread_seconds(const char *name)
{
    char path[300], comm[32];
    struct dirent *entry;
    double found = -1;
    DIR *threads = opendir("/proc/self/task");
    while (threads && found < 0 && (entry = readdir(threads))) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (fgets(comm, sizeof comm, file) && !strncmp(comm, name, strlen(name)) &&
            comm[strlen(name)] == '\n')
            found = seconds((clockid_t)(~(unsigned)atoi(entry->d_name) << 3 |
                                        6)); /* the kernel's number of a thread's clock */
        fclose(file);
    }
    if (threads) closedir(threads);
    if (found < 0) exit(2);
    return found;
}

/* Of the file, when all that was launched is in it: one flush brings the times, the next what they
 * end. Each adds a record of its own. */
static double trace_size(void)
{
    struct stat file;
    cuCtxSynchronize();
    for (int i = 0; i < 4; i++)
        ((__typeof__(&custream_trace_flush))dlsym(RTLD_DEFAULT, "custream_trace_flush"))();
    if (stat(getenv("CUSTREAM_TRACE"), &file)) exit(2);
    return (double)file.st_size;
}

/* As programs launch, one in 4 us, so that counters have their share. */
static void paced_launches(long count)
{
    double start = seconds(CLOCK_MONOTONIC);
    for (long i = 0; i < count; i++) {
        while (seconds(CLOCK_MONOTONIC) - start < (double)i * 4e-6) {}
        wrapper(kernel, 1, 1, 1, 32, 1, 1, 0, streams[i & 1], NULL, NULL);
    }
}

/* The library keeps that many launches, in a table that goes round. */
enum {
    KEPT_LAUNCHES = 262144,
    ROUND_OF_LAUNCHES = 50000,
    FIRST_ROUNDS = KEPT_LAUNCHES / ROUND_OF_LAUNCHES
};

static void launches_written(int n, double *rate, double *bytes)
{
    for (int i = 0; i < n; i++) {
        double size = trace_size(), start = thread_seconds("custream");
        paced_launches(ROUND_OF_LAUNCHES);
        double end = trace_size();
        rate[i] = ROUND_OF_LAUNCHES / (thread_seconds("custream") - start);
        bytes[i] = (end - size) / ROUND_OF_LAUNCHES;
    }
}

static void bench_writer(void)
{
    enum { N = 9 };
    double rate[N], bytes[N], first[FIRST_ROUNDS];
    launches_written(1, rate, bytes); /* wakes all up */
    launches_written(FIRST_ROUNDS, first, bytes);
    launches_written(1, rate, bytes); /* fills the table */
    launches_written(N, rate, bytes);
    const char *path = getenv("CUSTREAM_TRACE");
    const bool packets = path && strstr(path, ".pftrace");
    line(packets ? "pftrace_first_launches_per_second" : "writer_first_launches_per_second",
        median(first, FIRST_ROUNDS), "1/s");
    line(packets ? "pftrace_launches_per_second" : "writer_launches_per_second", median(rate, N),
        "1/s");
    line(
        packets ? "pftrace_bytes_per_launch" : "trace_bytes_per_launch", median(bytes, N), "bytes");
}

static void bench_rate(void)
{
    double start = seconds(CLOCK_MONOTONIC);
    for (long done = 0; done < 10000000;) {
        long due = (long)((seconds(CLOCK_MONOTONIC) - start) * 1e6);
        for (; done < due && done < 10000000; done++)
            wrapper(kernel, 1, 1, 1, 32, 1, 1, 0, streams[0], NULL, NULL);
        if (done >= due) usleep(100);
    }
}

int main(int argc, char **argv)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    struct cs_image image;
    CUmodule module;
    if (argc < 2 || !driver || !cs_image_find("libcuda.so.1", &image)) return 2;
    direct = (launch_fn)cs_image_symbol(&image, "cuLaunchKernel");
    wrapper = (launch_fn)dlsym(driver, "cuLaunchKernel");
    if (direct == wrapper) return fprintf(stderr, "calls: not under the preload\n"), 2;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "") || cuModuleGetFunction(&kernel, module, "bench") ||
        cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING) ||
        cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING))
        return fprintf(stderr, "calls: no driver\n"), 2;
    cs_clock_is_counter = true;
    if (!strcmp(argv[1], "pass")) bench_pass("passthrough_ns", streams[0]);
    if (!strcmp(argv[1], "closed")) bench_pass("closed_ns", streams[0]);
    if (!strcmp(argv[1], "objects")) bench_pass("steered_objects_ns", streams[0]);
    if (!strcmp(argv[1], "steered"))
        bench_pass("steered_ns", streams[0]), bench_pass("steered_default_ns", NULL);
    if (!strcmp(argv[1], "hooks")) bench_hooks();
    if (!strcmp(argv[1], "record")) bench_record();
    if (!strcmp(argv[1], "threads")) bench_threads();
    if (!strcmp(argv[1], "writer")) bench_writer();
    if (!strcmp(argv[1], "rate")) bench_rate();
    return 0;
}
