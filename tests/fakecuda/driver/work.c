/* What the kinds of work do when their turn comes: bytes that move, values that are written, times
 * that pass. All with the lock held. */
#include "tests/fakecuda/driver/fake.h"

enum {
    POLL_NS = 20000, /* how often a wait for a value looks */
    SET_NS = 1000,   /* with a virtual clock, as a trace has no work without a length */
};

struct fake_record *fake_record_new(void)
{
    struct fake_record *record = calloc(1, sizeof *record);
    if (!record) abort();
    record->references = 1;
    return record;
}

struct fake_record *fake_record_hold(struct fake_record *record)
{
    if (record) record->references++;
    return record;
}

void fake_record_drop(struct fake_record *record)
{
    if (record && --record->references == 0) free(record);
}

static void copy_bytes(const struct fake_work *work)
{
    const struct fake_place *to = &work->copy.to, *from = &work->copy.from;

    for (size_t z = 0; z < work->copy.depth; z++)
        for (size_t y = 0; y < work->copy.height; y++)
            memmove(to->base + z * to->slice + y * to->pitch,
                from->base + z * from->slice + y * from->pitch, work->copy.width);
}

static void set_values(const struct fake_work *work)
{
    for (size_t y = 0; y < work->set.height; y++) {
        char *row = (char *)(uintptr_t)work->set.address + y * work->set.pitch;

        if (work->set.element == 1) {
            memset(row, (int)work->set.value, work->set.width);
            continue;
        }
        for (size_t x = 0; x < work->set.width; x++)
            memcpy(row + x * work->set.element, &work->set.value, work->set.element);
    }
}

