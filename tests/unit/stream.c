/* Stream and context objects over a stub of the driver (object/stream.h, object/context.h). */
#include <limits.h>

#include "shim/base/lane.h"
#include "tests/unit/driver.h"

static struct cs_thread *start(void)
{
    stub_driver();
    stub_current = stub_context(0, 1);
    struct cs_thread *t = cs_thread_start();
    REQUIRE(t);
    return t;
}

static void destroy(struct cs_thread *t, CUstream handle, bool done)
{
    cs_ref ref = cs_stream_destroying(t, handle, false);
    cs_stream_destroyed(ref, done, cs_ticks());
}

TEST(a_created_stream_is_found)
{
    struct cs_thread *t = start();
    cs_ref ref = cs_stream_created(t, stub_stream(1), CU_STREAM_NON_BLOCKING, -100,
        CS_CALL_cuStreamCreateWithPriority, (const void *)&start, 1234);
    struct cs_stream *stream = stream_at(ref);
    REQUIRE(stream);
    CHECK_IS(find_stream(t, stub_stream(1)), ref);
    CHECK_IS(cs_stream_of(t, stub_stream(1), true, false, 0), ref);
    CHECK_IS(stream->priority_asked, -100);
    CHECK_IS(cs_load(&stream->priority), -5);
    CHECK_IS(stream->flags, CU_STREAM_NON_BLOCKING);
    CHECK_IS(stream->call, CS_CALL_cuStreamCreateWithPriority);
    CHECK_IS(stream->created, 1234);
    CHECK_IS(stream->tid, t->tid);
    CHECK_IS(stream->origin, CS_STREAM_CREATED);
    CHECK(context_at(stream->context)->handle == stub_current);
}

TEST(a_reused_handle_is_a_new_object)
{
    struct cs_thread *t = start();
    cs_ref first = make_stream(t, stub_stream(1));
    cs_u32 lane = stream_at(first)->lane;
    destroy(t, stub_stream(1), true);
    CHECK(cs_load(&stream_at(first)->ended));
    cs_ref second = make_stream(t, stub_stream(1));
    CHECK(first != second && stream_at(second) && stream_at(second)->lane != lane);
    CHECK_IS(find_stream(t, stub_stream(1)), second);
    CHECK(stream_at(first)); /* still there for its records */
    CHECK_IS(release_all(&cs_streams), 1);
    CHECK(!stream_at(first) && stream_at(second));
    CHECK_IS(find_stream(t, stub_stream(1)), second);
}

TEST(a_handle_given_out_again_without_a_destroy_ends_the_old_object)
{
    struct cs_thread *t = start();
    cs_ref first = make_stream(t, stub_stream(1)), second = make_stream(t, stub_stream(1));
    CHECK(first != second);
    CHECK(cs_load(&stream_at(first)->object.ended) && cs_load(&stream_at(first)->ended));
    CHECK(!cs_load(&stream_at(second)->object.ended));
    CHECK_IS(release_all(&cs_streams), 1);
}

TEST(a_refused_destroy_leaves_it_alive)
{
    struct cs_thread *t = start();
    cs_ref ref = make_stream(t, stub_stream(1));
    destroy(t, stub_stream(1), false);
    CHECK_IS(find_stream(t, stub_stream(1)), ref);
    CHECK_IS(cs_map_get(&cs_stream_handles, (uintptr_t)stub_stream(1)), ref); /* without a mark */
    CHECK(!cs_load(&stream_at(ref)->ended) && !cs_load(&stream_at(ref)->object.ended));
    CHECK_IS(release_all(&cs_streams), 0);
    destroy(t, stub_stream(1), true);
    CHECK(cs_load(&stream_at(ref)->ended));
}

