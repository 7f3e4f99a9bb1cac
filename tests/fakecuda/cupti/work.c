/*
 * Work of the GPU. It is described when it is enqueued, which also decides whether it is recorded
 * at all, gets its times when it ends, and becomes a record in one of the client's buffers when the
 * worker or a flush comes by: only then may the client be called.
 */
#include "tests/fakecuda/cupti/fake_cupti.h"

#include <stdio.h>

struct token {
    struct token *next, **link; /* in `pending`; `next` also in `finished` */
    struct fake_trace_work work;
    uint32_t correlation;
    unsigned generation;
    CUpti_ActivityKind kind; /* of its record; INVALID: none is wanted */
    uint64_t queued, start, end;
    bool nodes;   /* of a graph's launch: its nodes are recorded one by one */
    bool written; /* by a forced flush, before its end */
};

static pthread_mutex_t drain = PTHREAD_MUTEX_INITIALIZER; /* held while records are written, so that
                                                             a flush waits for the worker */
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER; /* guards the lists and the names */
static struct token *pending, *finished, **last_finished = &finished;
bool cupti_latency;

/* A record's name outlives the module, so each name is kept once for ever. */
static const char *keep(const char *name)
{
    static struct kept {
        struct kept *next;
        char name[];
    } *names[1024];
    uint32_t hash = 2166136261u;
    struct kept **link;

    for (const char *c = name; *c; c++) hash = (hash ^ (uint8_t)*c) * 16777619u;
    for (link = &names[hash % COUNT_OF(names)]; *link; link = &(*link)->next)
        if (strcmp((*link)->name, name) == 0) return (*link)->name;
    *link = calloc(1, sizeof **link + strlen(name) + 1);
    if (!*link) abort();
    strcpy((*link)->name, name);
    return (*link)->name;
}

/* False for what was enqueued before cuptiFinalize. */
static bool current(const struct token *token)
{
    return token->generation == __atomic_load_n(&cupti_generation, __ATOMIC_RELAXED);
}

/* ---- Told by the driver, whose lock is held ---- */

static bool kernels_on(void)
{
    return cupti_on(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) || cupti_on(CUPTI_ACTIVITY_KIND_KERNEL);
}

