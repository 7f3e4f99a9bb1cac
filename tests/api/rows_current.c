/* The current stream: of threads and devices, its stack, and what switching does. */
#include "tests/api/rows.h"

static custream_t legacy(void)
{
    custream_t s = NULL;
    WORKS(custream_legacy_default(&s));
    return s;
}

static custream_t seen[2];
static void look(void)
{
    OK(cuCtxSetCurrent(context));
    seen[0] = current_on(0);
    seen[1] = current_on(1);
}

ROW(33, "ask for the current stream")
{
    custream_t s = NULL;
    CUstream raw;

    start();
    CHECK(current_on(-1) == legacy());
    CHECK(current_on(0) == legacy());
    WORKS(custream_set_current(s = new_stream(), 0));
    CHECK(current_on(-1) == s && current_on(0) == s);
    WORKS(custream_release(s));
    WORKS(custream_current(-1, &s)); /* a reference of our own: it outlives its being current */
    raw = handle_of(s);
    WORKS(custream_set_current(legacy(), 0));
    OK(cuStreamQuery(raw));
    WORKS(custream_release(s));
    GONE(cuStreamQuery(raw));
    GIVES(custream_current(-1, NULL), INVALID_VALUE);
    FAILS(custream_current(99, &s), INVALID_VALUE, s);
    FAILS(custream_current(-2, &s), INVALID_VALUE, s);
}

static custream_t own_one;
static void set_own(void)
{
    OK(cuCtxSetCurrent(context));
    CHECK(current_on(0) == legacy());
    WORKS(custream_set_current(own_one, 0));
    CHECK(current_on(0) == own_one);
}

ROW_WITH(34, "current of a thread and a device", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t here, there;

    start();
    here = new_stream();
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    own_one = new_stream();
    WORKS(custream_set_current(here, 0));
    WORKS(custream_set_current(there, 0));
    CHECK(current_on(0) == here && current_on(1) == there && current_on(-1) == here);
    OK(cuCtxSetCurrent(primary_of(1)));
    CHECK(current_on(-1) == there);
    OK(cuCtxSetCurrent(context));
    in_thread(set_own);
    CHECK(current_on(0) == here);
    in_thread(look);
    CHECK(seen[0] == legacy() && seen[1] == legacy());
}

static custream_t of_process;
static pthread_barrier_t step;
static void *has_own(void *unused)
{
    (void)unused;
    OK(cuCtxSetCurrent(context));
    WORKS(custream_set_current(own_one, 0));
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step); /* the process's was set meanwhile */
    CHECK(current_on(0) == own_one);
    return NULL;
}
static void *has_none(void *unused)
{
    (void)unused;
    OK(cuCtxSetCurrent(context));
    CHECK(current_on(0) == legacy());
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    CHECK(current_on(0) == of_process);
    return NULL;
}

ROW_WITH(34_process, "current of the process", "CUSTREAM_FAKE_DEVICES=2")
{
    pthread_t threads[2];

    start();
    of_process = new_stream();
    own_one = new_stream();
    pthread_barrier_init(&step, NULL, 3);
    pthread_create(&threads[0], NULL, has_own, NULL);
    pthread_create(&threads[1], NULL, has_none, NULL);
    pthread_barrier_wait(&step);
    WORKS(custream_set_current(of_process, CUSTREAM_SCOPE_PROCESS));
    pthread_barrier_wait(&step);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    CHECK(current_on(0) == of_process); /* ours too: we set none */
    in_thread(look);
    CHECK(seen[0] == of_process && seen[1] == legacy());
}

ROW(35, "set the current stream")
{
    custream_t s, t;
    CUstream raw;

    start();
    s = new_stream();
    t = new_stream();
    WORKS(custream_set_current(s, CUSTREAM_SCOPE_THREAD));
    raw = handle_of(s);
    WORKS(custream_release(s));
    OK(cuStreamQuery(raw)); /* the thread holds it */
    WORKS(custream_set_current(s, 0));
    OK(cuStreamQuery(raw));
    WORKS(custream_set_current(t, 0));
    GONE(cuStreamQuery(raw));
    GIVES(custream_set_current(NULL, 0), INVALID_VALUE);
    GIVES(custream_set_current(t, 1u << 20), INVALID_VALUE);
    CHECK(current_on(-1) == t);
    WORKS(custream_set_current(legacy(), 0));
    WORKS(custream_close(t));
    GIVES(custream_set_current(t, 0), CLOSED);
    CHECK(current_on(-1) == legacy());
    WORKS(custream_release(t));
}