TEST(created_while_its_handle_is_being_destroyed)
{
    struct cs_thread *t = start();
    cs_ref first = make_stream(t, stub_stream(1));
    cs_ref dying = cs_stream_destroying(t, stub_stream(1), false);
    cs_ref second = make_stream(
        t, stub_stream(1)); /* another thread, before the driver's destroy has returned */
    CHECK_IS(dying, first);
    cs_stream_destroyed(dying, true, cs_ticks());
    CHECK_IS(find_stream(t, stub_stream(1)), second);
    CHECK(cs_load(&stream_at(first)->ended) && !cs_load(&stream_at(second)->ended));
}

/* Two threads destroy one handle: one of them succeeds, the other is refused, and a third gets the
 * handle anew. Every order of their outcomes. */
TEST(a_failing_destroy_beside_a_create)
{
    for (int order = 0; order < 4; order++) {
        struct cs_thread *t = start();
        cs_ref old = make_stream(t, stub_stream(1));
        cs_ref won = cs_stream_destroying(t, stub_stream(1), false),
               refused = cs_stream_destroying(t, stub_stream(1), false);
        CHECK(won == old && refused == old);
        cs_ref fresh = order & 2 ? make_stream(t, stub_stream(1)) : 0;
        if (order & 1) cs_stream_destroyed(won, true, cs_ticks());
        cs_stream_destroyed(refused, false, cs_ticks());
        if (!(order & 1)) cs_stream_destroyed(won, true, cs_ticks());
        CHECK(cs_load(&stream_at(old)->ended));
        cs_u64 now = cs_map_get(&cs_stream_handles, (uintptr_t)stub_stream(1));
        if (fresh) CHECK_IS(now, fresh);
        else CHECK_IS(now, old | CS_MAP_DEAD); /* nobody's, whoever was last */
        release_all(&cs_streams);
        cs_ref found = find_stream(t, stub_stream(1));
        CHECK(stream_at(found)); /* the new one, or one adopted: never the one that is gone */
        CHECK(found != old);
    }
}

TEST(calls_on_a_dead_handle)
{
    struct cs_thread *t = start();
    cs_ref ref = make_stream(t, stub_stream(1));
    cs_u64 early = cs_ticks();
    destroy(t, stub_stream(1), true);
    CHECK_IS(cs_stream_of(t, stub_stream(1), false, true, early),
        ref); /* was under way when it was destroyed */
    CHECK_IS(cs_stream_of(t, stub_stream(1), false, false, cs_ticks()),
        ref); /* refused: it meant the dead one */
    cs_ref adopted = cs_stream_of(t, stub_stream(1), false, true,
        cs_ticks() + 1000000); /* accepted later: made by a way we do not see */
    CHECK(adopted && adopted != ref);
    CHECK_IS(stream_at(adopted)->origin, CS_STREAM_ADOPTED);
    CHECK_IS(find_stream(t, stub_stream(1)), adopted);
}

TEST(an_unknown_handle_is_adopted_once_it_is_accepted)
{
    struct cs_thread *t = start();
    CHECK_IS(cs_stream_of(t, stub_stream(9), false, false, cs_ticks()), 0);
    cs_ref ref = find_stream(t, stub_stream(9));
    const struct cs_stream *stream = stream_at(ref);
    REQUIRE(stream);
    CHECK_IS(stream->origin, CS_STREAM_ADOPTED);
    CHECK_IS(stream->flags, CU_STREAM_NON_BLOCKING);
    CHECK_IS(stream->priority, -5);
    CHECK_IS(stream->call, 0);
    CHECK_IS(find_stream(t, stub_stream(9)), ref);
    destroy(t, stub_stream(9), true);
    CHECK(cs_load(&stream->ended));
}

TEST(one_that_captures_is_asked_when_that_has_ended)
{
    struct cs_thread *t = start();
    stub_captures = 1;
    cs_ref ref = find_stream(t, stub_stream(9));
    REQUIRE(stream_at(ref));
    CHECK(cs_load(&stream_at(ref)->unasked) && !stream_at(ref)->flags &&
          cs_load(&stream_at(ref)->priority) == -5);
    cs_stream_capture(ref, cs_ticks());
    CHECK(cs_load(&stream_at(ref)->unasked));
    stub_captures = 0;
    cs_stream_capture(ref, 0);
    CHECK(!cs_load(&stream_at(ref)->unasked));
    CHECK_IS(stream_at(ref)->flags, CU_STREAM_NON_BLOCKING);
    CHECK_IS(stream_at(ref)->flags_asked, CU_STREAM_NON_BLOCKING);
}

