/*
 * tool_timeline CALLS [FILE_LIMIT [killed|unsure]]: a timeline of that many calls, made from
 * records as the writer thread makes it, at CUSTREAM_TRACE. FILE_LIMIT is the size in bytes beyond
 * which the system refuses to let a file grow, as a full disk would; `killed`: the process is,
 * after the first flush that fails; `unsure`: likewise, but the system has written what it refuses,
 * and refuses the next write too. Prints how often it flushed; the file must be whole after every
 * flush.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

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

static long unsure; /* the size; 0: all that is said of writes is true */
static int refusals;

ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t at)
{
    if (refusals && refusals--) return errno = EIO, -1;
    ssize_t done = syscall(SYS_pwritev, fd, pieces, count, at, 0);
    if (!unsure || at + done <= unsure) return done;
    unsure = 0, refusals = 1;
    return errno = EIO, -1;
}

int main(int argc, char **argv)
{
    long calls = argc > 1 ? atol(argv[1]) : 0, limit = argc > 2 ? atol(argv[2]) : 0;
    const char *how = argc > 3 ? argv[3] : "";
    if (!strcmp(how, "unsure")) unsure = limit, limit = 0;
    cs_options_read();
    cs_realdl_init();
    if (!cs_contexts_init() || !cs_streams_init() || !cs_events_init() || !cs_kernels_init())
        return 2;
    cs_clock_init();
    signal(SIGXFSZ, SIG_IGN); /* the writer thread has it blocked */
    if (limit && setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)limit, (rlim_t)limit})) return 2;
    if (!cs_tables_make(CS_TABLES_TRACE, "a test") || !cs_output_open(&cs_totals_teller)) return 3;
    struct cs_thread *thread = cs_thread_start();
    for (int i = 0; i < 20; i++) { /* that nobody destroys */
        struct cs_stream *stream = cs_pool_new(&cs_streams);
        stream->lane = 13 + (cs_u32)i;
        stream->call = CS_CALL_cuStreamCreate;
        cs_store(&stream->filled, true);
    }
    cs_name kernel = cs_name_add("_Z6kernelPfi");
    cs_clock_sync();
    cs_timeline_begin(CS_BEGIN_FILE);
    cs_output_flush();
    cs_u64 tick = cs_ticks();
    int flushes = 1;
    for (long i = 0; i < calls; i++) {
        struct cs_record r = {.begin = tick,
            .end = tick + 1000,
            .call = CS_CALL_cuLaunchKernel,
            .stream = cs_load(&cs_pool_slot(&cs_streams, (cs_u32)i % 20)->ref)};
        r.value[0] = kernel;
        r.value[1] = r.value[2] = r.value[3] = (cs_u64)1 << 32 | 1;
        cs_timeline_record(thread, &r);
        tick += 3000;
        if (i % 5000 == 4999) cs_output_flush(), flushes++;
        if (*how && cs_output_full()) _exit(0);
    }
    for (cs_u32 i = 0; i < 20; i++)
        cs_timeline_stream_end((struct cs_stream *)cs_pool_slot(&cs_streams, i),
            tick); /* their lives end with the process */
    cs_output_finish();
    printf("%d flushes\n", flushes + 1);
    return 0;
}
