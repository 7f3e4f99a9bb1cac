#define _GNU_SOURCE
#include "shim/trace/writer.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

#include "shim/base/aide.h"
#include "shim/base/apart.h"
#include "shim/base/clock.h"
#include "shim/base/environment.h"
#include "shim/base/keep.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/memory.h"
#include "shim/base/options.h"
#include "shim/base/over.h"
#include "shim/base/plain.h"
#include "shim/base/rings.h"
#include "shim/base/watch.h"
#include "shim/base/worker.h"
#include "shim/gpu/backend.h"
#include "shim/out/output.h"
#include "shim/trace/annotation.h"
#include "shim/trace/closing.h"
#include "shim/trace/gpu.h"
#include "shim/trace/lanes.h"
#include "shim/trace/listener.h"
#include "shim/trace/merge.h"
#include "shim/trace/metrics.h"
#include "shim/trace/rotate.h"
#include "shim/trace/runtime.h"
#include "shim/trace/stream_life.h"
#include "shim/trace/thread_row.h"
#include "shim/trace/timeline.h"
#include "shim/trace/inside.h"
#include "shim/trace/totals.h"
#include "shim/trace/windows.h"

enum { PAUSE_BUSY_NS = 2000000, PAUSE_IDLE_NS = 25000000, FLUSH_NS = 500000000, LOOK_NS = 100000000, GPU_WAIT_MS = 2500, POPULATE_AFTER = 256 };

static struct cs_worker writer;
static struct cs_lock start_lock = CS_LOCK_INIT(CS_RANK_WRITER, "writer");
static bool blocks;
static _Atomic bool wanted, had; /* a file: calls are to be recorded; it is open, or was until the end */
static bool needed;              /* without a file too */
static bool told_full;           /* that the file takes no more */
CS_READ_MOSTLY void (*cs_writer_full)(void);
static bool apart;               /* the thread has descriptors of its own; it is the thread's */

bool cs_writer_alive(void) { return cs_worker_alive(&writer); }
bool cs_writer_was_killed(void) { return cs_worker_was_killed(&writer); }
bool cs_writer_failed(void) { return cs_load_acq(&writer.state) == CS_WORKER_FAILED; }
bool cs_writer_at_work(void) { return cs_worker_alive(&writer) && cs_load(&writer.state) != CS_WORKER_STARTING; }
bool cs_writer_blocks(void) { return blocks; }

/* --- one round --- */

static void take(struct cs_thread *thread, cs_u64 place)
{
    struct cs_rings *rings = cs_load(&cs_rings);
    cs_runtime_before(thread, place);
    if (rings) cs_rings_take(rings, thread->index, place);
    cs_timeline_record(thread, (const struct cs_record *)thread->ring.slots[place & thread->ring.mask]);
    cs_store_rel(&thread->ring.told, place + 1);
    cs_rotate_if_due();
}

static void has_been_read(struct cs_thread *thread, bool over)
{
    struct cs_thread_row *row = cs_thread_row(thread);
    const bool is_busy = cs_load(&thread->ring.tail) - thread->first > POPULATE_AFTER;
    if (is_busy && !over && !row->populated) row->populated = cs_ring_populate(&thread->ring); /* spares it the page faults of its ring's first lap */
    if (!over) return;
    cs_timeline_thread_end(thread);
    CS_TELL(thread_ends, thread);
    cs_thread_row_empty(thread);
    cs_thread_recycle(thread);
}

/* There is no file, and no record. */
static void recycle_threads(void)
{
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next)
        if (cs_load_acq(&t->state) == CS_THREAD_DONE) cs_thread_recycle(t);
}

/* Objects that ended: taken in one round, given back after the next, when no ring can hold a record from before. */
static cs_u32 ended_streams, ended_events, ended_contexts, lingering_streams;

static void release_ended(struct cs_pool *pool, cs_u32 first)
{
    if (first) cs_store(&pool->released, cs_ticks());
    while (first) {
        struct cs_object *object = cs_pool_slot(pool, first - 1);
        first = object->next;
        cs_pool_release(pool, object);
    }
}

/* A stream's lane ends after its last work, whose times come late: until then it stays among the ended ones. */
static void release_ended_streams(cs_u32 first)
{
    while (first) {
        struct cs_stream *stream = (struct cs_stream *)cs_pool_slot(&cs_streams, first - 1);
        cs_u32 next = stream->object.next;
        if (!cs_load(&had) || cs_match_settled(stream)) {
            if (cs_load(&had)) cs_timeline_stream_end(stream, cs_load(&stream->ended));
            cs_store(&cs_streams.released, cs_ticks());
            cs_pool_release(&cs_streams, &stream->object);
        } else {
            cs_store(&stream->object.next, lingering_streams);
            lingering_streams = first;
        }
        first = next;
    }
}

