#define _GNU_SOURCE
#include "shim/object/thread.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/memory.h"
#include "shim/base/rings.h"
#include "shim/object/given.h"
#include "shim/object/stream.h"

CS_TLS struct cs_thread *cs_self;
struct cs_thread cs_orphan;
struct cs_thread *_Atomic cs_threads;

static size_t ring_bytes = 4 << 20;

/* Of threads for which there is no memory: a policy holds for them too. */
enum { RESERVE = 64 };
static struct cs_thread reserve[RESERVE];
static _Atomic cs_u32 reserved;
static _Atomic cs_u32 thread_count;
static _Atomic cs_u32 forks; /* of which this is the child */

/* The key's destructor tells that a thread ends. */
static pthread_key_t end_key;
static bool end_known;

/* In whole words: the writer may read it meanwhile. */
static void take_comm(struct cs_thread *thread)
{
    cs_u64 words[CS_COUNT(thread->comm)] = {0};
    prctl(PR_GET_NAME, words);
    for (size_t i = 0; i < CS_COUNT(words); i++) cs_store(&thread->comm[i], words[i]);
}

void cs_thread_comm(const struct cs_thread *thread, char name[static CS_THREAD_COMM])
{
    for (size_t i = 0; i < CS_COUNT(thread->comm); i++) memcpy(name + i * sizeof *thread->comm, &(cs_u64){cs_load(&thread->comm[i])}, sizeof *thread->comm);
}

static void thread_ends(void *ending)
{
    CS_KEEP_ERRNO;
    struct cs_thread *thread = ending;
    if (thread->pid != getpid()) return; /* the child of a bare clone: the state is its parent's */
    take_comm(thread);
    thread->given = cs_given_thread_name(thread->tid);
    cs_given_thread(thread->tid, 0);
    thread->ended = cs_ticks();
    cs_streams_end_with_thread(thread);
    cs_self = NULL; /* a CUDA call from a later destructor starts a new state */
    cs_store_rel(&thread->state, CS_THREAD_DONE);
}

void cs_threads_init(void)
{
    if (!end_known) end_known = pthread_key_create(&end_key, thread_ends) == 0;
    if (!end_known) cs_refused("the ends of threads; their rings are not used again"); /* no key is left: programs may have 1024 */
}

void cs_thread_set_ring_size(size_t bytes)
{
    size_t size = CS_SLOT;
    while (size * 2 <= bytes) size *= 2;
    ring_bytes = size;
}

size_t cs_thread_ring_size(void) { return ring_bytes; }

/* Of a ring whose memory is a file's: what is behind so many bytes goes back. Where some of it is no longer the file's, all stays. */
static void ring_begins_again(struct cs_ring *ring, size_t bytes)
{
    const cs_u64 size = ring->mask + 1, stays = bytes / CS_SLOT, limit = cs_load(&ring->limit) ?: size;
    if (ring->own) return;
    cs_store_rel(&ring->head, 0);
    cs_store_rel(&ring->told, 0);
    cs_store_rel(&ring->tail, 0);
    ring->next = ring->stop = ring->slots;
    if (size <= stays) return;
    if (limit > stays) cs_store(&ring->limit, stays);
    cs_memory_free(ring->slots + stays, (size - stays) * CS_SLOT);
}

/* As for a new thread. */
static void make_free(struct cs_thread *t)
{
    cs_store(&t->lost, 0);
    if (cs_rings_has(t)) ring_begins_again(&t->ring, CS_RINGS_STAYS);
    else cs_memory_forget(t->ring.slots, (t->ring.mask + 1) * CS_SLOT);
    t->first = cs_load(&t->ring.tail);
}

static struct cs_thread *take_free(void)
{
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next) {
        cs_u32 free = CS_THREAD_FREE;
        if (cs_load(&t->state) == free && atomic_compare_exchange_strong(&t->state, &free, CS_THREAD_LIVE)) return t;
        cs_u32 done = CS_THREAD_DONE;
        if (!cs_load(&cs_objects_alone) || cs_load(&t->state) != done || !atomic_compare_exchange_strong(&t->state, &done, CS_THREAD_LIVE)) continue;
        make_free(t);
        return t;
    }
    return NULL;
}

/* Without memory for it, or where there are too many, the ring has no slots, and every record finds it full. */
static void make_ring(struct cs_thread *t)
{
    if (t->ring.slots) return;
    cs_rings_unkept();
    if (t->index > CS_THREADS) cs_refused("a thread beyond 65,536 at once; its calls are not recorded");
    else t->ring.slots = cs_memory_map(ring_bytes, "the ring of a thread (CUSTREAM_BUFFER); its calls are not recorded");
    t->ring.mask = (t->ring.slots ? ring_bytes / CS_SLOT : 0) - 1;
}