static void *other_thread(void *out)
{
    struct cs_thread *t = cs_thread_start();
    cs_ref *refs = out;
    stub_current = stub_context(0, 1);
    refs[0] = cs_stream_of(t, NULL, false, true, 0);
    refs[1] = cs_stream_of(t, NULL, true, true, 0);
    return NULL;
}

TEST(default_streams)
{
    struct cs_thread *t = start();
    cs_ref legacy = cs_stream_of(t, NULL, false, true, 0),
           own = cs_stream_of(t, NULL, true, true, 0), theirs[2];
    REQUIRE(stream_at(legacy) && stream_at(own));
    CHECK(legacy != own);
    CHECK_IS(cs_stream_of(t, CU_STREAM_LEGACY, false, true, 0), legacy);
    CHECK_IS(cs_stream_of(t, CU_STREAM_LEGACY, true, true, 0), legacy);
    CHECK_IS(cs_stream_of(t, CU_STREAM_PER_THREAD, false, true, 0), own);
    CHECK_IS(stream_at(legacy)->lane, 7);
    CHECK(stream_at(own)->lane >= 13);
    CHECK_IS(stream_at(legacy)->origin, CS_STREAM_LEGACY);
    CHECK_IS(stream_at(own)->origin, CS_STREAM_PER_THREAD);
    pthread_t thread;
    REQUIRE(!pthread_create(&thread, NULL, other_thread, theirs) && !pthread_join(thread, NULL));
    CHECK_IS(theirs[0], legacy);
    CHECK(theirs[1] && theirs[1] != own);
    stub_current = stub_context(0, 2); /* one legacy stream a context */
    cs_context_set(t, stub_current);
    cs_ref second = cs_stream_of(t, NULL, false, true, 0);
    CHECK(second != legacy && stream_at(second)->lane != 7);
    stub_current = stub_context(0, 1);
    cs_context_set(t, stub_current);
    CHECK_IS(cs_stream_of(t, NULL, false, true, 0), legacy);
    CHECK_IS(cs_stream_of(t, NULL, true, true, 0), own);
    stub_current = NULL;
    cs_context_set(t, NULL);
    CHECK_IS(cs_stream_of(t, NULL, false, true, 0), 0);
}

TEST(default_streams_cannot_be_destroyed)
{
    struct cs_thread *t = start();
    cs_ref legacy = cs_stream_of(t, NULL, false, true, 0);
    destroy(t, NULL, true);
    destroy(t, CU_STREAM_LEGACY, true);
    CHECK(!cs_load(&stream_at(legacy)->ended));
    CHECK_IS(cs_stream_of(t, NULL, false, true, 0), legacy);
}

TEST(the_driver_is_asked_for_the_context_once)
{
    struct cs_thread *t = start();
    for (int i = 0; i < 100; i++) cs_context_current(t);
    CHECK_IS(stub_current_asked, 1);
    cs_context_set(t, stub_current);
    for (int i = 0; i < 100; i++) cs_context_current(t);
    CHECK_IS(stub_current_asked, 1);
    cs_add(&cs_context_epoch, 1); /* some context has ended */
    cs_context_set(t, stub_current);
    cs_context_current(t);
    CHECK_IS(stub_current_asked, 1);
    cs_context_forget(t);
    cs_context_current(t);
    CHECK_IS(stub_current_asked, 2);
}