static void keep_clock(void)
{
    cs_u64 ticks, ns;
    double rate;
    cs_clock_point(&ticks, &ns, &rate);
    cs_rings_clock(ticks, ns, rate);
}

static size_t round_once(void)
{
    const bool file = cs_load(&had);
    cs_clock_sync();
    keep_clock();
    if (file) cs_inside_look();
    cs_windows_collect(file);
    if (file) cs_match_collect();
    else cs_gpu_discard();
    cs_u32 streams = cs_pool_take_ended(&cs_streams), events = cs_pool_take_ended(&cs_events), contexts = cs_pool_take_ended(&cs_contexts);
    CS_TELL(round_begins);
    size_t records = 0;
    if (!file) recycle_threads();
    else {
        records = cs_merge_pass(take, has_been_read);
        cs_gpu_trace_emit();
        CS_TELL(round);
    }
    cs_threads_rest();
    cs_u32 lingering = lingering_streams;
    lingering_streams = 0;
    release_ended_streams(ended_streams);
    release_ended_streams(lingering);
    release_ended(&cs_events, ended_events);
    release_ended(&cs_contexts, ended_contexts);
    ended_streams = streams, ended_events = events, ended_contexts = contexts;
    return file ? records + cs_match_behind() : 0;
}

/* --- the thread --- */

static void finish_file(void)
{
    for (int quiet = 0; quiet < 3;) { /* the ends of objects need two rounds */
        quiet = round_once() ? 0 : quiet + 1;
        if (cs_match_behind()) cs_gpu_flushes_pass();
    }
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next)
        if (cs_load_acq(&t->state) != CS_THREAD_FREE) cs_timeline_thread_end(t);
    cs_annotations_end();
    cs_windows_end();
    cs_gpu_trace_end();
    CS_TELL(end);
    cs_u64 now = cs_ticks();
    for (cs_u32 i = 0; i < cs_load(&cs_streams.high) && i < cs_streams.capacity; i++) {
        struct cs_stream *stream = (struct cs_stream *)cs_pool_slot(&cs_streams, i);
        cs_rotate_if_due();
        if (cs_load_acq(&stream->object.ref) && cs_load_acq(&stream->filled)) cs_timeline_stream_end(stream, cs_load(&stream->ended) ? cs_load(&stream->ended) : now);
    }
    cs_stream_lives_summed_up();
    cs_output_finish();
}

static void finish(void)
{
    if (cs_load(&had)) finish_file();
    cs_rings_end();
}

/* The head of the file goes to disk at once: from here on it is valid however the process ends. */
static bool begin(void)
{
    cs_totals_reset();
    const bool possible = apart && cs_tables_make(CS_TABLES_TRACE, "the trace, which begins late or not at all");
    /* Before the file, which tells of it. Whoever asked for the file may be apart too; if the aide is busy, a thread of the program starts it. */
    if (possible && cs_gpu_to_start() && cs_aide_is_free()) cs_aide_run(cs_gpu_start, GPU_WAIT_MS);
    if (!possible || !cs_output_open(&cs_totals_teller)) {
        cs_output_close();
        cs_store(&wanted, false);
        return false;
    }
    told_full = false;
    CS_TELL(begin);
    cs_timeline_begin(CS_BEGIN_FILE);
    cs_rings_shown_pid(cs_host_pid());
    cs_output_flush();
    cs_closing_file();
    cs_store_rel(&had, true);
    return true;
}

/* Its files have no number in the program, or there are none. */
static void become_apart(void)
{
    apart = cs_apart();
    if (!apart) cs_log(CS_LOG_ERROR, "the system allows neither close_range nor unshare (%s), which a trace needs; nothing is recorded", cs_plain_error(errno));
}

static void look_whether_it_is_over(void)
{
    static struct cs_deadline next;
    if (!cs_deadline_is_over(&next)) return;
    next = cs_deadline_in(LOOK_NS, PAUSE_BUSY_NS);
    if (cs_process_is_over(apart)) cs_aide_run(cs_aide_exit, 0);
}

/* There is nothing to write, and yet it counts among the process's threads. */
static void stand_by(void)
{
    for (; !cs_aide_was_killed(); look_whether_it_is_over()) nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
}

/* Before any thread has a ring. */
static void keep_rings(void)
{
    const struct cs_rings_plan plan = {.ring_bytes = cs_thread_ring_size(), .base_ns = cs_clock_wall_base_ns(), .calls = CS_CALL_COUNT, .layout = cs_threads_layout()};
    if (!cs_rings_begin(&plan)) return;
    keep_clock();
    cs_names_keep();
    cs_watch_rings(cs_rings_memfd());
}

