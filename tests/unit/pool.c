/* Objects and references, and the map from handles to them (object/pool.h, object/map.h). */
#include "shim/object/map.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "shim/object/thread.h"
#include "tests/unit/check.h"

struct thing {
    struct cs_object object;
    cs_u64 data[5];
};

static struct cs_pool pool_of(cs_u32 capacity)
{
    struct cs_pool pool;
    REQUIRE(cs_pool_init(&pool, sizeof(struct thing), capacity));
    return pool;
}

TEST(a_new_object_is_zero_and_found)
{
    struct cs_pool pool = pool_of(4);
    struct thing *a = cs_pool_new(&pool), *b = cs_pool_new(&pool);
    REQUIRE(a && b && a != b);
    cs_ref ref_a = cs_load(&a->object.ref), ref_b = cs_load(&b->object.ref);
    CHECK(ref_a && ref_b && ref_a != ref_b);
    CHECK(cs_pool_get(&pool, ref_a) == a && cs_pool_get(&pool, ref_b) == b);
    for (int i = 0; i < 5; i++) {
        CHECK_IS(a->data[i], 0);
        a->data[i] = 7;
    }
    cs_pool_release(&pool, &a->object);
    struct thing *again = cs_pool_new(&pool);
    CHECK(again == a);
    for (int i = 0; i < 5; i++) CHECK_IS(again->data[i], 0);
    CHECK_IS(cs_load(&again->object.ended), 0);
}

TEST(a_reference_does_not_reach_the_next_object_in_its_slot)
{
    struct cs_pool pool = pool_of(1);
    static cs_ref refs[4095];
    for (int i = 0; i < 4095; i++) { /* the generation has twelve bits, 0 is left out */
        struct thing *thing = cs_pool_new(&pool);
        REQUIRE(thing);
        refs[i] = cs_load(&thing->object.ref);
        CHECK(refs[i]);
        for (int k = 0; k < i; k += 97) CHECK(!cs_pool_get(&pool, refs[k]));
        cs_pool_release(&pool, &thing->object);
        CHECK(!cs_pool_get(&pool, refs[i]) &&
              !cs_load(&thing->object.ref)); /* by which who walks over all slots knows it */
    }
    for (int i = 1; i < 4095; i++) CHECK(refs[i] != refs[i - 1] && refs[i] != refs[0]);
    for (int i = 0; i < 10000; i++) {
        struct thing *thing = cs_pool_new(&pool);
        CHECK(thing && cs_load(&thing->object.ref));
        cs_pool_release(&pool, &thing->object);
    }
}

TEST(references_to_nothing_give_nothing)
{
    struct cs_pool pool = pool_of(4), unmade = {0};
    CHECK(!cs_pool_get(&pool, 0));
    CHECK(!cs_pool_get(&pool, UINT32_MAX));
    CHECK(!cs_pool_get(&pool, 1u << CS_REF_INDEX_BITS | 2)); /* a slot never used */
    CHECK(!cs_pool_new(&unmade));
    CHECK(!cs_pool_get(&unmade, 1u << CS_REF_INDEX_BITS));
}

TEST(a_full_pool_refuses_and_counts)
{
    struct cs_pool pool = pool_of(3);
    struct thing *things[3];
    for (int i = 0; i < 3; i++) REQUIRE((things[i] = cs_pool_new(&pool)));
    for (int i = 0; i < 5; i++) CHECK(!cs_pool_new(&pool));
    CHECK_IS(cs_load(&pool.refused), 5);
    cs_pool_release(&pool, &things[1]->object);
    CHECK(cs_pool_new(&pool) == things[1]);
    CHECK(!cs_pool_new(&pool));
    CHECK_IS(cs_load(&pool.refused), 6);
    CHECK(cs_pool_get(&pool, cs_load(&things[2]->object.ref)) == things[2]);
}

TEST(ended_objects_stay_until_they_are_given_back)
{
    struct cs_pool pool = pool_of(8);
    struct thing *things[3];
    for (int i = 0; i < 3; i++) REQUIRE((things[i] = cs_pool_new(&pool)));
    CHECK_IS(cs_pool_take_ended(&pool), 0);
    cs_pool_end(&pool, &things[0]->object);
    cs_pool_end(&pool, &things[2]->object);
    cs_pool_end(&pool, &things[0]->object); /* told twice, ended once */
    CHECK(cs_pool_get(&pool, cs_load(&things[0]->object.ref)) == things[0]);
    int seen = 0;
    for (cs_u32 at = cs_pool_take_ended(&pool), next; at; at = next) {
        struct cs_object *object = cs_pool_slot(&pool, at - 1);
        next = object->next;
        CHECK(object == &things[0]->object || object == &things[2]->object);
        cs_pool_release(&pool, object);
        seen++;
    }
    CHECK_IS(seen, 2);
    CHECK_IS(cs_pool_take_ended(&pool), 0);
    CHECK(cs_load(&things[1]->object.ref));
}

