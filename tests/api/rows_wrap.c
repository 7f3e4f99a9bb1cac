/* Streams that somebody else made and destroys. */
#include "tests/api/rows.h"

ROW(22, "wrap a handle that somebody else owns")
{
    CUstream raw;
    custream_t s = NULL, same = NULL, owner = NULL, also = NULL;
    int released = 0;

    start();
    OK(cuStreamCreate(&raw, CU_STREAM_DEFAULT));
    WORKS(custream_wrap(&s, raw, -1, NULL, NULL));
    CHECK(handle_of(s) == raw);
    CHECK_IS(owned(s), 0);
    WORKS(custream_wrap(&same, raw, 0, count_call, &released));
    CHECK(same == s);
    CHECK_IS(count_of(&released), 1); /* the first one's stands */
    WORKS(custream_release(same));
    WORKS(custream_query(s));
    WORKS(custream_release(s));
    OK(cuStreamQuery(raw));
    OK(cuStreamDestroy(raw));

    owner = new_stream();
    WORKS(custream_wrap(&also, handle_of(owner), -1, count_call, &released));
    CHECK(also == owner);
    CHECK_IS(count_of(&released), 2);
    CHECK_IS(owned(also), 1);
    raw = handle_of(owner);
    WORKS(custream_release(owner));
    OK(cuStreamQuery(raw)); /* the other reference */
    WORKS(custream_release(also));
    GONE(cuStreamQuery(raw));
}

ROW_SIMULATED(22_dead, "handles that nobody has")
{
    CUstream raw;
    custream_t s;
    int released = 0;

    start();
    OK(cuStreamCreate(&raw, CU_STREAM_DEFAULT));
    OK(cuStreamDestroy(raw));
    FAILS(custream_wrap(&s, raw, -1, count_call, &released), INVALID_HANDLE, s);
    FAILS(
        custream_wrap(&s, (void *)(uintptr_t)0x1230, -1, count_call, &released), INVALID_HANDLE, s);
    FAILS(custream_wrap(&s, raw, 99, count_call, &released), INVALID_VALUE, s);
    CHECK_IS(count_of(&released), 0); /* it stays the caller's */
    GIVES(custream_wrap(NULL, NULL, -1, NULL, NULL), INVALID_VALUE);
}

/* Its owner destroys it while it is wrapped: statuses, no crash. */
ROW_SIMULATED(22_lost, "the owner destroys a wrapped stream")
{
    CUstream raw;
    custream_t s = NULL, other;
    custream_event_t e;
    void *context_of;

    start();
    other = new_stream();
    OK(cuStreamCreate(&raw, CU_STREAM_DEFAULT));
    WORKS(custream_wrap(&s, raw, -1, NULL, NULL));
    OK(cuStreamDestroy(raw));
    GIVES(custream_query(s), INVALID_HANDLE);
    GIVES(custream_synchronize(s), INVALID_HANDLE);
    FAILS(custream_get_context(s, &context_of), INVALID_HANDLE, context_of);
    e = new_event();
    WORKS(custream_record(other, e, 0));
    GIVES(custream_record(s, e, 0), INVALID_HANDLE);
    GIVES(custream_wait_event(s, e, 0), INVALID_HANDLE);
    GIVES(custream_wait_stream(other, s, NULL, 0), INVALID_HANDLE);
    GIVES(custream_wait_stream(s, other, NULL, 0), INVALID_HANDLE);
    WORKS(custream_event_release(e));
    WORKS(custream_release(other));
    WORKS(custream_release(s));
}

/* The next stream has the same handle. The object of the first must not stand for it. */
ROW(22_reused, "a handle that means another stream now")
{
    CUstream raw, next;
    custream_t s = NULL, t = NULL;
    int released = 0;

    start();
    OK(cuStreamCreateWithPriority(&raw, CU_STREAM_DEFAULT, -1));
    WORKS(custream_wrap(&s, raw, -1, count_call, &released));
    OK(cuStreamDestroy(raw));
    OK(cuStreamCreateWithPriority(&next, CU_STREAM_NON_BLOCKING, -3));
    CHECK(next == raw);
    WORKS(custream_wrap(&t, next, -1, count_call, &released));
    CHECK_IS(priority_of(t), -3);
    CHECK_IS(nonblocking(t), 1);
    WORKS(custream_query(t));
    WORKS(custream_release(s));
    WORKS(custream_query(t));
    WORKS(custream_release(t));
    CHECK_IS(count_of(&released), 2);
    OK(cuStreamDestroy(next));
}