static bool gpu_on(void)
{
    return kernels_on() || cupti_on(CUPTI_ACTIVITY_KIND_MEMCPY) ||
           cupti_on(CUPTI_ACTIVITY_KIND_MEMCPY2) || cupti_on(CUPTI_ACTIVITY_KIND_MEMSET) ||
           cupti_on(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
}

static bool is_peer(const struct fake_trace_work *work)
{
    const struct fake_trace_place *to = &work->to, *from = &work->from;
    bool host = to->memory <= FAKE_MEMORY_PINNED || from->memory <= FAKE_MEMORY_PINNED;
    return !host && to->device != from->device;
}

static CUpti_ActivityKind kind_of(const struct fake_trace_work *work)
{
    CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_INVALID;

    switch (work->kind) {
    case FAKE_TRACE_KERNEL:
        kind = cupti_on(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
                   ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
                   : CUPTI_ACTIVITY_KIND_KERNEL;
        break;
    case FAKE_TRACE_COPY: /* both by MEMCPY; MEMCPY2 alone brings nothing */
        if (!cupti_on(CUPTI_ACTIVITY_KIND_MEMCPY)) return kind;
        return is_peer(work) ? CUPTI_ACTIVITY_KIND_MEMCPY2 : CUPTI_ACTIVITY_KIND_MEMCPY;
    case FAKE_TRACE_SET: kind = CUPTI_ACTIVITY_KIND_MEMSET; break;
    case FAKE_TRACE_GRAPH: kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE; break;
    }
    return cupti_on(kind) ? kind : CUPTI_ACTIVITY_KIND_INVALID;
}

static bool faulty;          /* relaxed */
static uint64_t whole_since; /* GRAPH_TRACE has been on since then; 0: it is off. Relaxed */

/* CUPTI's other fault: a graph is launched that was instantiated while GRAPH_TRACE was off, and now
 * it is on. */
static void die_of_old_graph(const struct fake_trace_work *work)
{
    const uint64_t since = __atomic_load_n(&whole_since, __ATOMIC_RELAXED);
    if (!since || work->made >= since) return;
    fprintf(stderr,
        "custream simulated CUPTI: cuGraphLaunch of a graph from before GRAPH_TRACE was on\n");
    abort();
}

void cupti_fault_watch(bool flushed)
{
    const bool whole = cupti_on(CUPTI_ACTIVITY_KIND_GRAPH_TRACE),
               was = __atomic_load_n(&whole_since, __ATOMIC_RELAXED);
    if (whole != was)
        __atomic_store_n(
            &whole_since, whole ? cupti_read_clock(CLOCK_MONOTONIC) : 0, __ATOMIC_RELAXED);
    bool both = cupti_on(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) && cupti_on(CUPTI_ACTIVITY_KIND_MEMCPY2);
    if (flushed || !both) __atomic_store_n(&faulty, both, __ATOMIC_RELAXED);
}

void *cupti_work_new(struct fake_trace_call *call, void *launch, const struct fake_trace_work *work)
{
    struct token *parent = launch, *token;

    if (work->kind == FAKE_TRACE_GRAPH) die_of_old_graph(work);
    if (work->kind == FAKE_TRACE_GRAPH && work->bytes && __atomic_load_n(&faulty, __ATOMIC_RELAXED))
        cupti_driver()->break_down(CUDA_ERROR_LAUNCH_FAILED);
    if (parent ? !parent->nodes || !current(parent) : !gpu_on()) return NULL;
    token = calloc(1, sizeof *token);
    if (!token) abort();
    token->work = *work;
    token->kind = kind_of(work);
    token->generation = __atomic_load_n(&cupti_generation, __ATOMIC_RELAXED);
    token->correlation = parent ? parent->correlation : cupti_correlation(call);
    token->queued = parent ? parent->queued : call ? call->start : 0;
    token->nodes = work->kind == FAKE_TRACE_GRAPH && token->kind == CUPTI_ACTIVITY_KIND_INVALID;
    if (parent) {
        token->work.device = parent->work.device;
        token->work.context = parent->work.context;
        token->work.stream = parent->work.stream;
        token->work.graph = parent->work.graph;
    }
    LOCKED(queue);
    if (work->name) token->work.name = keep(work->name);
    token->next = pending;
    token->link = &pending;
    if (pending) pending->link = &token->next;
    pending = token;
    return token;
}

void cupti_work_done(void *done, uint64_t start, uint64_t end)
{
    struct token *token = done;

    {
        LOCKED(queue);
        *token->link = token->next;
        if (token->next) token->next->link = token->link;
        token->next = NULL;
        if (token->kind == CUPTI_ACTIVITY_KIND_INVALID || token->written || !current(token)) {
            free(token);
            return;
        }
        token->start = start;
        token->end = end;
        *last_finished = token;
        last_finished = &token->next;
    }
    cupti_worker_tell();
}

/* ---- Records ---- */

static uint8_t memory_kind(enum fake_trace_memory memory)
{
    static const uint8_t kinds[] = {CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE,
        CUPTI_ACTIVITY_MEMORY_KIND_PINNED, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
        CUPTI_ACTIVITY_MEMORY_KIND_MANAGED, CUPTI_ACTIVITY_MEMORY_KIND_ARRAY};
    return kinds[memory];
}

static uint8_t copy_kind(const struct fake_trace_work *work)
{
    enum { H, D, A };
    static const uint8_t kinds[3][3] = {
        [H] = {[H] = CUPTI_ACTIVITY_MEMCPY_KIND_HTOH,
            [D] = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
            [A] = CUPTI_ACTIVITY_MEMCPY_KIND_HTOA},
        [D] = {[H] = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH,
            [D] = CUPTI_ACTIVITY_MEMCPY_KIND_DTOD,
            [A] = CUPTI_ACTIVITY_MEMCPY_KIND_DTOA},
        [A] = {[H] = CUPTI_ACTIVITY_MEMCPY_KIND_ATOH,
            [D] = CUPTI_ACTIVITY_MEMCPY_KIND_ATOD,
            [A] = CUPTI_ACTIVITY_MEMCPY_KIND_ATOA},
    };
    static const uint8_t sides[] = {[FAKE_MEMORY_PAGEABLE] = H,
        [FAKE_MEMORY_PINNED] = H,
        [FAKE_MEMORY_DEVICE] = D,
        [FAKE_MEMORY_MANAGED] = D,
        [FAKE_MEMORY_ARRAY] = A};
    return is_peer(work) ? CUPTI_ACTIVITY_MEMCPY_KIND_PTOP
                         : kinds[sides[work->from.memory]][sides[work->to.memory]];
}

/* What all GPU records have under the same names. */
#define COMMON(t) \
    .kind = (t)->kind, .start = (t)->start, .end = (t)->end, .deviceId = (t)->work.device, \
    .contextId = (t)->work.context, \
    .streamId = (t)->work.stream, .correlationId = (t)->correlation, .graphId = (t)->work.graph
#define COPY(t) \
    COMMON(t), .copyKind = copy_kind(&(t)->work), .srcKind = memory_kind((t)->work.from.memory), \
    .dstKind = memory_kind((t)->work.to.memory), \
    .flags = (t)->work.asynchronous ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0, .bytes = \
    (t)->work.bytes, .graphNodeId = (t)->work.node, \
    .channelID = 2, .channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY

static void write_kernel(const struct token *t)
{
    const struct fake_trace_work *w = &t->work;
    CUpti_ActivityKernel10 record = {COMMON(t), .completed = t->end, .gridX = (int32_t)w->grid[0],
        .gridY = (int32_t)w->grid[1], .gridZ = (int32_t)w->grid[2], .blockX = (int32_t)w->block[0],
        .blockY = (int32_t)w->block[1], .blockZ = (int32_t)w->block[2],
        .dynamicSharedMemory = (int32_t)w->shared, .registersPerThread = 16,
        .gridId = t->correlation, .name = w->name, .graphNodeId = w->node, .channelID = 1,
        .channelType = CUPTI_CHANNEL_TYPE_COMPUTE};

    record.cacheConfig.config.executed = 1;
    if (cupti_latency && t->start) {
        record.queued = t->queued;
        record.submitted = cupti_convert(w->issued);
    }
    cupti_write(&cupti_common, &record, sizeof record);
}

static void write_copy(const struct token *t)
{
    if (t->kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {
        const struct fake_trace_place *to = &t->work.to, *from = &t->work.from;
        CUpti_ActivityMemcpyPtoP4 record = {COPY(t), .srcDeviceId = from->device,
            .srcContextId = from->context, .dstDeviceId = to->device, .dstContextId = to->context};
        cupti_write(&cupti_common, &record, sizeof record);
    } else {
        CUpti_ActivityMemcpy6 record = {COPY(t), .copyCount = 1};
        cupti_write(&cupti_common, &record, sizeof record);
    }
}

static void write_set(const struct token *t)
{
    CUpti_ActivityMemset4 record = {COMMON(t), .value = t->work.value, .bytes = t->work.bytes,
        .memoryKind = memory_kind(t->work.to.memory),
        .flags = t->work.asynchronous ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0,
        .graphNodeId = t->work.node, .channelID = 1, .channelType = CUPTI_CHANNEL_TYPE_COMPUTE};
    cupti_write(&cupti_common, &record, sizeof record);
}

static void write_graph(const struct token *t)
{
    CUpti_ActivityGraphTrace2 record = {
        COMMON(t), .endDeviceId = t->work.device, .endContextId = t->work.context};
    cupti_write(&cupti_common, &record, sizeof record);
}

static void write_work(const struct token *t)
{
    switch (t->work.kind) {
    case FAKE_TRACE_KERNEL: write_kernel(t); break;
    case FAKE_TRACE_COPY: write_copy(t); break;
    case FAKE_TRACE_SET: write_set(t); break;
    case FAKE_TRACE_GRAPH: write_graph(t); break;
    }
}

/* CUSTREAM_FAKE_CUPTI_OVERLAP: a kernel that follows another on its stream begins in the middle of
 * it. */
static void overlap(struct token *token)
{
    enum { GAP_NS = 10000 };
    static struct before {
        uint32_t context, stream;
        uint64_t start, end;
    } streams[256];
    struct before *before = streams;
    uint64_t start = token->start;

    for (; before < streams + COUNT_OF(streams) - 1 && before->context; before++)
        if (before->context == token->work.context && before->stream == token->work.stream) break;
    if (before->end && start >= before->end && start - before->end <= GAP_NS)
        token->start = before->start + (before->end - before->start) / 2;
    *before = (struct before){token->work.context, token->work.stream, start, token->end};
}

static void write_finished(struct token *token)
{
    static long count;

    if (cupti_settings.overlap && token->work.kind == FAKE_TRACE_KERNEL) overlap(token);
    token->start = cupti_convert(token->start) - (uint64_t)cupti_settings.early;
    token->end = cupti_convert(token->end + (uint64_t)cupti_settings.late);
    if (cupti_settings.zero && ++count % cupti_settings.zero == 0) token->start = token->end = 0;
    write_work(token);
}

/* A forced flush gives out what is not done too, without times; it is then done with. The queue's
 * lock is held. */
static struct token *copy_pending(void)
{
    struct token *copies = NULL;

    for (struct token *t = pending; t; t = t->next) {
        struct token *copy;
        if (t->kind == CUPTI_ACTIVITY_KIND_INVALID || t->written || !current(t)) continue;
        if (!(copy = malloc(sizeof *copy))) abort();
        t->written = true;
        *copy = *t;
        copy->next = copies; /* the newest is the first of those that are pending: the oldest comes
                                first here */
        copies = copy;
    }
    return copies;
}

/* What ends while this goes on is one or the other, and not lost. */
void cupti_drain(bool forced)
{
    struct token *list, *copies = NULL;

    LOCKED(drain);
    {
        LOCKED(queue);
        list = finished;
        finished = NULL;
        last_finished = &finished;
        if (forced) copies = copy_pending();
    }
    if (list) cupti_clock_mark();
    while (list) {
        struct token *token = list;
        list = token->next;
        if (current(token)) write_finished(token);
        free(token);
    }
    while (copies) {
        struct token *token = copies;
        copies = token->next;
        write_work(token);
        free(token);
    }
}

void cupti_work_forget(void)
{
    struct token *list;

    LOCKED(drain);
    LOCKED(queue);
    list = finished;
    finished = NULL;
    last_finished = &finished;
    while (list) {
        struct token *next = list->next;
        free(list);
        list = next;
    }
}

void cupti_work_forked(void)
{
    pthread_mutex_init(&drain, NULL);
    pthread_mutex_init(&queue, NULL);
    pending = finished = NULL; /* what they held is lost with the parent's threads */
    last_finished = &finished;
}
