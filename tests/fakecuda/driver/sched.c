/*
 * The scheduler: streams with pending operations, and when each may go on.
 *
 * Nobody simulates a device step by step. An operation has the time at which its predecessors
 * ended; a kernel ends its duration later, all else at once, so a chain of them has exact times
 * however late a thread wakes up to look. Whoever holds the lock may advance all streams: a call
 * that enqueues, a thread that waits, or the worker thread, which exists only once something could
 * not run at once. Host functions run on one thread of their own, without the lock.
 *
 * Implicit order with the legacy stream follows from one sequence number per context: an operation
 * of the legacy stream waits for all earlier ones of blocking streams, and one of a blocking stream
 * for all earlier ones of the legacy stream.
 */
#include "tests/fakecuda/driver/fake.h"

#include <signal.h>
#include <time.h>

static struct fake_stream *busy;       /* streams with operations pending */
static uint64_t deadline = UINT64_MAX; /* of the last pass: when something running ends */
static uint64_t worker_wakes;          /* when the worker looks again; UINT64_MAX: when told to */
static bool worker_started, host_started;
static unsigned waiters, crowded; /* crowded: those of them that wait for room in a queue */
static pthread_cond_t worker_told, progress, host_told;
static struct fake_op *spare; /* operations to use again */

struct host_job {
    struct host_job *next;
    struct fake_work *work;
    struct fake_running *running;
    struct fake_work own_work; /* of a call that belongs to no stream */
    struct fake_running own_running;
};
static struct host_job *host_first, **host_last = &host_first;

uint64_t fake_real_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
uint64_t fake_now(void) { return UNLIKELY(fake_virtual) ? fake_clock_now() : fake_real_now(); }
uint64_t fake_gpu_now(void) { return UNLIKELY(fake_virtual) ? fake_clock_gpu() : fake_now(); }