TEST(a_context_takes_its_streams_and_events_with_it)
{
    struct cs_thread *t = start();
    CUcontext first = stub_context(0, 1), second = stub_context(1, 2);
    cs_ref a = make_stream(t, stub_stream(1)), legacy = cs_stream_of(t, NULL, false, true, 0),
           event = make_event(t, stub_event(1));
    stub_current = second;
    cs_context_set(t, second);
    cs_ref b = make_stream(t, stub_stream(2)), other = make_event(t, stub_event(2));
    cs_context_set(t, first); /* more of the first one's, behind the other's */
    stub_current = first;
    cs_ref last = make_stream(t, stub_stream(3)), last_event = make_event(t, stub_event(3));
    cs_context_set(t, second);
    stub_current = second;
    CHECK_IS(stream_at(b)->device, 1);
    cs_u32 epoch = cs_load(&cs_context_epoch);
    cs_context_destroyed(cs_context_destroying(first), true);
    CHECK(cs_load(&cs_context_epoch) != epoch);
    CHECK(cs_load(&stream_at(a)->ended) && cs_load(&stream_at(legacy)->ended) &&
          cs_load(&event_at(event)->ended));
    CHECK(cs_load(&stream_at(last)->ended) && cs_load(&event_at(last_event)->ended));
    CHECK(!cs_load(&stream_at(b)->ended) && !cs_load(&event_at(other)->ended));
    CHECK_IS(find_stream(t, stub_stream(2)), b);
    stub_current = first; /* the handle comes back as another context */
    cs_context_of(first, -1), cs_context_set(t, first);
    cs_ref anew = cs_stream_of(t, NULL, false, true, 0);
    CHECK(anew && anew != legacy && stream_at(anew)->context != stream_at(legacy)->context);
    CHECK_IS(release_all(&cs_streams), 3);
    CHECK_IS(release_all(&cs_events), 2);
    CHECK_IS(release_all(&cs_contexts), 1);
}

TEST(a_contexts_handle_comes_back_before_its_destroy_returns)
{
    struct cs_thread *t = start();
    CUcontext handle = stub_context(0, 1);
    cs_context_made(handle), cs_context_set(t, handle);
    cs_ref before = make_stream(t, stub_stream(1)), old = cs_context_current(t);
    CHECK_IS(cs_context_destroying(handle), old);
    cs_context_made(handle), cs_context_set(t, handle); /* on another thread */
    cs_ref anew = cs_context_current(t), after = make_stream(t, stub_stream(2));
    CHECK(anew && anew != old &&
          cs_load(&((struct cs_context *)cs_pool_get(&cs_contexts, anew))->made));
    cs_context_destroyed(old, true);
    CHECK(cs_load(&stream_at(before)->ended) && !cs_load(&stream_at(after)->ended));
    CHECK_IS(cs_context_of(handle, -1), anew);
    CHECK_IS(cs_context_destroying(handle), anew);
    cs_context_destroyed(anew, false); /* refused */
    CHECK_IS(cs_context_of(handle, -1), anew);
    CHECK(!cs_load(&stream_at(after)->ended));
    CHECK_IS(cs_context_destroying(handle), anew);
    CHECK_IS(cs_context_destroying(handle),
        anew); /* twice at once: the second is refused, before or after the first has ended */
    cs_context_destroyed(anew, false);
    cs_context_destroyed(anew, true);
    CHECK(cs_load(&stream_at(after)->ended) && cs_context_of(handle, -1) != anew);
    CHECK_IS(release_all(&cs_contexts), 2);
}

TEST(a_primary_context_ends_by_its_device)
{
    struct cs_thread *t = start();
    cs_context_is_primary(stub_context(0, 1), 0);
    cs_context_is_primary(stub_context(1, 2), 1);
    cs_ref mine = make_stream(t, stub_stream(1));
    stub_current = stub_context(0, 3); /* another context of that device, not its primary */
    cs_context_of(stub_current, -1), cs_context_set(t, stub_current);
    cs_ref third = make_stream(t, stub_stream(3));
    CHECK(cs_context_primary_active(0));
    stub_primary_active = 0;
    CHECK(!cs_context_primary_active(0));
    cs_context_primary_ended(0);
    CHECK(cs_load(&stream_at(mine)->ended));
    CHECK(!cs_load(&stream_at(third)->ended));
}