static bool value_reached(const struct fake_values_op *op)
{
    uint64_t now = op->bytes == 4 ? *(volatile uint32_t *)(uintptr_t)op->address
                                  : *(volatile uint64_t *)(uintptr_t)op->address;
    uint64_t mask = op->bytes == 4 ? UINT32_MAX : UINT64_MAX;

    switch (op->flags & 3) {
    case CU_STREAM_WAIT_VALUE_EQ: return now == (op->value & mask);
    case CU_STREAM_WAIT_VALUE_AND: return (now & op->value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR: return (~(now | op->value) & mask) != 0;
    default:
        return op->bytes == 4 ? (int32_t)((uint32_t)now - (uint32_t)op->value) >= 0
                              : (int64_t)(now - op->value) >= 0;
    }
}

static bool values_step(struct fake_work *work, struct fake_running *running)
{
    struct fake_values_op *ops = work->owned;

    for (; running->index < work->values.count; running->index++) {
        struct fake_values_op *op = &ops[running->index];

        if (op->wait) {
            if (value_reached(op)) continue;
            fake_deadline(fake_gpu_now() + POLL_NS);
            return false;
        }
        memcpy((void *)(uintptr_t)op->address, &op->value, op->bytes);
    }
    if (running->state == RUN_STARTED) running->end = fake_gpu_now(); /* it had to wait */
    return true;
}

/* True once it has taken that long. */
static bool took(struct fake_running *running, uint64_t duration)
{
    running->end = running->start + duration;
    if (!duration || running->end <= fake_gpu_now()) return true;
    fake_deadline(running->end);
    return false;
}

/* With CUSTREAM_FAKE_SLICE_NS. */
static uint64_t until_our_slice(uint64_t time)
{
    enum { OURS_NS = 2000000 };

    return !fake_slice_ns || time % fake_slice_ns < OURS_NS ? 0
                                                            : fake_slice_ns - time % fake_slice_ns;
}

static bool kernel_step(struct fake_work *work, struct fake_running *running)
{
    if (!took(running, work->kernel.duration)) return false;
    if (work->kernel.effect) {
        for (unsigned i = 0; i < COUNT_OF(work->kernel.values); i++)
            work->kernel.parameters[i] = &work->kernel.values[i];
        work->kernel.effect(work->kernel.parameters);
    }
    return true;
}

/* With CUSTREAM_FAKE_COPY_ENGINES: when the copies that have come so far in that direction between
 * a device and the host end. */
static uint64_t engines[16][2];

/* NULL: a copy that needs none. */
static uint64_t *engine_of(const struct fake_work *work)
{
    const struct fake_memory *to = fake_memory_find((uintptr_t)work->copy.to.base),
                             *from = fake_memory_find((uintptr_t)work->copy.from.base);
    bool to_host = !to || to->type == CU_MEMORYTYPE_HOST,
         from_host = !from || from->type == CU_MEMORYTYPE_HOST;

    if (!fake_copy_engines || to_host == from_host) return NULL;
    return &engines[from_host ? to->device : from->device][from_host];
}

/* With a virtual clock: what the bytes take, at the rates of PCIe and of ordinary host memory. */
static uint64_t transfer_ns(const struct fake_work *work)
{
    const bool pageable = !fake_memory_find((uintptr_t)work->copy.to.base) ||
                          !fake_memory_find((uintptr_t)work->copy.from.base);
    const double bytes = (double)(work->copy.width * work->copy.height * work->copy.depth);
    return fake_virtual ? (uint64_t)(bytes / (pageable ? 8 : 55)) : 0;
}

static bool copy_step(struct fake_work *work, struct fake_running *running)
{
    const uint64_t takes = fake_copy_ns + transfer_ns(work);
    uint64_t *engine = running->state == RUN_FRESH ? engine_of(work) : NULL;

    if (engine && *engine > running->start) running->start = *engine;
    if (engine) *engine = running->start + takes;
    if (!took(running, takes)) return false;
    copy_bytes(work);
    return true;
}

static bool started_step(struct fake_work *work, struct fake_running *running, bool fresh)
{
    switch (work->type) {
    case WORK_KERNEL: return kernel_step(work, running);
    case WORK_COPY: return copy_step(work, running);
    case WORK_SET:
        if (!took(running, fake_copy_ns + (fake_virtual ? SET_NS : 0))) return false;
        set_values(work);
        return true;
    case WORK_FREE: fake_memory_free(work->memory); return true;
    case WORK_VALUES: return values_step(work, running);
    case WORK_HOST:
        if (fresh) fake_host_submit(work, running);
        return running->state == RUN_DONE;
    case WORK_RECORD:
        if (!took(running, until_our_slice(running->start))) return false;
        work->event.record->done = true;
        work->event.record->time = running->end;
        return true;
    case WORK_WAIT:
        if (!work->event.record->done) return false;
        if (work->event.record->time > running->end) running->end = work->event.record->time;
        return true;
    case WORK_GRAPH:
        if (work->graph.before && !work->graph.before->done) return false;
        if (!running->graph && work->graph.before && work->graph.before->time > running->start)
            running->start = work->graph.before->time;
        if (!fake_graph_step(fake_exec_graph(work->graph.exec), running, running->start))
            return false;
        work->graph.done->done = true;
        work->graph.done->time = running->end;
        return true;
    case WORK_CHILD: return fake_graph_step(work->child, running, running->start);
    default: return true;
    }
}

bool fake_work_step(struct fake_work *work, struct fake_running *running, uint64_t ready)
{
    bool fresh = running->state == RUN_FRESH;

    if (running->state == RUN_DONE) return true;
    if (fresh) running->start = running->end = ready;
    if (fresh && work->type == WORK_HOST)
        running->state = RUN_STARTED; /* before the host thread can finish it */
    if (!started_step(work, running, fresh)) {
        if (running->state == RUN_FRESH) running->state = RUN_STARTED;
        return false;
    }
    running->state = RUN_DONE;
    if (UNLIKELY(running->trace)) fake_trace_done(running);
    return true;
}

void fake_work_drop(struct fake_work *work)
{
    free(work->owned);
    work->owned = NULL;
    if (work->type == WORK_RECORD || work->type == WORK_WAIT) fake_record_drop(work->event.record);
    if (work->type == WORK_GRAPH) {
        fake_record_drop(work->graph.before);
        fake_record_drop(work->graph.done);
        fake_exec_drop(work->graph.exec);
    }
    if (work->type == WORK_CHILD) fake_graph_destroy(work->child);
    work->type = WORK_EMPTY;
}

void fake_work_copy(struct fake_work *to, const struct fake_work *from)
{
    *to = *from;
    if (from->owned) {
        to->owned = malloc(from->owned_bytes);
        if (!to->owned) abort();
        memcpy(to->owned, from->owned, from->owned_bytes);
        /* Staged host bytes that a copy reads stand in its own memory. */
        if (to->type == WORK_COPY && to->copy.from.base == from->owned)
            to->copy.from.base = to->owned;
    }
    if (to->type == WORK_RECORD || to->type == WORK_WAIT)
        to->event.record = fake_record_hold(to->event.record);
    if (to->type == WORK_CHILD) to->child = fake_graph_clone(from->child, true);
}
