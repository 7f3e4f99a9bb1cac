/*
 * The ranges and marks of the program's threads (wrap/wrap.h).
 */
#include <pthread.h>

#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/memory.h"
#include "shim/base/no_room.h"
#include "shim/object/given.h"
#include "shim/trace/writer.h"
#include "shim/wrap/inside.h"

enum { NO_RANGE = -1, NOT_TRACKED = -2 /* what NVTX itself answers where there is no tool */ };

/* A thread's open ranges. Made when it pushes its first; when the thread ends, the memory waits for a later thread. */
static CS_TLS struct stack {
    cs_u32 busy;   /* in one of the functions below: a signal handler's ranges stay out */
    cs_u32 depth;  /* places taken. A range that ends before those above it leaves its place empty, so that the others keep theirs */
    cs_u32 told;   /* the lowest places, that many, hold ranges whose push is recorded, but for late ones */
    cs_u64 seen;   /* the ring's head when a range was pushed last that could not be told: calls recorded since are behind that push */
    cs_u32 beyond; /* ranges pushed where there was no place */
    cs_u32 uncounted; /* the last of these, that many, were open only while nothing was recorded */
    cs_u32 ids;
    _Atomic bool used;
    struct stack *next; /* constant once linked */
    struct place {
        struct cs_annotation what;
        cs_u64 begin; /* ticks; 0: before there was a clock */
        cs_u32 id;    /* 0: empty */
        int level;
        bool late; /* pushed while nothing was recorded, and calls in it are recorded by now: only its end will be told */
    } at[CS_RANGES_OPEN];
} *own;
static struct stack *_Atomic stacks; /* all of them; entries are never taken out */
static pthread_key_t end_key;
static bool end_known;
static _Atomic cs_u32 last_started; /* process range */
static _Atomic bool nvtx_off;      /* a policy file said so, after NVTX had been answered */
static _Atomic cs_u64 open_since;   /* ticks: when calls began to be recorded again; 0: they were from the start */

static void thread_ends(void *stack)
{
    own = NULL;
    cs_store_rel(&((struct stack *)stack)->used, false);
}

static void init(void)
{
    end_known = cs_given_init() && pthread_key_create(&end_key, thread_ends) == 0;
    if (!end_known) cs_refused("NVTX ranges; those of the program are not recorded");
}

bool cs_annotate_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* nothing in it looks a symbol up */
    pthread_once(&once, init);
    return end_known;
}

static struct stack *take_free(void)
{
    for (struct stack *s = cs_load_acq(&stacks); s; s = s->next) {
        bool used = false;
        if (!cs_load(&s->used) && atomic_compare_exchange_strong(&s->used, &used, true)) return s;
    }
    return NULL;
}