TEST(devices_have_names_and_facts_up_to_the_last_that_is_kept)
{
    static const int devices[] = {0, 1, 62, 63, 64, 65, 1000, INT_MAX};
    const char *name, *other;
    start();
    for (size_t i = 0; i < CS_COUNT(devices); i++) {
        char text[32] = "";
        const bool kept = devices[i] < 64;
        CHECK_IS(cs_device_fact(devices[i], 0, &name), 0); /* not met yet */
        CHECK_TEXT(cs_device_name(devices[i]), "");
        struct cs_context *context =
            context_at(cs_context_of(stub_context(1, 100 + (int)i), devices[i]));
        CHECK(context && context->device == devices[i]);
        if (kept) snprintf(text, sizeof text, "stub %d", devices[i]);
        CHECK_TEXT(cs_device_name(devices[i]), text);
        for (int fact = 0; fact < CS_DEVICE_FACTS; fact++) {
            CHECK_IS(cs_device_fact(devices[i], fact, &name), kept ? 132 : 0);
            CHECK(!fact || (cs_device_fact(devices[i], fact - 1, &other), strcmp(name, other)));
        }
    }
    CHECK_TEXT(cs_device_name(-1), "");
    CHECK_IS(cs_device_fact(-1, 1, &name), 0);
    CHECK_TEXT(name, "computeMajor");
}

TEST(a_green_contexts_stream_is_not_the_current_contexts)
{
    struct cs_thread *t = start();
    stub_stream_context = stub_context(0, 5);
    cs_ref ref = make_stream(t, stub_stream(1));
    CHECK(context_at(stream_at(ref)->context)->handle == stub_context(0, 5));
}

TEST(more_streams_than_there_is_room_for)
{
    enum { MANY = 70000 };
    struct cs_thread *t = start();
    int made = 0;
    for (int i = 0; i < MANY; i++) made += make_stream(t, stub_stream(i)) != 0;
    CHECK(made == 65536);
    CHECK_IS(cs_load(&cs_streams.refused), MANY - made);
    CHECK_IS(find_stream(t, stub_stream(MANY - 1)), 0);
    for (int i = 0; i < 1000; i++) destroy(t, stub_stream(i), true);
    CHECK_IS(release_all(&cs_streams), 1000);
    CHECK(make_stream(t, stub_stream(5)));
    CHECK(stream_at(find_stream(t, stub_stream(5))));
}

