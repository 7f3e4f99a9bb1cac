/*
 * Races, for the thread sanitizer: rings, pools, maps, names and the objects of streams and events,
 * used by several threads as programs use them.
 *
 * Programs order the uses of one handle themselves; here a lock a handle does. What a program does
 * not order, and the driver's locks do, goes through one lock of the stub. The writer goes round as
 * trace/writer.c does.
 */
#include <sched.h>

#include "tests/unit/driver.h"

enum { THREADS = 4, ROUNDS = 4000, HANDLES = 16 };

static void run_threads(void *(*function)(void *), int n)
{
    pthread_t threads[8];
    for (int i = 0; i < n; i++)
        REQUIRE(!pthread_create(&threads[i], NULL, function, (void *)(intptr_t)i));
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

static unsigned next(unsigned *seed) { return (*seed = *seed * 1664525 + 1013904223) >> 16; }

/* --- ring --- */

static struct cs_thread *ring_owner;
static void *ring_side(void *side)
{
    enum { N = 100000 }; /* a missing order is seen in the first lap, and these are a thousand */
    struct cs_ring *ring = &ring_owner->ring;
    for (cs_u64 i = 0; i < N;) {
        if (side) { /* the writer */
            cs_u64 tail = cs_load(&ring->tail), head = cs_load_acq(&ring->head);
            for (; tail < head; tail++, i++) {
                const cs_u64 *slot = (const cs_u64 *)ring->slots[tail & ring->mask];
                if (slot[0] != i || slot[7] != ~i) CHECK_IS(slot[0], i);
            }
            cs_store_rel(&ring->tail, head);
        } else {
            cs_u64 *slot = cs_ring_claim_fast(ring);
            if (!slot) slot = cs_ring_claim(ring);
            if (!slot) continue;
            slot[0] = i, slot[7] = ~i;
            cs_ring_publish(ring);
            i++;
        }
    }
    return NULL;
}

TEST(ring_between_two_threads)
{
    cs_thread_set_ring_size(4096);
    REQUIRE((ring_owner = cs_thread_start()));
    run_threads(ring_side, 2);
    CHECK_IS(cs_load(&ring_owner->ring.head), cs_load(&ring_owner->ring.tail));
}

/* --- pool --- */

struct thing {
    struct cs_object object;
    _Atomic cs_u32 owner;
    cs_u64 data;
};
static struct cs_pool things;
static _Atomic int writers_left;

static void *pool_user(void *me)
{
    unsigned seed = (unsigned)(intptr_t)me + 1;
    struct thing *mine[8] = {0};
    for (int i = 0; i < 5 * ROUNDS; i++) {
        unsigned k = next(&seed) % 8;
        if (mine[k]) {
            CHECK_IS(
                cs_load(&mine[k]->owner), (intptr_t)me + 1); /* nobody else was given the slot */
            CHECK_IS(mine[k]->data, k);
            cs_store(&mine[k]->owner, 0);
            if (k & 1) cs_pool_end(&things, &mine[k]->object);
            else cs_pool_release(&things, &mine[k]->object);
            mine[k] = NULL;
        } else if ((mine[k] = cs_pool_new(&things))) {
            CHECK_IS(cs_load(&mine[k]->owner), 0);
            cs_store(&mine[k]->owner, (cs_u32)(intptr_t)me + 1);
            mine[k]->data = k;
        }
    }
    for (int k = 0; k < 8; k++)
        if (mine[k]) cs_pool_release(&things, &mine[k]->object);
    cs_add(&writers_left, -1);
    return NULL;
}

static void *pool_writer(void *unused)
{
    while (cs_load_acq(&writers_left)) release_all(&things);
    release_all(&things);
    return unused;
}

static void *pool_thread(void *me)
{
    return (intptr_t)me == THREADS ? pool_writer(me) : pool_user(me);
}

TEST(pool_gives_a_slot_to_one_at_a_time)
{
    REQUIRE(cs_pool_init(&things, sizeof(struct thing), 24)); /* fewer than they ask for together */
    writers_left = THREADS;
    run_threads(pool_thread, THREADS + 1);
    int free_slots = 0;
    while (cs_pool_new(&things)) free_slots++;
    CHECK_IS(free_slots, 24); /* none was lost, none given twice */
}

/* --- map and names --- */

static struct cs_map map;
static struct cs_map_slot *_Atomic slot_of[THREADS][3000];
static cs_name name_of[THREADS][300];

static void *map_user(void *me)
{
    int self = (int)(intptr_t)me;
    for (cs_u64 i = 0; i < 3000; i++) {
        cs_u64 key = (i * 7919 % 3000 + 1) * 16; /* the same keys in all threads */
        struct cs_map_slot *slot = cs_map_slot(&map, key, true);
        REQUIRE(slot);
        slot_of[self][key / 16 - 1] = slot;
        cs_store_rel(&slot->value, key);
        CHECK_IS(cs_map_get(&map, key), key);
    }
    for (int i = 0; i < 300; i++) {
        char text[32];
        snprintf(text, sizeof text, "name %d", i);
        name_of[self][i] = cs_name_add(text);
        CHECK_TEXT(cs_name_text(name_of[self][i]), text);
        CHECK_TEXT(cs_name_text(0), "");
    }
    return NULL;
}

TEST(map_and_names_have_one_place_for_each)
{
    REQUIRE(cs_map_init(&map, 12));
    run_threads(map_user, THREADS);
    for (int t = 1; t < THREADS; t++) {
        for (int i = 0; i < 3000; i++) CHECK(slot_of[t][i] == slot_of[0][i]);
        for (int i = 0; i < 300; i++) CHECK(name_of[t][i] == name_of[0][i]);
    }
    CHECK_IS(cs_load(&map.used), 3000);
}

enum { KEYS = 40000, STRETCH = 100, SPINS = 1000 };
static _Atomic int reached[2];

/*
 * Both bring a key at the same moment, as nearly as may be: who comes first waits. Where the other
 * has no processor that may take a time slice. So it is waited for at the begin of a stretch alone,
 * and within it for some turns of a loop.
 */
static void *key_bringer(void *me)
{
    const int self = (int)(intptr_t)me;
    for (int i = 0; i < KEYS; i++) {
        cs_store(&reached[self], i + 1);
        for (int n = 0; cs_load(&reached[!self]) <= i && (n < SPINS || i % STRETCH == 0); n++)
            if (n >= SPINS) sched_yield();
        CHECK(cs_map_slot(&map, 16 * ((cs_u64)i + 1), true));
    }
    return me;
}

TEST(a_key_that_two_threads_bring_at_once_is_one)
{
    REQUIRE(cs_map_init(&map, 16));
    run_threads(key_bringer, 2);
    CHECK_IS(cs_load(&map.used), KEYS);
}

/* --- streams and events --- */

static struct {
    pthread_mutex_t lock; /* the program's own */
    int stream, event;    /* handle numbers, 0 none */
} shared[HANDLES];
static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
static int free_numbers[64], free_count;

static int driver_create(void)
{
    pthread_mutex_lock(&driver_lock);
    int n = free_numbers[--free_count];
    pthread_mutex_unlock(&driver_lock);
    return n;
}
static void driver_destroy(int n) /* from here on another thread may get the handle */
{
    pthread_mutex_lock(&driver_lock);
    free_numbers[free_count++] = n;
    pthread_mutex_unlock(&driver_lock);
}

static void record(struct cs_thread *t, cs_ref stream)
{
    cs_ref *slot = cs_ring_claim_fast(&t->ring);
    if (!slot) slot = cs_ring_claim(&t->ring);
    if (!slot) return;
    *slot = stream;
    cs_ring_publish(&t->ring);
}

static void *program(void *me)
{
    unsigned seed = (unsigned)(intptr_t)me + 7;
    CUcontext mine = stub_context(0, 10 + (int)(intptr_t)me);
    struct cs_thread *t = cs_thread_start();
    stub_current = mine;
    cs_context_of(mine, 0);
    cs_context_set(t, mine);
    for (int i = 0; i < ROUNDS; i++) {
        unsigned k = next(&seed) % HANDLES;
        cs_ref stream = 0;
        pthread_mutex_lock(&shared[k].lock);
        if (!shared[k].stream) {
            shared[k].stream = driver_create();
            shared[k].event = driver_create();
            stream = make_stream(t, stub_stream(shared[k].stream));
            make_event(t, stub_event(shared[k].event));
        } else if (next(&seed) % 8 == 0) {
            cs_ref dying = cs_stream_destroying(t, stub_stream(shared[k].stream), false),
                   event = cs_event_destroying(stub_event(shared[k].event));
            bool done = next(&seed) % 4; /* or refused */
            if (done) driver_destroy(shared[k].stream), driver_destroy(shared[k].event);
            record(t, dying);
            cs_stream_destroyed(dying, done, cs_ticks());
            cs_event_destroyed(event, done, cs_ticks());
            if (done) shared[k].stream = shared[k].event = 0;
        } else {
            CUevent event = stub_event(shared[k].event);
            stream = cs_stream_find(t, stub_stream(shared[k].stream), false);
            if (!stream) stream = find_stream(t, stub_stream(shared[k].stream));
            CHECK(stream_at(stream) &&
                  stream_at(stream)->key == (uintptr_t)stub_stream(shared[k].stream));
            cs_event_recorded(find_event(t, event), (cs_u64)i + 1, t->tid, stream);
            CHECK(cs_event_cause(event).ticks);
        }
        pthread_mutex_unlock(&shared[k].lock);
        record(t, stream);
        record(t, cs_stream_of(t, NULL, i & 1, true, 0));
        if (i % 500 == 499) { /* the thread's own context ends, with its default streams and
                                 whatever it had made */
            cs_context_destroyed(cs_context_destroying(mine), true);
            cs_context_of(mine, 0);
            cs_context_set(t, mine);
        }
    }
    cs_add(&writers_left, -1);
    return NULL;
}

static cs_u64 lanes_seen;
static void *writer(void *unused)
{
    cs_u32 before[3] = {0};
    struct cs_pool *pools[3] = {&cs_streams, &cs_events, &cs_contexts};
    bool last;
    do {
        last = !cs_load_acq(&writers_left);
        cs_u32 now[3];
        for (int p = 0; p < 3; p++) now[p] = cs_pool_take_ended(pools[p]);
        for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next) {
            cs_u64 tail = cs_load(&t->ring.tail), head = cs_load_acq(&t->ring.head);
            for (; tail < head; tail++) {
                struct cs_stream *stream = stream_at(*(cs_ref *)t->ring.slots[tail & t->ring.mask]);
                if (stream)
                    lanes_seen +=
                        stream->lane; /* constant for as long as the writer may come to it */
            }
            cs_store_rel(&t->ring.tail, head);
        }
        for (int p = 0; p < 3; p++) {
            for (cs_u32 at = before[p], after; at; at = after) {
                struct cs_object *object = cs_pool_slot(pools[p], at - 1);
                after = object->next;
                cs_pool_release(pools[p], object);
            }
            before[p] = now[p];
        }
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    } while (!last);
    return unused;
}