static void *run(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "custream");
    become_apart();
    if (apart) cs_closing_begin();
    if (apart && (cs_load(&wanted) || !cs_option_is(CS_OPTION_TRACE, "off"))) keep_rings();
    if (cs_load(&wanted) && !begin() && !needed) {
        cs_rings_end();
        cs_worker_set(&writer, CS_WORKER_FAILED);
        stand_by();
        return NULL;
    }
    cs_worker_move(&writer, CS_WORKER_STARTING, CS_WORKER_RUNNING);
    struct cs_deadline flush = cs_deadline_in(FLUSH_NS, PAUSE_BUSY_NS);
    for (int now; (now = cs_load_acq(&writer.state)) != CS_WORKER_FINISHING && !cs_aide_was_killed();) {
        if (cs_load(&wanted) && !cs_load(&had)) begin();
        bool busy = round_once() > 1000;
        if (now == CS_WORKER_FLUSHING) round_once(); /* the first had all that was recorded by then; this one has its ends of objects, and what released its waits */
        const bool due = cs_deadline_is_over(&flush), asked = now == CS_WORKER_FLUSHING, metrics = asked || cs_metrics_due(flush.now);
        if (cs_load(&had) && (metrics || due)) cs_output_flush(), cs_closing_file(), flush = cs_deadline_in(FLUSH_NS, PAUSE_BUSY_NS);
        if (metrics) cs_metrics_write(cs_load(&had));
        if (asked && cs_closing_flushed()) cs_rings_end(), cs_metrics_end();
        if (cs_load(&had) && cs_output_full() && !told_full) {
            told_full = true;
            if (cs_writer_full) cs_writer_full();
        }
        if (asked) cs_worker_move(&writer, CS_WORKER_FLUSHING, CS_WORKER_RUNNING);
        look_whether_it_is_over();
        cs_worker_pause(&writer, busy ? PAUSE_BUSY_NS : PAUSE_IDLE_NS);
    }
    finish();
    cs_metrics_end();
    cs_closing_prepare(cs_load(&had));
    cs_worker_set(&writer, CS_WORKER_FINISHED);
    return NULL;
}

static bool start_locked(void)
{
    if (cs_load(&writer.state) != CS_WORKER_IDLE) return cs_writer_alive();
    blocks = cs_option_is(CS_OPTION_FULL, "block");
    /* Waits until the file is there: a program that ends the next moment still leaves one, and one that can't have it is told now. */
    if (!cs_aide_start_worker(&writer, run)) {
        if (cs_aide_lives()) cs_log(CS_LOG_ERROR, "cannot start the writer thread; nothing is recorded");
        cs_aide_watch();
    }
    return cs_writer_alive();
}

bool cs_writer_start(bool records, bool watches)
{
    CS_KEEP_ERRNO;
    if (CS_LIKELY(cs_writer_alive())) return true;
    cs_lock_take(&start_lock);
    if (cs_load(&writer.state) == CS_WORKER_IDLE) needed = watches, cs_store(&wanted, records), cs_environment_read();
    bool ok = start_locked();
    cs_lock_drop(&start_lock);
    return ok;
}

bool cs_writer_file(unsigned timeout_ms)
{
    if (cs_load_acq(&had)) return true;
    cs_store(&wanted, true);
    if (cs_load(&writer.state) == CS_WORKER_STARTING) return true;
    cs_writer_flush(timeout_ms);
    return cs_load_acq(&had);
}

/* Moves with each record that the writer reads, and with each flush. */
static cs_u64 progress(void)
{
    cs_u64 sum = cs_output_events_end();
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next) sum += cs_load(&t->ring.told);
    return sum;
}

bool cs_writer_finish(void) { return cs_worker_ask_for_long(&writer, CS_WORKER_FINISHING, CS_WRITER_STANDSTILL_S * 1000, progress); }
bool cs_writer_bring(void) { return cs_worker_ask_for_long(&writer, CS_WORKER_FLUSHING, CS_WRITER_STANDSTILL_S * 1000, progress); }
bool cs_writer_flush(unsigned timeout_ms) { return cs_worker_ask(&writer, CS_WORKER_FLUSHING, timeout_ms); }

void cs_writer_after_fork_in_child(void)
{
    cs_lock_forget(&start_lock);
    cs_store(&wanted, false);
    cs_store(&had, false);
    if (cs_writer_alive() || cs_load(&writer.state) == CS_WORKER_FINISHING) cs_store(&writer.state, CS_WORKER_IDLE);
    cs_output_forget();
    cs_closing_after_fork_in_child();
    cs_windows_after_fork_in_child();
    cs_metrics_after_fork_in_child();
    cs_stream_lives_forget();
    ended_streams = ended_events = ended_contexts = lingering_streams = 0;
}
