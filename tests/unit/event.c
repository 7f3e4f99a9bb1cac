/* Event objects over a stub of the driver (object/event.h). */
#include "tests/unit/driver.h"

static struct cs_thread *start(void)
{
    stub_driver();
    stub_current = stub_context(0, 1);
    struct cs_thread *t = cs_thread_start();
    REQUIRE(t);
    return t;
}

static void destroy(CUevent handle, bool done)
{
    cs_event_destroyed(cs_event_destroying(handle), done, cs_ticks());
}

TEST(numbers_are_never_reused)
{
    struct cs_thread *t = start();
    cs_ref a = make_event(t, stub_event(1)), b = make_event(t, stub_event(2));
    CHECK_IS(event_at(a)->number, 1);
    CHECK_IS(event_at(b)->number, 2);
    destroy(stub_event(1), true);
    cs_ref c = make_event(t, stub_event(1));
    CHECK(c != a);
    CHECK_IS(event_at(c)->number, 3);
    CHECK_IS(find_event(t, stub_event(1)), c);
    CHECK_IS(release_all(&cs_events), 1);
    CHECK(!event_at(a) && event_at(b) && event_at(c));
    CHECK_IS(find_event(t, NULL), 0);
}

TEST(a_refused_destroy_leaves_it_alive)
{
    struct cs_thread *t = start();
    cs_ref ref = make_event(t, stub_event(1));
    destroy(stub_event(1), false);
    CHECK_IS(find_event(t, stub_event(1)), ref);
    CHECK_IS(cs_map_get(&cs_event_handles, (uintptr_t)stub_event(1)), ref); /* without a mark */
    CHECK(!cs_load(&event_at(ref)->ended));
    destroy(stub_event(1), true);
    CHECK(cs_load(&event_at(ref)->ended));
    destroy(stub_event(1), true);
    CHECK_IS(release_all(&cs_events), 1);
    destroy(stub_event(77), true); /* never seen */
}

TEST(a_failing_destroy_beside_a_create)
{
    for (int order = 0; order < 4; order++) {
        struct cs_thread *t = start();
        cs_ref old = make_event(t, stub_event(1));
        cs_ref won = cs_event_destroying(stub_event(1)),
               refused = cs_event_destroying(stub_event(1));
        CHECK(won == old && refused == old);
        cs_ref fresh = order & 2 ? make_event(t, stub_event(1)) : 0;
        if (order & 1) cs_event_destroyed(won, true, cs_ticks());
        cs_event_destroyed(refused, false, cs_ticks());
        if (!(order & 1)) cs_event_destroyed(won, true, cs_ticks());
        CHECK(cs_load(&event_at(old)->ended));
        CHECK_IS(cs_map_get(&cs_event_handles, (uintptr_t)stub_event(1)),
            fresh ? fresh : old | CS_MAP_DEAD);
        CHECK_IS(release_all(&cs_events), 1);
        cs_ref found = find_event(t, stub_event(1));
        CHECK(event_at(found));
        if (fresh) CHECK_IS(found, fresh);
        else CHECK(found != old);
    }
}

TEST(a_handle_given_out_again_without_a_destroy_ends_the_old_object)
{
    struct cs_thread *t = start();
    cs_ref first = make_event(t, stub_event(1)), second = make_event(t, stub_event(1));
    CHECK(cs_load(&event_at(first)->ended) && !cs_load(&event_at(second)->ended));
    CHECK_IS(find_event(t, stub_event(1)), second);
    CHECK_IS(release_all(&cs_events), 1);
}

TEST(an_unknown_handle_is_adopted_once_it_is_accepted)
{
    struct cs_thread *t = start();
    CHECK_IS(cs_event_of(t, stub_event(1), false, cs_ticks()), 0);
    cs_ref ref = find_event(t, stub_event(1));
    REQUIRE(event_at(ref));
    CHECK_IS(event_at(ref)->call, 0);
    CHECK_IS(find_event(t, stub_event(1)), ref);
}