static void *actor(void *me) { return (intptr_t)me == THREADS ? writer(me) : program(me); }

TEST(streams_and_events_of_several_threads)
{
    stub_driver();
    for (free_count = 0; free_count < 64; free_count++) free_numbers[free_count] = free_count + 1;
    for (int k = 0; k < HANDLES; k++) pthread_mutex_init(&shared[k].lock, NULL);
    writers_left = THREADS;
    run_threads(actor, THREADS + 1);
}

/* --- one event, recorded and waited for at once, which CUDA allows --- */

static cs_ref one_event;
static void *recorder(void *me)
{
    for (cs_u64 i = 1; i <= 20 * ROUNDS; i++) {
        if ((intptr_t)me < 2) {
            cs_u64 n = i * 4 + (cs_u64)(intptr_t)me;
            cs_event_recorded(one_event, n, (cs_u32)n, (cs_u32)n + 1);
        } else {
            struct cs_cause cause = cs_event_cause(stub_event(1));
            if (cause.ticks)
                CHECK((cs_u32)cause.where == (cs_u32)cause.ticks &&
                      cause.where >> 32 == (cs_u32)cause.ticks + 1);
        }
    }
    return NULL;
}

TEST(a_wait_never_sees_half_a_record)
{
    stub_driver();
    stub_current = stub_context(0, 1);
    one_event = make_event(cs_thread_start(), stub_event(1));
    run_threads(recorder, THREADS);
    CHECK(cs_event_cause(stub_event(1)).ticks);
}