TEST(capture_is_noted_by_stream)
{
    struct cs_thread *t = start();
    cs_ref ref = make_stream(t, stub_stream(1)), other = make_stream(t, stub_stream(2));
    CHECK_IS(cs_stream_captures(ref), 0);
    cs_stream_capture(ref, 77);
    CHECK_IS(cs_stream_captures(ref), 77);
    CHECK_IS(cs_stream_captures(other), 0);
    cs_stream_capture(ref, 0);
    CHECK_IS(cs_stream_captures(ref), 0);
    cs_stream_capture(0, 5);
    CHECK_IS(cs_stream_captures(0), 0);
    CHECK(cs_capture_is_over(CUDA_SUCCESS) &&
          cs_capture_is_over(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
    CHECK(!cs_capture_is_over(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) &&
          !cs_capture_is_over(CUDA_ERROR_INVALID_VALUE));
}

static void *one_call(void *unused)
{
    struct cs_thread *t = cs_thread_start();
    return (void)unused, (void *)(uintptr_t)t->index;
}

/* Of all errors there are, so many end a capture: the others leave it as it was, or are of a call
 * that meant none. */
TEST(which_answers_end_a_capture)
{
    for (int result = 0; result < 1000; result++) {
        const bool over = result == CUDA_SUCCESS ||
                          result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ||
                          result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
                          result == CUDA_ERROR_STREAM_CAPTURE_MERGE ||
                          result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED ||
                          result == CUDA_ERROR_STREAM_CAPTURE_ISOLATION ||
                          result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        if (cs_capture_is_over((CUresult)result) != over)
            fprintf(stderr, "result %d\n", result), check_failures++;
    }
}

TEST(a_threads_state_is_used_again_when_it_is_drained)
{
    struct cs_thread *t = start();
    pthread_t thread;
    void *numbers[3];
    cs_threads_init();
    for (int i = 0; i < 3; i++) {
        REQUIRE(
            !pthread_create(&thread, NULL, one_call, NULL) && !pthread_join(thread, &numbers[i]));
        for (struct cs_thread *at = cs_load(&cs_threads); i < 2 && at; at = at->next)
            if (cs_load(&at->state) == CS_THREAD_DONE) cs_thread_recycle(at);
    }
    int states = 0;
    for (struct cs_thread *at = cs_load(&cs_threads); at; at = at->next) states++;
    CHECK_IS(states, 2); /* ours, and one that three threads had in turn */
    CHECK(numbers[0] == numbers[1] && numbers[1] == numbers[2]);
    CHECK_IS(cs_load(&t->state), CS_THREAD_LIVE);
}

TEST(a_handle_destroyed_during_a_call_is_not_adopted)
{
    struct cs_thread *t = start();
    cs_ref ref = make_stream(t, stub_stream(1));
    cs_u64 began = cs_ticks();
    destroy(t, stub_stream(1), true);
    CHECK_IS(cs_stream_of(t, stub_stream(1), false, true, began), ref);
    cs_store(&cs_streams.released, cs_ticks()); /* as the writer does */
    CHECK_IS(release_all(&cs_streams), 1);
    CHECK_IS(cs_stream_of(t, stub_stream(1), false, true, began), 0);
    ref = cs_stream_of(
        t, stub_stream(1), false, true, cs_ticks() + 1); /* given out again, out of sight */
    REQUIRE(stream_at(ref));
    CHECK_IS(stream_at(ref)->origin, CS_STREAM_ADOPTED);

    began = cs_ticks();
    CHECK_IS(cs_stream_destroying(t, stub_stream(2), false), 0); /* never seen */
    cs_stream_destroyed(0, true, cs_ticks());
    CHECK_IS(cs_stream_of(t, stub_stream(2), false, true, began), 0);
    CHECK(cs_stream_of(t, stub_stream(2), false, true, cs_ticks() + 1));
}

static void old_reference(int first, int second)
{
    struct cs_thread *t = start();
    cs_ref old = make_stream(t, stub_stream(first)), ref = 0;
    destroy(t, stub_stream(first), true);
    for (int i = 0; i < 5000 && ref != old;
        i++) { /* until the slot's generations have come round */
        if (ref) destroy(t, stub_stream(second), true);
        release_all(&cs_streams);
        ref = make_stream(t, stub_stream(second));
    }
    REQUIRE(ref == old);
    CHECK_IS(cs_stream_of(t, stub_stream(first), false, false, cs_ticks()), 0);
    destroy(t, stub_stream(first), true);
    CHECK(!cs_load(&stream_at(ref)->ended));
    CHECK_IS(find_stream(t, stub_stream(second)), ref);
}

/* Whichever of the handles is the greater number. */
TEST(an_old_reference_means_no_other_stream)
{
    old_reference(1, 2);
    old_reference(2, 1);
}

TEST(no_number_of_a_stream_is_that_of_another_lane)
{
    cs_u32 most = 0;
    REQUIRE(cs_streams_init());
    for (cs_u32 i = 0; i < CS_LANE_STREAMS + 100000u; i++) {
        const cs_u32 lane = cs_stream_lane(5, 0, false);
        if (lane > most) most = lane;
        REQUIRE(lane && lane < CS_LANE_STREAMS);
    }
    CHECK(most > 16000000);
    for (int kind = CS_LANE_WORK; kind < CS_LANE_KINDS; kind++)
        for (cs_u32 level = 0; level < CS_LANE_LEVELS; level++) {
            const cs_u32 tid = cs_lane_tid(most, (enum cs_lane_kind)kind, level);
            CHECK(tid <= INT32_MAX && cs_lane_stream_of(tid) == most &&
                  (int)cs_lane_kind_of(tid) == kind);
        }
}