ROW_WITH(22_mismatch, "a stream of another device than is said", "CUSTREAM_FAKE_DEVICES=2")
{
    CUstream raw;
    custream_t s, known;
    int released = 0;

    start();
    OK(cuStreamCreate(&raw, CU_STREAM_DEFAULT));
    FAILS(custream_wrap(&s, raw, 1, count_call, &released), DEVICE_MISMATCH, s);
    known = new_stream();
    FAILS(custream_wrap(&s, handle_of(known), 1, count_call, &released), DEVICE_MISMATCH, s);
    CHECK_IS(count_of(&released), 0);
    WORKS(custream_release(known));
    OK(cuStreamDestroy(raw));
}

ROW(22_defaults, "handles 0, 1 and 2 are the default streams")
{
    custream_t legacy, per_thread, s = NULL;
    int released = 0;

    start();
    WORKS(custream_legacy_default(&legacy));
    WORKS(custream_per_thread_default(&per_thread));
    WORKS(custream_wrap(&s, NULL, -1, count_call, &released));
    CHECK(s == legacy);
    WORKS(custream_wrap(&s, CU_STREAM_LEGACY, -1, count_call, &released));
    CHECK(s == legacy);
    WORKS(custream_wrap(&s, CU_STREAM_PER_THREAD, -1, count_call, &released));
    CHECK(s == per_thread);
    CHECK_IS(count_of(&released), 3);
}

ROW(23, "wrap a handle and keep its owner alive")
{
    CUstream raw;
    custream_t s = NULL;
    int released = 0;

    start();
    OK(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    WORKS(custream_wrap(&s, raw, -1, count_call, &released));
    WORKS(custream_retain(s));
    WORKS(custream_release(s));
    CHECK_IS(count_of(&released), 0);
    WORKS(custream_set_current(s, 0));
    WORKS(custream_release(s));
    CHECK_IS(count_of(&released), 0); /* the thread's reference */
    WORKS(custream_legacy_default(&s));
    WORKS(custream_set_current(s, 0));
    CHECK_IS(count_of(&released), 1);
    OK(cuStreamDestroy(raw));
}

ROW(27, "a borrowed stream is not destroyed")
{
    CUstream raw;
    custream_t s = NULL;
    int released = 0;

    start();
    OK(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    for (int i = 1; i <= 3; i++) {
        WORKS(custream_wrap(&s, raw, -1, count_call, &released));
        CHECK_IS(owned(s), 0);
        if (i == 2) WORKS(custream_close(s));
        WORKS(custream_release(s));
        CHECK_IS(count_of(&released), i);
        OK(cuStreamQuery(raw));
    }
    OK(cuStreamDestroy(raw));
}

static CUstream outer_raw;
static void calls_back(void *number)
{
    custream_t again = NULL;

    WORKS(custream_release(new_stream()));
    WORKS(custream_wrap(
        &again, outer_raw, -1, count_call, number)); /* its object has ended: this is another */
    WORKS(custream_query(again));
    WORKS(custream_release(again));
}

ROW(23_reenter, "the owner's release uses the library")
{
    custream_t s = NULL;
    int released = 0;

    start();
    OK(cuStreamCreate(&outer_raw, CU_STREAM_NON_BLOCKING));
    WORKS(custream_wrap(&s, outer_raw, -1, calls_back, &released));
    WORKS(custream_release(s));
    CHECK_IS(count_of(&released), 1);
    WORKS(custream_wrap(&s, outer_raw, -1, calls_back, &released));
    WORKS(custream_close(s));
    WORKS(custream_release(s));
    CHECK_IS(count_of(&released), 2);
    OK(cuStreamDestroy(outer_raw));
}