static CUstream thread_raw;
static void set_and_end(void)
{
    custream_t s;

    OK(cuCtxSetCurrent(context));
    s = new_stream();
    thread_raw = handle_of(s);
    WORKS(custream_set_current(s, 0));
    WORKS(custream_push(s, 0));
    WORKS(custream_release(s));
    OK(cuStreamQuery(thread_raw));
}

ROW(35_thread_ends, "a thread's references end with it")
{
    start();
    in_thread(set_and_end);
    GONE(cuStreamQuery(thread_raw));
}

ROW_WITH(
    35_defaults, "a default stream is current on the current device", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t here, there, per_thread;

    start();
    here = new_stream();
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    WORKS(custream_set_current(here, 0));
    WORKS(custream_set_current(there, 0));
    WORKS(custream_per_thread_default(&per_thread));
    WORKS(custream_set_current(per_thread, 0));
    CHECK(current_on(0) == per_thread && current_on(1) == there);
    OK(cuCtxSetCurrent(primary_of(1)));
    WORKS(custream_set_current(legacy(), 0));
    CHECK(current_on(0) == per_thread && current_on(1) == legacy());
}

ROW(36, "push and pop")
{
    custream_t a, b, c;

    start();
    a = new_stream();
    b = new_stream();
    c = new_stream();
    GIVES(custream_pop(0), INVALID_VALUE);
    WORKS(custream_set_current(a, 0));
    GIVES(custream_pop(0), INVALID_VALUE);
    WORKS(custream_push(b, 0));
    WORKS(custream_push(c, 0));
    WORKS(custream_push(c, 0)); /* the same again counts */
    CHECK(current_on(-1) == c);
    WORKS(custream_pop(0));
    CHECK(current_on(-1) == c);
    WORKS(custream_pop(0));
    CHECK(current_on(-1) == b);
    WORKS(custream_set_current(c, 0)); /* undone by the pop */
    CHECK(current_on(-1) == c);
    WORKS(custream_pop(0));
    CHECK(current_on(-1) == a);
    GIVES(custream_pop(0), INVALID_VALUE);
    CHECK(current_on(-1) == a);
}

static void pop_nothing(void)
{
    OK(cuCtxSetCurrent(context));
    GIVES(custream_pop(0), INVALID_VALUE);
    CHECK(current_on(-1) == legacy());
}

ROW(36_refused, "a push that fails pushes nothing; the stack is the thread's")
{
    custream_t s, closed;

    start();
    s = new_stream();
    closed = new_stream();
    WORKS(custream_close(closed));
    GIVES(custream_push(NULL, 0), INVALID_VALUE);
    GIVES(custream_push(s, 1u << 20), INVALID_VALUE);
    GIVES(custream_push(closed, 0), CLOSED);
    GIVES(custream_pop(0), INVALID_VALUE);
    WORKS(custream_push(s, 0));
    in_thread(pop_nothing);
    GIVES(custream_pop(1u << 20), INVALID_VALUE);
    CHECK(current_on(-1) == s);
    WORKS(custream_pop(0));
    CHECK(current_on(-1) == legacy());
}

ROW(36_references, "the stack holds its streams")
{
    custream_t a, b;
    CUstream raw_a, raw_b;

    start();
    a = new_stream();
    b = new_stream();
    raw_a = handle_of(a);
    raw_b = handle_of(b);
    WORKS(custream_set_current(a, 0));
    WORKS(custream_push(b, 0));
    WORKS(custream_release(a));
    WORKS(custream_release(b));
    OK(cuStreamQuery(raw_a));
    OK(cuStreamQuery(raw_b));
    WORKS(custream_pop(0));
    GONE(cuStreamQuery(raw_b));
    CHECK(handle_of(current_on(-1)) == raw_a);
}

ROW_WITH(36_devices, "pop restores the device that push switched, and both devices' streams",
    "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t here, there, other;

    start();
    here = new_stream();
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    other = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    WORKS(custream_set_current(here, 0));
    WORKS(custream_set_current(other, 0));
    WORKS(custream_push(there, CUSTREAM_SWITCH_DEVICE));
    CHECK_IS(current_device(), 1);
    CHECK(current_on(-1) == there && current_on(0) == here);
    WORKS(custream_set_current(here, CUSTREAM_SWITCH_DEVICE)); /* and back, by another way */
    CHECK_IS(current_device(), 0);
    WORKS(custream_pop(0));
    CHECK_IS(current_device(), 0);
    CHECK(current_on(0) == here && current_on(1) == other);
    WORKS(custream_push(there, 0)); /* not asked to switch */
    CHECK_IS(current_device(), 0);
    CHECK(current_on(1) == there);
    WORKS(custream_pop(0));
    CHECK(current_on(1) == other);
}