__attribute__((constructor)) static void make_conditions(void)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&worker_told, &attributes);
    pthread_cond_init(&progress, &attributes);
    pthread_cond_init(&host_told, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void sleep_until(pthread_cond_t *condition, uint64_t time)
{
    struct timespec t = {(time_t)(time / 1000000000u), (long)(time % 1000000000u)};

    if (time == UINT64_MAX) pthread_cond_wait(condition, &fake_lock);
    else pthread_cond_timedwait(condition, &fake_lock, &t);
}

/* The driver's threads take no signals of the program's. */
static bool start_thread(void *(*body)(void *))
{
    sigset_t all, before;
    pthread_t thread;
    bool started;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    started = pthread_create(&thread, NULL, body, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started) pthread_detach(thread);
    return started;
}

static void *worker(void *unused)
{
    (void)unused;
    FAKE_LOCKED;
    for (;;) {
        worker_wakes = 0; /* looking already */
        fake_advance();
        worker_wakes = deadline;
        sleep_until(&worker_told, deadline);
    }
    return NULL;
}

void fake_deadline(uint64_t time)
{
    if (time < deadline) deadline = time;
}

/* ---- Operations ---- */

static struct fake_op *op_new(struct fake_stream *stream, struct fake_work *work)
{
    struct fake_op *op = spare;

    if (op) spare = op->next;
    else op = malloc(sizeof *op);
    if (!op) abort();
    op->next = NULL;
    op->stream = stream;
    op->work = *work;
    op->running = (struct fake_running){0};
    op->done = NULL;
    op->sequence = ++stream->context->sequence;
    op->issued = fake_now();
    op->begins = 0;
    if (fake_tracing()) fake_trace_op(op);
    return op;
}

static uint64_t max_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* False while something implicit stands in the way of an operation with this number. */
static bool clear_for(const struct fake_stream *stream, uint64_t sequence)
{
    const struct fake_context *context = stream->context;

    if (fake_blocking(stream))
        return !context->legacy->head || context->legacy->head->sequence > sequence;
    if (!stream->legacy || !context->busy_blocking) return true;
    for (const struct fake_stream *s = busy; s; s = s->next_busy)
        if (s->context == context && fake_blocking(s) && s->head && s->head->sequence < sequence)
            return false;
    return true;
}

/* With CUSTREAM_FAKE_QUEUES: so many queues lead to a device, and operations of streams that share
 * one follow each other. */
static unsigned queue_of(const struct fake_stream *stream)
{
    return stream->trace_id % fake_queues;
}

static bool queue_clear_for(const struct fake_stream *stream, uint64_t sequence)
{
    if (!fake_queues) return true;
    for (const struct fake_stream *s = busy; s; s = s->next_busy)
        if (s != stream && s->context == stream->context && queue_of(s) == queue_of(stream) &&
            s->head && s->head->sequence < sequence)
            return false;
    return true;
}

static uint64_t queue_end(const struct fake_stream *stream)
{
    return fake_queues ? stream->context->queue_ends[queue_of(stream)] : 0;
}

/* With CUSTREAM_FAKE_FULL: a kernel that takes all threads of the device, as device.c tells of it,
 * has it for itself. */
static bool fills(const struct fake_op *op)
{
    enum { DEVICE_THREADS = 132 * 2048 };
    const CUDA_KERNEL_NODE_PARAMS *p = &op->work.kernel.params;

    if (!fake_full || op->work.type != WORK_KERNEL) return false;
    return (uint64_t)p->gridDimX * p->gridDimY * p->gridDimZ * p->blockDimX * p->blockDimY *
               p->blockDimZ >=
           DEVICE_THREADS;
}

static uint64_t implicit_end(const struct fake_stream *stream)
{
    if (stream->legacy) return stream->context->blocking_end;
    return fake_blocking(stream) ? stream->context->legacy->last_end : 0;
}

/* With a virtual clock: when the operation begins, by when it and the last one before it were
 * ready. What only orders others takes no time. */
static uint64_t begins_at(const struct fake_op *op, uint64_t before)
{
    switch (op->work.type) {
    case WORK_KERNEL:
    case WORK_COPY:
    case WORK_SET:
    case WORK_HOST:
    case WORK_GRAPH: return max_of(op->issued + FAKE_ISSUE_NS, before) + FAKE_BEHIND_NS;
    default: return max_of(op->issued, before);
    }
}

static void finish_op(struct fake_stream *stream, struct fake_op *op)
{
    stream->head = op->next;
    stream->pending--;
    if (!stream->head) stream->tail = NULL;
    stream->last_end = max_of(stream->last_end, op->running.end);
    if (fake_blocking(stream))
        stream->context->blocking_end = max_of(stream->context->blocking_end, op->running.end);
    if (op == stream->context->filling) {
        stream->context->filling = NULL;
        stream->context->filled_until = op->running.end;
    }
    if (fake_queues)
        stream->context->queue_ends[queue_of(stream)] = max_of(queue_end(stream), op->running.end);
    if (op->done) {
        op->done->done = true;
        op->done->time = op->running.end;
        fake_record_drop(op->done);
    }
    fake_work_drop(&op->work);
    op->next = spare;
    spare = op;
}

/* Measured: on a blocking stream a wait for an event is not behind the legacy stream, as work and
 * recordings are; but the legacy stream is behind it, and a wait on that is behind all of them. */
static bool waits_alone(const struct fake_op *op)
{
    return op->work.type == WORK_WAIT && fake_blocking(op->stream);
}

/* Runs the stream's operations as far as they go; true if one was finished. */
static bool run_stream(struct fake_stream *stream)
{
    bool finished = false;

    while (stream->head) {
        struct fake_op *op = stream->head;
        const bool alone = waits_alone(op);
        if ((!alone && !clear_for(stream, op->sequence)) || !queue_clear_for(stream, op->sequence))
            break;
        uint64_t before = max_of(
                     stream->last_end, max_of(alone ? 0 : implicit_end(stream), queue_end(stream))),
                 ready = op->begins
                             ?: fake_virtual ? begins_at(op, before)
                                             : max_of(op->issued, before);
        if (fills(op)) {
            if (stream->context->filling && stream->context->filling != op) break;
            stream->context->filling = op;
            ready = max_of(ready, stream->context->filled_until);
        }
        if (fake_virtual && ready > fake_gpu_now()) {
            fake_deadline(op->begins = ready);
            break;
        }
        if (!fake_work_step(&op->work, &op->running, ready)) break;
        finish_op(stream, op);
        finished = true;
    }
    return finished;
}

/* With a virtual clock, of what comes at one time what was put on its stream first goes first. */
static void busy_sort(void)
{
    struct fake_stream *rest = busy;

    for (busy = NULL; rest;) {
        struct fake_stream *stream = rest, **link = &busy;
        rest = rest->next_busy;
        while (*link && (*link)->head->sequence < stream->head->sequence)
            link = &(*link)->next_busy;
        stream->next_busy = *link;
        *link = stream;
    }
}

uint64_t fake_advance(void)
{
    bool again, progressed = false;

    do {
        if (fake_virtual) busy_sort();
        again = false;
        deadline = UINT64_MAX;
        for (struct fake_stream **link = &busy; *link;) {
            struct fake_stream *stream = *link;

            again |= run_stream(stream);
            if (stream->head) {
                link = &stream->next_busy;
                continue;
            }
            *link = stream->next_busy;
            if (fake_blocking(stream)) stream->context->busy_blocking--;
            if (stream->destroyed) fake_stream_release(stream);
        }
        progressed |= again;
    } while (again);
    if (progressed && waiters) pthread_cond_broadcast(&progress);
    if (deadline < worker_wakes && worker_wakes) pthread_cond_signal(&worker_told);
    return deadline;
}

static void make_busy(struct fake_stream *stream)
{
    stream->next_busy = busy;
    busy = stream;
    if (fake_blocking(stream)) stream->context->busy_blocking++;
    if (!worker_started && !fake_virtual) worker_started = start_thread(worker);
}

void fake_await_room(struct fake_stream *stream)
{
    while (stream->pending >= fake_depth && fake_depth) {
        fake_advance();
        if (stream->pending < fake_depth) break;
        waiters++, crowded++;
        sleep_until(&progress, deadline);
        waiters--, crowded--;
    }
    if (waiters) pthread_cond_broadcast(&progress); /* for fake_await_launchers() */
}

void fake_await_launchers(void)
{
    while (crowded) {
        waiters++;
        sleep_until(&progress, deadline);
        waiters--;
    }
}

void fake_enqueue(struct fake_stream *stream, struct fake_work *work, bool wait)
{
    struct fake_op *op = op_new(stream, work);
    struct fake_record *done = wait ? fake_record_new() : NULL;
    bool was_idle = !stream->head;

    if (done) op->done = fake_record_hold(done);
    if (stream->tail) stream->tail->next = op;
    else stream->head = op;
    stream->tail = op;
    stream->pending++;
    if (was_idle) {
        run_stream(stream);
        if (stream->head) make_busy(stream);
        if (busy) fake_advance();
    }
    if (done) {
        fake_wait(done);
        fake_record_drop(done);
    }
}

bool fake_idle(const struct fake_stream *stream)
{
    return !stream->head && clear_for(stream, UINT64_MAX);
}

bool fake_stream_done(const struct fake_stream *stream)
{
    if (!fake_idle(stream)) fake_advance();
    return stream->legacy ? fake_idle(stream) : !stream->head;
}

struct fake_record *fake_stream_tail(struct fake_stream *stream)
{
    if (!stream->tail) return NULL;
    if (!stream->tail->done) stream->tail->done = fake_record_new();
    return fake_record_hold(stream->tail->done);
}

void fake_wait(struct fake_record *record)
{
    if (UNLIKELY(fake_virtual)) {
        fake_clock_wait(record);
        return;
    }
    fake_record_hold(record);
    while (!record->done) {
        fake_advance();
        if (record->done) break;
        waiters++;
        sleep_until(&progress, deadline);
        waiters--;
    }
    fake_record_drop(record);
}

/* ---- Host functions ---- */

static void *host_thread(void *unused)
{
    (void)unused;
    FAKE_LOCKED;
    for (;;) {
        struct host_job *job = host_first;

        if (!job) {
            sleep_until(&host_told, UINT64_MAX);
            continue;
        }
        host_first = job->next;
        if (!host_first) host_last = &host_first;
        if (fake_virtual) fake_clock_host_begin();
        pthread_mutex_unlock(&fake_lock);
        if (job->work->host.callback)
            job->work->host.callback(job->work->host.hstream, CUDA_SUCCESS, job->work->host.data);
        else job->work->host.function(job->work->host.data);
        pthread_mutex_lock(&fake_lock);
        job->running->state = RUN_DONE;
        job->running->end = fake_now();
        free(job);
        fake_advance();
        if (fake_virtual) fake_clock_host_end(host_first);
    }
    return NULL;
}

static struct host_job *job_new(void)
{
    struct host_job *job = calloc(1, sizeof *job);
    if (!job) abort();
    return job;
}

static void submit(struct host_job *job)
{
    *host_last = job;
    host_last = &job->next;
    if (!host_started) host_started = start_thread(host_thread);
    pthread_cond_signal(&host_told);
}

void fake_host_submit(struct fake_work *work, struct fake_running *running)
{
    struct host_job *job = job_new();

    job->work = work;
    job->running = running;
    if (fake_virtual) fake_clock_host_due(running->start);
    submit(job);
}

void fake_host_call(CUhostFn function, void *data)
{
    struct host_job *job = job_new();

    job->own_work = (struct fake_work){.type = WORK_HOST, .host = {function, NULL, NULL, data}};
    job->work = &job->own_work;
    job->running = &job->own_running;
    submit(job);
}