TEST(without_a_writer_a_full_pool_gives_back_what_has_ended)
{
    struct cs_pool pool = pool_of(3);
    struct thing *stays = cs_pool_new(&pool);
    cs_store(&cs_objects_alone, true);
    for (int i = 0; i < 100; i++) {
        struct thing *thing = cs_pool_new(&pool);
        REQUIRE(thing && thing != stays);
        cs_pool_end(&pool, &thing->object);
    }
    CHECK_IS(cs_load(&pool.refused), 0);
    CHECK(cs_pool_get(&pool, cs_load(&stays->object.ref)) == stays);
    CHECK(cs_pool_new(&pool) && cs_pool_new(&pool) && !cs_pool_new(&pool));
    CHECK_IS(cs_load(&pool.refused), 1);
}

static void *starts(void *unused)
{
    CHECK(cs_thread_start() && cs_load(&cs_self->state) == CS_THREAD_LIVE);
    return unused;
}

static int states_after(int threads)
{
    int states = 0;
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        REQUIRE(!pthread_create(&thread, NULL, starts, NULL) && !pthread_join(thread, NULL));
    }
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next) states++;
    return states;
}

TEST(without_a_writer_threads_take_the_states_of_those_that_have_ended)
{
    cs_threads_init();
    cs_thread_set_ring_size(1 << 16);
    CHECK_IS(states_after(3), 3);
    cs_store(&cs_objects_alone, true);
    CHECK_IS(states_after(3), 3);
}

TEST(the_map_keeps_what_it_was_given)
{
    struct cs_map map;
    REQUIRE(cs_map_init(&map, 12));
    for (cs_u64 i = 1; i <= 3000; i++) {
        struct cs_map_slot *slot = cs_map_slot(&map, i << 12, true);
        REQUIRE(slot);
        cs_store(&slot->value, i);
    }
    for (cs_u64 i = 1; i <= 3000; i++) {
        CHECK_IS(cs_map_get(&map, i << 12), i);
        CHECK(cs_map_slot(&map, i << 12, false) == cs_map_slot(&map, i << 12, true));
    }
    CHECK_IS(cs_load(&map.used), 3000);
    CHECK_IS(cs_map_get(&map, 12345), 0);
    CHECK(!cs_map_slot(&map, 12345, false));
    CHECK(!cs_map_slot(&map, 0, true)); /* 0 marks an empty slot */
}

TEST(a_full_map_refuses_new_keys_and_still_answers)
{
    struct cs_map map;
    REQUIRE(cs_map_init(&map, 6));
    cs_u64 taken = 0;
    for (cs_u64 key = 1; key <= 1000; key++) {
        struct cs_map_slot *slot = cs_map_slot(&map, key * 8, true);
        if (!slot) continue;
        cs_store(&slot->value, key);
        taken++;
    }
    CHECK(taken >= 40 && taken <= 48); /* three quarters */
    for (cs_u64 key = 1; key <= taken; key++) CHECK_IS(cs_map_get(&map, key * 8), key);
    CHECK_IS(cs_map_get(&map, 999 * 8), 0);
    CHECK(!cs_map_slot(&map, 999 * 8, false));
    CHECK(cs_map_slot(&map, 8, true)); /* one that is there is no new key */
}

/* Drivers take handles from heaps: at any distance from each other, small ones too. */
TEST(walks_are_short_whatever_lies_between_handles)
{
    static const int distances[] = {
        0x20, 0x40, 0x60, 0x80, 0xc0, 0x100, 0x200, 0x3d0, 0x1000, 0x10000, 0x100000};
    enum { HANDLES = 10000 };
    for (size_t d = 0; d < CS_COUNT(distances); d++) {
        struct cs_map map;
        cs_u64 steps = 0;
        REQUIRE(cs_map_init(&map, 17)); /* as that of streams: 13 slots a handle */
        for (cs_u64 i = 0; i < HANDLES; i++) {
            cs_u64 key = 0x7f0000000000 + i * (cs_u64)distances[d];
            struct cs_map_slot *slot = cs_map_slot(&map, key, true);
            REQUIRE(slot);
            steps += ((cs_u64)(slot - map.slots) - cs_map_start(&map, key)) & map.mask;
        }
        if (steps > 8 * HANDLES)
            fprintf(stderr, "%#x apart: %llu steps a handle\n", distances[d],
                (unsigned long long)steps / HANDLES),
                check_failures++;
    }
}

/* Two threads insert the same handles in the same order: each handle has one place, and both find
 * it. */