ROW(37, "the new current stream waits for the old")
{
    custream_t a, b, c;

    start();
    a = new_stream();
    b = new_stream();
    c = new_stream();
    WORKS(custream_set_current(a, 0));
    hold(handle_of(a));
    mark(handle_of(a), '1');
    WORKS(custream_set_current(b, CUSTREAM_SYNC));
    mark(handle_of(b), '2');
    GIVES(custream_query(b), NOT_READY);
    WORKS(custream_push(c, 0)); /* without the flag it does not */
    WORKS(custream_query(c));
    WORKS(custream_pop(0));
    WORKS(custream_push(c, CUSTREAM_SYNC));
    mark(handle_of(c), '3');
    GIVES(custream_query(c), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(c));
    CHECK(marks_are("123"));
}

ROW(37_exit, "what pop makes current waits for what was")
{
    custream_t a, b;

    start();
    a = new_stream();
    b = new_stream();
    WORKS(custream_set_current(a, 0));
    WORKS(custream_push(b, 0));
    hold(handle_of(b));
    mark(handle_of(b), '1');
    WORKS(custream_pop(0));
    WORKS(custream_query(a));
    WORKS(custream_push(b, 0));
    WORKS(custream_pop(CUSTREAM_SYNC_EXIT));
    CHECK(current_on(-1) == a);
    mark(handle_of(a), '2');
    GIVES(custream_query(a), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(a));
    CHECK(marks_are("12"));
}

ROW(37_closed, "pop of a stream that was closed meanwhile: nothing waits, and all is as before")
{
    custream_t a, b;

    start();
    a = new_stream();
    b = new_stream();
    WORKS(custream_set_current(a, 0));
    WORKS(custream_push(b, 0));
    WORKS(custream_close(b));
    WORKS(custream_pop(CUSTREAM_SYNC_EXIT));
    CHECK(current_on(-1) == a);
    GIVES(custream_pop(CUSTREAM_SYNC_EXIT), INVALID_VALUE);
    WORKS(custream_release(b));
}

ROW_WITH(37_fails, "a pop whose order cannot be had has popped",
    "CUSTREAM_FAKE_FAIL=cuStreamWaitEvent*=2")
{
    custream_t a, b;

    start();
    a = new_stream();
    b = new_stream();
    WORKS(custream_set_current(a, 0));
    WORKS(custream_push(b, 0));
    GIVES(custream_pop(CUSTREAM_SYNC_EXIT), DRIVER);
    CHECK(current_on(-1) == a);
    GIVES(custream_pop(0), INVALID_VALUE);
}

ROW_WITH(38, "a stream of another device", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t here, there;

    start();
    here = new_stream();
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    WORKS(custream_set_current(here, CUSTREAM_CHECK_DEVICE));
    GIVES(custream_set_current(there, CUSTREAM_CHECK_DEVICE), DEVICE_MISMATCH);
    GIVES(custream_push(there, CUSTREAM_CHECK_DEVICE), DEVICE_MISMATCH);
    GIVES(custream_pop(0), INVALID_VALUE); /* nothing was pushed */
    CHECK(current_on(0) == here && current_on(1) == legacy());
    WORKS(custream_set_current(there, 0)); /* on its own device */
    CHECK(current_on(0) == here && current_on(1) == there);
    WORKS(custream_set_current(legacy(), CUSTREAM_CHECK_DEVICE));
    CHECK(current_on(0) == legacy());
}

ROW_WITH(39, "switch the device with the stream", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t here, there;

    start();
    here = new_stream();
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    WORKS(custream_set_current(there, 0));
    CHECK_IS(current_device(), 0);
    WORKS(custream_set_current(there, CUSTREAM_SWITCH_DEVICE));
    CHECK_IS(current_device(), 1);
    CHECK(current_on(-1) == there);
    mark(handle_of(there), 'x');
    WORKS(custream_set_current(here, CUSTREAM_SWITCH_DEVICE));
    CHECK_IS(current_device(), 0);
    CHECK(current_on(-1) == here && current_on(1) == there);
}
