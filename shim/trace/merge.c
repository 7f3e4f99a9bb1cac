#include "shim/trace/merge.h"

#include "shim/base/clock.h"
#include "shim/base/memory.h"

/* Of a thread: its next record, and up to where this pass has seen its ring. */
struct run {
    cs_u64 end; /* of the next record, ticks */
    struct cs_thread *thread;
    cs_u64 next, head;
    bool done; /* its ring gets no more records */
};

/* The first of them are a heap, the one with the earliest record on top. Behind it are those of which nothing is left to take. */
static struct run *runs;
CS_TABLE(TRACE, runs, CS_THREADS);
static size_t heap, count;

static const struct cs_record *record_of(const struct run *run) { return (const struct cs_record *)run->thread->ring.slots[run->next & run->thread->ring.mask]; }

static bool has_next(struct run *run, cs_u64 until)
{
    if (run->next == run->head) return false;
    run->end = record_of(run)->end;
    return run->end <= until;
}

static void swap(struct run *a, struct run *b)
{
    const struct run other = *a;
    *a = *b;
    *b = other;
}

static void sift_down(size_t at)
{
    for (size_t child; (child = 2 * at + 1) < heap; at = child) {
        if (child + 1 < heap && runs[child + 1].end < runs[child].end) child++;
        if (runs[child].end >= runs[at].end) return;
        swap(&runs[child], &runs[at]);
    }
}

/* What was published before that moment is seen: its ring is looked at later. */
static void look(cs_u64 until)
{
    heap = count = 0;
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t && count < CS_THREADS; t = t->next) {
        const cs_u32 state = cs_load_acq(&t->state); /* before the ring: behind DONE nothing comes */
        if (state == CS_THREAD_FREE) continue;
        struct run run = {.thread = t, .next = cs_load(&t->ring.tail), .head = cs_load_acq(&t->ring.head), .done = state == CS_THREAD_DONE};
        if (run.next == run.head && !run.done) continue;
        const bool has = has_next(&run, until);
        runs[count++] = run;
        if (has) swap(&runs[heap++], &runs[count - 1]);
    }
    for (size_t i = heap / 2; i-- > 0;) sift_down(i);
}

size_t cs_merge_pass(void (*take)(struct cs_thread *thread, cs_u64 place), void (*read)(struct cs_thread *thread, bool over))
{
    const cs_u64 until = cs_ticks_now();
    size_t records = 0;
    for (look(until); heap; records++, sift_down(0)) {
        struct run *run = &runs[0];
        take(run->thread, run->next++);
        const bool more = has_next(run, until);
        if (!more || !(run->next & 255)) cs_store_rel(&run->thread->ring.tail, run->next); /* room for the application while we go on */
        if (!more) swap(run, &runs[--heap]);
    }
    for (size_t i = 0; i < count; i++) read(runs[i].thread, runs[i].done && runs[i].next == runs[i].head);
    return records;
}