enum { SAME_KEYS = 2000 };
static struct cs_map shared_map;
static pthread_barrier_t together;
static struct cs_map_slot *found[2][SAME_KEYS];

static void *inserts(void *slots)
{
    struct cs_map_slot **mine = slots;
    pthread_barrier_wait(&together);
    for (cs_u64 i = 0; i < SAME_KEYS; i++) mine[i] = cs_map_slot(&shared_map, (i + 1) * 0x80, true);
    return NULL;
}

TEST(two_threads_that_insert_the_same)
{
    REQUIRE(!pthread_barrier_init(&together, NULL, 2));
    for (int round = 0; round < 50; round++) {
        pthread_t other;
        REQUIRE(cs_map_init(&shared_map, 12));
        REQUIRE(!pthread_create(&other, NULL, inserts, found[1]));
        inserts(found[0]);
        REQUIRE(!pthread_join(other, NULL));
        for (cs_u64 i = 0; i < SAME_KEYS; i++)
            CHECK(found[0][i] && found[0][i] == found[1][i] &&
                  cs_load(&found[0][i]->key) == (i + 1) * 0x80);
        CHECK_IS(cs_load(&shared_map.used), SAME_KEYS);
    }
}

/* --- states of threads --- */

TEST(a_ring_has_the_greatest_power_of_two_of_its_bytes)
{
    static const size_t sizes[][2] = {{0, 64}, {63, 64}, {64, 64}, {65, 64}, {127, 64}, {128, 128},
        {65535, 32768}, {65536, 65536}, {65537, 65536}, {1 << 20, 1 << 20}};
    for (size_t i = 0; i < CS_COUNT(sizes); i++) {
        cs_threads_forget();
        cs_thread_set_ring_size(sizes[i][0]);
        struct cs_thread *thread = cs_thread_start();
        REQUIRE(thread);
        CHECK_IS((thread->ring.mask + 1) * CS_SLOT, sizes[i][1]);
        CHECK_IS(cs_load(&thread->ring.head), 0);
        memset(thread->ring.slots, 1, sizes[i][1]);
    }
}

static struct cs_thread *state_now;
static void *starts_anew(void *unused)
{
    char name[CS_THREAD_COMM];
    prctl(PR_SET_NAME, "second");
    state_now = cs_thread_start();
    CHECK(state_now == cs_self && state_now->tid == (cs_u32)syscall(SYS_gettid) &&
          state_now->key == (cs_u32)(uintptr_t)pthread_self());
    cs_thread_comm(state_now, name);
    CHECK_TEXT(name, "second");
    CHECK(!state_now->inside && !state_now->own_count && !state_now->context_known &&
          !state_now->context && !state_now->default_mode);
    CHECK(!state_now->default_stream[0] && !state_now->default_stream[1] && !state_now->ordinal &&
          !state_now->default_operations);
    CHECK(!state_now->ended && !state_now->given && !cs_load(&state_now->lost));
    CHECK_IS(state_now->first, cs_load(&state_now->ring.head));
    CHECK_IS(cs_load(&state_now->state), CS_THREAD_LIVE);
    return unused;
}

TEST(a_thread_begins_with_nothing_of_the_one_before)
{
    pthread_t second;
    char name[CS_THREAD_COMM];
    cs_threads_init();
    cs_thread_set_ring_size(1 << 16);
    struct cs_thread *state = cs_thread_start();
    REQUIRE(state);
    CHECK_IS(state->index, 1);
    state->inside = state->own_count = state->context_known = state->context = state->ordinal =
        state->default_operations = state->given = 5;
    state->default_stream[0] = state->default_stream[1] = 6;
    state->default_mode = 2;
    state->ended = 7;
    cs_store(&state->lost, 8);
    cs_store(&state->ring.head, 9);
    cs_store(&state->ring.tail, 9);
    cs_thread_recycle(state);
    CHECK_IS(cs_load(&state->state), CS_THREAD_FREE);
    REQUIRE(!pthread_create(&second, NULL, starts_anew, NULL) && !pthread_join(second, NULL));
    CHECK(state_now == state);
    CHECK_IS(state->first, 9);
    CHECK_IS(cs_load(&state->state), CS_THREAD_DONE);
    CHECK(state->ended);
    cs_thread_comm(state, name);
    CHECK_TEXT(name, "second");
}

/* In the child of a fork: the numbers begin anew, and the parent's states are nobody's. */
TEST(forgotten_threads_leave_their_numbers)
{
    cs_thread_set_ring_size(1 << 16);
    CHECK_IS(states_after(3), 3);
    cs_threads_forget();
    CHECK(!cs_self && !cs_load(&cs_threads));
    struct cs_thread *state = cs_thread_start();
    REQUIRE(state);
    CHECK_IS(state->index, 1);
    CHECK(cs_load(&cs_threads) == state && !state->next);
}