/* --- contexts --- */

/* Each thread has a device; one more is shared by two threads, which meet its context and end it as
 * they like. */
static void *context_user(void *me)
{
    const int n = (int)(intptr_t)me;
    for (int i = 0; i < ROUNDS; i++) {
        const int device = i & 1 ? n / 2 : 8 + n;
        const CUcontext handle = (CUcontext)((uintptr_t)device << 32 | 0x1000);
        stub_current = handle;
        if (i & 2) cs_context_is_primary(handle, device);
        const struct cs_context *context = cs_pool_get(&cs_contexts, cs_context_of(handle, device));
        if (context && device >= 8) CHECK_IS(context->device, device); /* what a rule asks for */
        if (i & 4) cs_context_primary_ended(device);
        else if (i & 8) cs_context_destroyed(cs_context_destroying(handle), true);
    }
    return NULL;
}

static void *context_writer(void *left)
{
    cs_u32 ended = 0;
    while (cs_load((_Atomic int *)left)) {
        const cs_u32 now = cs_pool_take_ended(&cs_contexts);
        for (cs_u32 first = ended; first;) {
            struct cs_object *object = cs_pool_slot(&cs_contexts, first - 1);
            first = cs_load(&object->next);
            cs_pool_release(&cs_contexts, object);
        }
        ended = now;
        sched_yield();
    }
    return NULL;
}

TEST(contexts_of_several_threads)
{
    static _Atomic int left = 1;
    pthread_t writer;
    stub_driver();
    REQUIRE(!pthread_create(&writer, NULL, context_writer, &left));
    run_threads(context_user, THREADS);
    cs_store(&left, 0);
    pthread_join(writer, NULL);
}