static struct cs_thread *make_state(void)
{
    bool rest = cs_load(&reserved) < RESERVE;
    struct cs_thread *t = cs_rings_thread();
    if (t) return t;
    t = cs_memory_map(sizeof *t, rest ? "the state of a thread; one that was kept for this takes its place"
                                                        : "the state of a thread; its calls are not recorded, and no policy changes them");
    cs_u32 i = t || !rest ? RESERVE : cs_add(&reserved, 1);
    if (i < RESERVE) memset(t = &reserve[i], 0, sizeof *t);
    return t;
}

static struct cs_thread *make_new(void)
{
    struct cs_thread *t = make_state();
    if (!t) return NULL;
    t->index = cs_add(&thread_count, 1) + 1;
    make_ring(t);
    cs_store(&t->state, CS_THREAD_LIVE);
    struct cs_thread *head = cs_load(&cs_threads);
    do t->next = head;
    while (!atomic_compare_exchange_weak_explicit(&cs_threads, &head, t, memory_order_release, memory_order_relaxed));
    return t;
}

/* A signal handler has forked in the middle of the start: this is the child, and the state its parent's, whose memory may be empty here. Wherever it is in the
 * list by now, nobody is to take it. */
static struct cs_thread *start_is_void(struct cs_thread *t)
{
    t->index = CS_THREADS + 1;
    cs_store(&t->state, CS_THREAD_LIVE);
    cs_self = &cs_orphan;
    return NULL;
}

struct cs_thread *cs_thread_start(void)
{
    CS_KEEP_ERRNO;
    const cs_u32 before = cs_load(&forks);
    struct cs_thread *t = take_free();
    if (!t) t = make_new();
    else if (!t->ring.slots) make_ring(t);
    if (t) {
        cs_store(&t->tid, 0);
        t->pid = getpid();
        t->key = (cs_u32)(uintptr_t)pthread_self();
        cs_ring_look_again(&t->ring); /* whoever had it may have left in the middle of a publish */
        t->context_known = 0;
        cs_store(&t->inside, 0);
        cs_store(&t->function, NULL);
        t->ended = 0;
        cs_store(&t->given, 0);
        t->own_count = 0;
        t->call_ended = 0;
        t->context = t->default_stream[0] = t->default_stream[1] = 0;
        t->default_mode = 0;
        t->ordinal = t->default_operations = 0;
        t->unmarked = t->sample_place = t->sample_turns = 0;
        if (end_known) pthread_setspecific(end_key, t);
        take_comm(t);
        cs_store_rel(&t->tid, (cs_u32)syscall(SYS_gettid));
        cs_self = t;
        atomic_signal_fence(memory_order_seq_cst);
        if (cs_load(&forks) != before) return start_is_void(t);
    }
    return t;
}

void cs_thread_recycle(struct cs_thread *t)
{
    make_free(t);
    cs_store(&t->free_since, cs_monotonic_ns());
    cs_store_rel(&t->state, CS_THREAD_FREE);
}

/* It is done for a moment, so that no thread takes it. */
static void rest(struct cs_thread *t)
{
    cs_u32 free = CS_THREAD_FREE;
    if (!atomic_compare_exchange_strong(&t->state, &free, CS_THREAD_DONE)) return;
    ring_begins_again(&t->ring, cs_rings_first());
    t->first = 0;
    cs_store_rel(&t->state, CS_THREAD_FREE);
}

void cs_threads_rest(void)
{
    enum { FOR_NS = 1000000000 };
    static cs_u64 last;
    const cs_u64 now = cs_monotonic_ns(), since = last;
    if (now - since < FOR_NS) return;
    last = now;
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next) {
        const bool is_free = cs_load_acq(&t->state) == CS_THREAD_FREE, is_small = cs_load(&t->ring.limit) == cs_rings_first() / CS_SLOT;
        if (is_free && !is_small && !t->ring.own && cs_rings_has(t) && cs_load(&t->free_since) <= since) rest(t);
    }
}

struct cs_rings_layout cs_threads_layout(void)
{
#define AT(field) (cs_u32)offsetof(struct cs_thread, field)
    return (struct cs_rings_layout){.tid = AT(tid), .index = AT(index), .comm = AT(comm), .lost = AT(lost), .lost_begin = AT(lost_begin), .lost_end = AT(lost_end)};
#undef AT
}

void cs_threads_forget(void)
{
    cs_add(&forks, 1);
    cs_store(&reserved, 0);
    cs_store(&cs_threads, NULL); /* their memory stays mapped, untouched and shared with the parent */
    cs_store(&thread_count, 0);
    memset(&cs_orphan, 0, sizeof cs_orphan);
    cs_store(&cs_orphan.inside, CS_INSIDE_OURS);
    if (cs_self) cs_self = &cs_orphan;
    if (end_known) pthread_setspecific(end_key, NULL);
}