TEST(a_wait_finds_the_last_record)
{
    struct cs_thread *t = start();
    cs_ref event = make_event(t, stub_event(1)), stream = make_stream(t, stub_stream(1));
    CHECK_IS(cs_event_cause(stub_event(1)).ticks, 0);
    CHECK_IS(cs_event_cause(NULL).ticks, 0);
    CHECK_IS(cs_event_cause(stub_event(2)).ticks, 0);
    cs_event_recorded(event, 100, 11, stream);
    cs_event_recorded(event, 200, 12, stream);
    struct cs_cause cause = cs_event_cause(stub_event(1));
    CHECK_IS(cause.ticks, 200);
    CHECK_IS(cause.where, 12 | (cs_u64)stream << 32);
    destroy(stub_event(1), true);
    make_event(t, stub_event(1));
    CHECK_IS(cs_event_cause(stub_event(1)).ticks, 0); /* the new event has not been recorded */
    cs_event_recorded(0, 1, 1, 1);
}

TEST(a_reader_that_meets_a_writer_gets_nothing_rather_than_half)
{
    struct cs_thread *t = start();
    cs_ref ref = make_event(t, stub_event(1));
    cs_event_recorded(ref, 100, 11, 5);
    cs_store(&event_at(ref)->sequence,
        cs_load(&event_at(ref)->sequence) + 1); /* a writer at work, and descheduled */
    CHECK_IS(cs_event_cause(stub_event(1)).ticks, 0);
    cs_event_recorded(ref, 200, 12, 6); /* a second one leaves the field to it */
    cs_store(&event_at(ref)->sequence, cs_load(&event_at(ref)->sequence) + 1);
    CHECK_IS(cs_event_cause(stub_event(1)).ticks, 100);
}

TEST(more_events_than_there_is_room_for)
{
    enum { MANY = 140000 };
    struct cs_thread *t = start();
    int made = 0;
    for (int i = 0; i < MANY; i++) made += make_event(t, stub_event(i)) != 0;
    CHECK_IS(made, 131072);
    CHECK_IS(cs_load(&cs_events.refused), MANY - made);
    for (int i = 0; i < 10; i++) destroy(stub_event(i), true);
    CHECK_IS(release_all(&cs_events), 10);
    CHECK(make_event(t, stub_event(3)));
}

TEST(more_handles_than_the_table_has_places)
{
    enum { PLACES = (1 << 19) / 4 * 3 };
    struct cs_thread *t = start();
    int made = 0;
    for (int i = 0; i < PLACES + 10; i++) {
        made += make_event(t, stub_event(i)) != 0;
        destroy(stub_event(i), true);
        if (i % 10000 == 0) release_all(&cs_events);
    }
    CHECK(made <= PLACES && made > PLACES - 10);
    CHECK_IS(cs_load(&cs_events.refused), PLACES + 10 - made);
    CHECK(cs_load(&cs_events.high) <=
          10002); /* what was refused a place in the table is given back */
}

static void old_reference(int first, int second)
{
    struct cs_thread *t = start();
    cs_ref old = make_event(t, stub_event(first)), ref = 0;
    destroy(stub_event(first), true);
    for (int i = 0; i < 5000 && ref != old;
        i++) { /* until the slot's generations have come round */
        if (ref) destroy(stub_event(second), true);
        release_all(&cs_events);
        ref = make_event(t, stub_event(second));
    }
    REQUIRE(ref == old);
    CHECK_IS(cs_event_of(t, stub_event(first), false, cs_ticks()), 0);
    destroy(stub_event(first), true);
    CHECK(!cs_load(&event_at(ref)->ended));
    CHECK_IS(find_event(t, stub_event(second)), ref);
}

/* Whichever of the handles is the greater number. */
TEST(an_old_reference_means_no_other_event)
{
    old_reference(1, 2);
    old_reference(2, 1);
}
