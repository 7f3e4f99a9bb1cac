/*
 * What parts of the shim do on their own, linked from its objects.
 *
 *   parts lookup        stream object from handle, 10,000 live streams     -> lookup_ns
 *   parts writer FILE   records into a file, as the writer thread does it ->
 * writer_events_per_second, or writer_gz_... for a FILE ending in .gz, pftrace_events_per_second
 * for a .pftrace
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/resource.h>

#include "shim/base/memory.h"
#include "shim/base/clock.h"
#include "shim/base/options.h"
#include "shim/base/realdl.h"
#include "shim/object/event.h"
#include "shim/object/kernel.h"
#include "shim/object/stream.h"
#include "shim/out/output.h"
#include "shim/trace/timeline.h"
#include "shim/trace/totals.h"
#include "tests/bench/bench.h"

enum { STREAMS = 10000 };
static cs_u64 keys[STREAMS];

static void objects_init(void)
{
    cs_options_read();
    cs_realdl_init();
    cs_clock_init();
    if (!cs_contexts_init() || !cs_streams_init() || !cs_events_init() || !cs_kernels_init())
        exit(2);
    for (int i = 0; i < STREAMS; i++) {
        struct cs_stream *stream = cs_pool_new(&cs_streams);
        stream->key = keys[i] = 0x555500000000u + (cs_u64)i * 0x3d0;
        stream->lane = 13 + (cs_u32)i;
        cs_store(&cs_map_slot(&cs_stream_handles, stream->key, true)->value,
            cs_load(&stream->object.ref));
    }
}

static void bench_lookup(void)
{
    enum { N = 1 << 15, ROUNDS = 101 };
    static cs_u32 order[N];
    double found[ROUNDS];
    struct cs_thread *thread = cs_thread_start();
    cs_u64 sum = 0, seed = 1;
    for (int i = 0; i < N; i++)
        order[i] = (cs_u32)((seed = seed * 6364136223846793005u + 1) >> 33) % STREAMS;
    for (int r = 0; r < ROUNDS; r++) {
        double start = seconds(CLOCK_MONOTONIC);
        for (int i = 0; i < N; i++)
            sum += cs_stream_find(thread, (CUstream)(uintptr_t)keys[order[i]], false);
        double with = seconds(CLOCK_MONOTONIC) - start;
        start = seconds(CLOCK_MONOTONIC);
        for (int i = 0; i < N; i++) sum += keys[order[i]];
        found[r] = (with - (seconds(CLOCK_MONOTONIC) - start)) / N * 1e9;
    }
    if (!sum) exit(2);
    line("lookup_ns", median(found, ROUNDS), "ns");
}

/* A launch, a copy and an event record in turn, as programs mix them. */
static void fill(struct cs_record *r, cs_u64 i, cs_u64 tick, cs_name kernel)
{
    static const cs_u16 calls[] = {CS_CALL_cuLaunchKernel, CS_CALL_cuMemcpyHtoDAsync_v2,
        CS_CALL_cuLaunchKernel, CS_CALL_cuStreamSynchronize};
    cs_ref stream = (cs_ref)cs_map_get(&cs_stream_handles, keys[i % 8]);
    *r = (struct cs_record){tick, tick + 3000, calls[i % 4], 0, stream, 0,
        {kernel, 1 | (cs_u64)64 << 32, 1 | (cs_u64)256 << 32, 1 | (cs_u64)1 << 32}};
}

static void bench_writer(const char *path)
{
    enum { EVENTS = 3 << 20, BATCH = 1 << 14 };
    static struct cs_record records[BATCH];
    bool gz = !strcmp(path + strlen(path) - 3, ".gz"), packets = strstr(path, ".pftrace");
    cs_u64 tick = cs_ticks();
    struct cs_thread *thread = cs_thread_start();
    cs_name kernel = cs_name_add("_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi");
    if (!cs_tables_make(CS_TABLES_TRACE, "a test") || !cs_output_open(&cs_totals_teller)) exit(2);
    cs_clock_sync();
    cs_totals_reset();
    cs_timeline_begin(CS_BEGIN_FILE);
    cs_output_flush();
    double start = seconds(CLOCK_THREAD_CPUTIME_ID);
    for (cs_u64 i = 0; i < EVENTS; i++) {
        if (i % BATCH == 0)
            for (cs_u64 k = 0; k < BATCH; k++) fill(&records[k], k, tick += 9000, kernel);
        cs_timeline_record(thread, &records[i % BATCH]);
    }
    cs_output_finish();
    line(packets ? "pftrace_events_per_second"
         : gz    ? "writer_gz_events_per_second"
                 : "writer_events_per_second",
        EVENTS / (seconds(CLOCK_THREAD_CPUTIME_ID) - start), "1/s");
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    if (argc > 2) setenv("CUSTREAM_TRACE", argv[2], 1);
    objects_init();
    if (!strcmp(argv[1], "lookup")) bench_lookup();
    if (!strcmp(argv[1], "writer") && argc > 2) bench_writer(argv[2]);
    return 0;
}