static CS_COLD struct stack *stack_make(void)
{
    CS_KEEP_ERRNO;
    struct stack *s = take_free();
    if (!s && (s = cs_memory_map(sizeof *s, "the NVTX ranges of a thread"))) {
        cs_store(&s->used, true);
        struct stack *head = cs_load(&stacks);
        do s->next = head;
        while (!atomic_compare_exchange_weak_explicit(&stacks, &head, s, memory_order_release, memory_order_relaxed));
    }
    if (!s) return NULL;
    s->busy = s->depth = s->told = s->beyond = s->uncounted = 0; /* ids go on: a new thread may have the ring of the old one */
    struct stack *none = NULL; /* else a signal handler has made one meanwhile, and may have left ranges in it */
    if (!__atomic_compare_exchange_n(&own, &none, s, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        cs_store_rel(&s->used, false);
        return none;
    }
    pthread_setspecific(end_key, s);
    return s;
}

void cs_annotate_without_nvtx(void) { cs_store(&nvtx_off, true); }

/* --- records --- */

static struct cs_thread *thread_where(unsigned mode)
{
    if (!(cs_load_acq(&cs_mode) & mode)) return NULL;
    if (CS_LIKELY(cs_thread_own())) return cs_load(&cs_self->inside) ? NULL : cs_self;
    return cs_writer_alive() ? cs_enter_slowly() : NULL; /* it is a CUDA call that starts the recording, never a range */
}

struct cs_thread *cs_annotate_thread(void) { return thread_where(CS_MODE_RECORD); }
struct cs_thread *cs_annotate_watched(void) { return thread_where(CS_MODE_WATCH); }

static void record(struct cs_thread *thread, enum cs_call call, const struct cs_annotation *what, cs_u64 begin, cs_u64 end, struct cs_annotation_record more)
{
    if (what->nvtx && cs_load(&nvtx_off)) return;
    struct cs_record filled = {.begin = begin, .end = end, .call = (cs_u16)call};
    cs_annotation_pack(filled.value, what, more);
    cs_record_put(thread, &filled);
}

/* Ranges without a place are the only open ones that are not recorded now. */
static void count_beyond(struct stack *s)
{
    if (s->uncounted && !cs_load(&nvtx_off)) cs_no_room(CS_NO_ROOM_FOR_RANGES, s->uncounted);
    s->uncounted = 0;
}

/* The pushes of all open ranges of this thread that are not recorded yet. A record of one that began before calls that are recorded would come too late
 * for its slice to hold them. */
static void tell(struct stack *s, struct cs_thread *thread)
{
    const cs_u32 busy = s->busy;
    s->busy = 1; /* a handler that ended a range here would leave more places told than taken */
    const bool behind = s->seen != cs_load(&thread->ring.head);
    for (; s->told < s->depth; s->told++) {
        struct place *p = &s->at[s->told];
        p->late = behind && p->begin < cs_load(&open_since);
        if (p->id && !p->late) record(thread, CS_CALL_RANGE_PUSH, &p->what, p->begin, p->begin, (struct cs_annotation_record){.id = p->id, .place = (cs_u16)s->told});
    }
    count_beyond(s);
    s->busy = busy;
}

void cs_annotate_thread_starts(struct cs_thread *thread)
{
    if (own) own->seen = cs_load(&thread->ring.head);
    if (own && cs_mode_records()) tell(own, thread);
}

void cs_annotate_window_opened(cs_u64 ticks)
{
    cs_store(&open_since, ticks);
    if (own && cs_thread_own() && !own->busy) tell(own, cs_self);
}

void cs_annotate_after_fork_in_child(void)
{
    for (struct stack *s = cs_load(&stacks); s; s = s->next)
        if (s != own) cs_store(&s->used, false);
    if (own) own->told = 0, own->uncounted = own->beyond;
    cs_store(&open_since, 0);
}

/* --- pushed ranges --- */

static cs_u64 now(void) { return cs_load_acq(&cs_mode) & CS_MODE_WATCH ? cs_ticks() : 0; }

/* The innermost open range of the domain: its place + 1, 0 if there is none. */
static cs_u32 innermost(const struct stack *s, cs_name domain)
{
    cs_u32 i = s->depth;
    while (i && !(s->at[i - 1].id && s->at[i - 1].what.domain == domain)) i--;
    return i;
}

int cs_annotate_push(const struct cs_annotation *what)
{
    struct stack *s = own ?: stack_make();
    if (!s || s->busy) return NOT_TRACKED;
    s->busy = 1;
    cs_u32 under = innermost(s, what->domain);
    int level = under ? s->at[under - 1].level + 1 : 0;
    if (s->depth == CS_RANGES_OPEN) {
        level += (int)s->beyond++;
        s->uncounted++;
        if (cs_annotate_thread()) count_beyond(s);
        cs_log_once(CS_LOG_WARN, "more than %d NVTX ranges are open on one thread; deeper ones are not recorded", CS_RANGES_OPEN);
    } else {
        if (!++s->ids) s->ids = 1;
        s->at[s->depth++] = (struct place){.what = *what, .begin = now(), .id = s->ids, .level = level};
        struct cs_thread *thread = cs_annotate_thread();
        if (thread) tell(s, thread);
        else if (cs_self) s->seen = cs_load(&cs_self->ring.head);
    }
    s->busy = 0;
    return level;
}

static int pop(struct stack *s, cs_u32 i)
{
    struct place ended = s->at[i];
    struct cs_thread *thread = cs_annotate_thread();
    if (thread) tell(s, thread);
    bool is_told = i < s->told;
    if (is_told && !thread) thread = cs_annotate_watched(); /* it began while calls were recorded, and is shown whole */
    s->at[i].id = 0;
    while (s->depth && !s->at[s->depth - 1].id) s->depth--;
    if (s->told > s->depth) s->told = s->depth;
    if (thread && is_told) {
        bool level_with = s->seen == cs_load(&thread->ring.head);
        record(thread, CS_CALL_RANGE_POP, &ended.what, ended.begin, cs_ticks(), (struct cs_annotation_record){.id = ended.id, .place = (cs_u16)s->depth});
        if (level_with) s->seen = cs_load(&thread->ring.head); /* no call has been recorded */
    }
    return ended.level;
}

int cs_annotate_pop(cs_name domain)
{
    struct stack *s = own;
    if (!s || s->busy) return s ? NOT_TRACKED : NO_RANGE;
    s->busy = 1;
    cs_u32 i = innermost(s, domain);
    int level = NO_RANGE;
    if (s->beyond) {
        if (cs_annotate_thread()) count_beyond(s);
        level = CS_RANGES_OPEN + (int)--s->beyond;
        if (s->uncounted > s->beyond) s->uncounted = s->beyond;
    } else if (i) level = pop(s, i - 1);
    s->busy = 0;
    return level;
}

/* --- marks and process ranges --- */

void cs_annotate_mark(const struct cs_annotation *what)
{
    struct cs_thread *thread = cs_annotate_thread();
    cs_u64 at = cs_ticks();
    if (thread) record(thread, CS_CALL_MARK, what, at, at, (struct cs_annotation_record){0});
}

/* Id of a process range: the number of its text, so that its end need not look it up, and above it a number that counts up. The highest bit says that
 * nobody records it. */
#define UNRECORDED ((cs_u64)1 << 63)

cs_u64 cs_annotate_start(const struct cs_annotation *what)
{
    cs_u32 number = cs_add(&last_started, 1) + 1;
    if (!number) number = cs_add(&last_started, 1) + 1;
    cs_u64 id = (cs_u64)number << 16 | (what->text & 0xffff), at = cs_ticks();
    struct cs_thread *thread = what->nvtx && cs_load(&nvtx_off) ? NULL : cs_annotate_thread();
    if (!thread) return id | UNRECORDED;
    record(thread, CS_CALL_RANGE_START, what, at, at, (struct cs_annotation_record){.id = number});
    return id;
}

void cs_annotate_end(cs_u64 id)
{
    cs_u32 number = (cs_u32)(id >> 16);
    struct cs_annotation what = {.text = (cs_name)(id & 0xffff)};
    if (id >> 48 || !number || number > cs_load(&last_started)) return; /* not recorded, or none of ours */
    struct cs_thread *thread = cs_annotate_watched(); /* its start is recorded */
    cs_u64 at = cs_ticks();
    if (thread) record(thread, CS_CALL_RANGE_END, &what, at, at, (struct cs_annotation_record){.id = number});
}
