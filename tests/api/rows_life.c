/* The life of streams: handles, references, closing; names, order, and what is counted. */
#include "tests/api/rows.h"

/*
 * Destroying twice would take what has got the same handle meanwhile: the simulated GPU gives a
 * destroyed stream's handle to the next one. So a stream that is made after the destruction, and
 * answers in the end, shows that it happened once.
 */
static CUstream heir_of(CUstream handle)
{
    CUstream raw = NULL;
    GONE(cuStreamQuery(handle));
    OK(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    CHECK(raw == handle || !simulated());
    return raw;
}

ROW(19, "the raw handle")
{
    custream_t s;
    void *handle;

    start();
    s = new_stream();
    WORKS(custream_get_handle(s, &handle));
    OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, handle, NULL, NULL));
    OK(cuStreamSynchronize(handle));
    FAILS(custream_get_handle(NULL, &handle), INVALID_VALUE, handle);
    GIVES(custream_get_handle(s, NULL), INVALID_VALUE);
    WORKS(custream_release(s));
}

ROW(20, "an id that is never used again")
{
    uint64_t ids[8] = {0}, last;
    custream_t s;

    start();
    for (int i = 0; i < 8; i++) { /* the handle comes back, the id does not */
        s = new_stream();
        WORKS(custream_get_id(s, &ids[i]));
        WORKS(custream_get_id(s, &last));
        CHECK_IS(last, ids[i]);
        WORKS(custream_release(s));
        for (int k = 0; k < i; k++) CHECK(ids[k] != ids[i]);
    }
    s = new_stream();
    last = 77;
    GIVES(custream_get_id(NULL, &last), INVALID_VALUE);
    CHECK_IS(last, 77);
    GIVES(custream_get_id(s, NULL), INVALID_VALUE);
    WORKS(custream_release(s));
}

ROW(21, "the pair of __cuda_stream__")
{
    custream_t s, legacy;
    uintptr_t handle = 0;
    int version = 9;

    start();
    s = new_stream();
    WORKS(custream_protocol(s, &version, &handle));
    CHECK_IS(version, 0);
    CHECK(handle == (uintptr_t)handle_of(s));
    WORKS(custream_protocol(s, NULL, &handle));
    WORKS(custream_protocol(s, &version, NULL));
    WORKS(custream_legacy_default(&legacy));
    WORKS(custream_protocol(legacy, NULL, &handle));
    CHECK_IS(handle, 1);
    FAILS_INT(custream_protocol(NULL, &version, NULL), INVALID_VALUE, version);
    WORKS(custream_release(s));
}

ROW(25, "close: at once, and as often as one likes")
{
    custream_t s;
    CUstream raw;
    int released = 0;

    start();
    s = new_stream();
    raw = handle_of(s);
    WORKS(custream_close(s));
    raw = heir_of(raw);
    WORKS(custream_close(s));
    WORKS(custream_release(s));
    OK(cuStreamQuery(raw));
    WORKS(custream_wrap(&s, raw, -1, count_call, &released));
    WORKS(custream_close(s));
    CHECK_IS(count_of(&released), 1);
    OK(cuStreamQuery(raw));
    WORKS(custream_close(s));
    WORKS(custream_release(s));
    CHECK_IS(count_of(&released), 1);
    OK(cuStreamDestroy(raw));
    GIVES(custream_close(NULL), INVALID_VALUE);
}

ROW(25_work, "the work of a closed stream is still done")
{
    custream_t s;

    start();
    s = new_stream();
    hold(handle_of(s));
    mark(handle_of(s), 'x');
    WORKS(custream_close(s));
    WORKS(custream_release(s));
    CHECK(marks_are(""));
    open_gate();
    OK(cuCtxSynchronize());
    CHECK(marks_are("x"));
}

ROW(25_defaults, "default streams and those of a pool stay open")
{
    custream_t s;

    start();
    WORKS(custream_legacy_default(&s));
    GIVES(custream_close(s), INVALID_VALUE);
    WORKS(custream_per_thread_default(&s));
    GIVES(custream_close(s), INVALID_VALUE);
    WORKS(custream_create_from_pool(&s, -1, 0, 0));
    GIVES(custream_close(s), INVALID_VALUE);
    WORKS(custream_query(s));
    WORKS(custream_release(s));
    WORKS(custream_set_default_mode(CUSTREAM_DEFAULT_DEVICE));
    WORKS(custream_default(-1, &s));
    GIVES(custream_close(s), INVALID_VALUE);
    WORKS(custream_release(s));
}

ROW(26, "the last reference destroys the stream, once")
{
    custream_t s;
    CUstream raw;

    start();
    s = new_stream();
    raw = handle_of(s);
    for (int i = 0; i < 3; i++) WORKS(custream_retain(s));
    for (int i = 0; i < 3; i++) WORKS(custream_release(s));
    OK(cuStreamQuery(raw));
    WORKS(custream_release(s));
    OK(cuStreamDestroy(heir_of(raw)));
    GIVES(custream_retain(NULL), INVALID_VALUE);
    GIVES(custream_release(NULL), INVALID_VALUE);
}

ROW(26_closed, "references of a closed stream")
{
    custream_t s;

    start();
    s = new_stream();
    WORKS(custream_close(s));
    WORKS(custream_retain(s));
    WORKS(custream_release(s));
    GIVES(custream_query(s), CLOSED);
    WORKS(custream_release(s));
}

static custream_stats_t stats_of(int device)
{
    custream_stats_t stats = {.size = sizeof stats};
    WORKS(custream_stats(device, &stats));
    return stats;
}

ROW_WITH(26_stats, "what lives is counted", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_stats_t before, now;
    custream_t s, there, w = NULL;
    custream_event_t e;
    CUstream raw;

    start();
    before = stats_of(-1);
    s = new_stream();
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    e = new_event();
    OK(cuStreamCreate(&raw, 0));
    WORKS(custream_wrap(&w, raw, -1, NULL, NULL));
    now = stats_of(-1);
    CHECK_IS(now.streams - before.streams, 3);
    CHECK_IS(now.streams_wrapped - before.streams_wrapped, 1);
    CHECK_IS(now.events - before.events, 1);
    CHECK_IS(stats_of(1).streams, 1);
    WORKS(custream_release(w));
    OK(cuStreamDestroy(raw));
    WORKS(custream_release(s));
    WORKS(custream_release(there));
    WORKS(custream_event_release(e));
    now = stats_of(-1);
    CHECK_IS(now.streams, before.streams);
    CHECK_IS(now.events, before.events);
    CHECK_IS(now.streams_wrapped, before.streams_wrapped);
    CHECK(now.streams_made >= before.streams_made + 2);
    CHECK_IS(now.events_made - before.events_made, 1);
    GIVES(custream_stats(-1, NULL), INVALID_VALUE);
    GIVES(custream_stats(99, &now), INVALID_VALUE);
    now.size = 0;
    GIVES(custream_stats(-1, &now), INVALID_VALUE);
}

/* Made at its first record, it belongs to a device from then on, and is counted there. */
ROW_WITH(26_lazy, "a lazy event is counted once", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_event_options_t options;
    custream_event_t e;
    custream_t there;

    start();
    there = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    WORKS(custream_event_options_init(&options));
    options.lazy = 1;
    WORKS(custream_event_create(&e, &options));
    CHECK_IS(stats_of(-1).events, 1);
    WORKS(custream_record(there, e, 0));
    CHECK_IS(stats_of(-1).events, 1);
    CHECK_IS(stats_of(0).events, 0);
    WORKS(custream_event_release(e));
    for (int device = -1; device < 2; device++) CHECK_IS(stats_of(device).events, 0);
    WORKS(custream_release(there));
}

struct seen {
    custream_t streams[16];
    int count, stop_at;
};
static int see(custream_t stream, void *arg)
{
    struct seen *seen = arg;

    if (seen->count < 16) seen->streams[seen->count] = stream;
    custream_release(new_stream()); /* made meanwhile: left out */
    return ++seen->count == seen->stop_at;
}
static int index_in(const struct seen *seen, custream_t stream)
{
    for (int i = 0; i < seen->count && i < 16; i++)
        if (seen->streams[i] == stream) return i;
    return -1;
}

ROW(26_foreach, "every open stream, in the order of ids")
{
    struct seen seen = {.count = 0};
    custream_t a, b, closed;

    start();
    a = new_stream();
    closed = new_stream();
    b = new_stream();
    WORKS(custream_close(closed));
    WORKS(custream_foreach(see, &seen));
    CHECK(index_in(&seen, a) >= 0 && index_in(&seen, b) > index_in(&seen, a));
    CHECK_IS(index_in(&seen, closed), -1);
    CHECK(seen.count < 8); /* ours, and at most the defaults */
    memset(&seen, 0, sizeof seen);
    seen.stop_at = 1;
    WORKS(custream_foreach(see, &seen));
    CHECK_IS(seen.count, 1);
    GIVES(custream_foreach(NULL, NULL), INVALID_VALUE);
    WORKS(custream_release(a));
    WORKS(custream_release(b));
    WORKS(custream_release(closed));
}

static int close_it(custream_t stream, void *arg)
{
    custream_status_t status = custream_close(stream);

    CHECK(status == CUSTREAM_SUCCESS || status == CUSTREAM_INVALID_VALUE); /* a default stream */
    count_call(arg);
    return 0;
}

ROW(26_foreach_close, "streams that are closed while they are gone through")
{
    custream_t s[3];
    int count = 0;

    start();
    for (int i = 0; i < 3; i++) s[i] = new_stream();
    WORKS(custream_foreach(close_it, &count));
    CHECK(count >= 3);
    for (int i = 0; i < 3; i++) {
        GIVES(custream_query(s[i]), CLOSED);
        WORKS(custream_release(s[i]));
    }
}

static int close_every_second(custream_t stream, void *arg)
{
    int *seen = arg;

    if ((*seen)++ % 2) close_it(stream, &(int){0});
    return 0;
}

/* As many as would take minutes if each step looked at those before it. Wrapped, since the
 * simulated GPU itself looks through all at a stream's end. */
ROW(26_many, "a hundred thousand streams are counted, gone through and closed on the way")
{
    const char *fewer = getenv("ROWS_MANY"); /* a real driver takes 0.2 ms for each */
    const int many = fewer ? atoi(fewer) : 100000;
    custream_t *s = malloc((size_t)many * sizeof *s);
    custream_stats_t before, now;
    int seen = 0;

    start();
    before = stats_of(-1);
    for (int i = 0; i < many; i++) {
        CUstream raw;
        OK(cuStreamCreate(&raw, 0));
        WORKS(custream_wrap(&s[i], raw, -1, NULL, NULL));
    }
    now = stats_of(-1);
    CHECK_IS(now.streams - before.streams, (uint64_t)many);
    CHECK_IS(now.streams_wrapped - before.streams_wrapped, (uint64_t)many);
    WORKS(custream_foreach(close_every_second, &seen));
    CHECK(seen >= many);
    CHECK(
        stats_of(-1).streams - before.streams <= (uint64_t)many / 2 + 2); /* default streams stay */
    for (int i = 0; i < many; i++) WORKS(custream_release(s[i]));
    CHECK_IS(stats_of(-1).streams_wrapped, before.streams_wrapped);
    free(s);
}

static int release_once_more(custream_t stream, void *arg)
{
    custream_t *wanted = arg;

    if (stream == wanted[0] || stream == wanted[2]) WORKS(custream_release(stream));
    if (stream == wanted[2]) WORKS(custream_close(wanted[1]));
    return 0;
}

ROW(26_foreach_release, "streams whose last references go while they are gone through")
{
    custream_t s[4];
    struct seen seen = {.count = 0};

    start();
    for (int i = 0; i < 4; i++) s[i] = new_stream();
    WORKS(custream_foreach(release_once_more, s));
    GIVES(custream_query(s[0]), INVALID_HANDLE);
    GIVES(custream_query(s[1]), CLOSED);
    GIVES(custream_query(s[2]), INVALID_HANDLE);
    WORKS(custream_query(s[3]));
    WORKS(custream_foreach(see, &seen));
    CHECK(index_in(&seen, s[3]) >= 0);
    CHECK(index_in(&seen, s[0]) < 0 && index_in(&seen, s[1]) < 0 && index_in(&seen, s[2]) < 0);
    WORKS(custream_release(s[1]));
    WORKS(custream_release(s[3]));
}

/* It has a reference of its own, and this gives back that one too. */
static int release_too_often(custream_t stream, void *arg)
{
    custream_t *wanted = arg;

    if (stream != wanted[1]) return 0;
    WORKS(custream_release(stream));
    WORKS(custream_release(stream));
    wanted[1] = new_stream();
    return 0;
}

ROW(26_foreach_stale, "a function that releases a stream too often does not lead a walk astray")
{
    struct seen seen = {.count = 0};
    custream_t s[3];

    start();
    for (int i = 0; i < 3; i++) s[i] = new_stream();
    WORKS(custream_foreach(release_too_often, s));
    WORKS(custream_foreach(see, &seen));
    CHECK(index_in(&seen, s[2]) > index_in(&seen, s[0]) &&
          index_in(&seen, s[1]) > index_in(&seen, s[2]));
    for (int i = 0; i < 3; i++) WORKS(custream_release(s[i]));
}

ROW_WITH(79, "equality: device and handle", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t s, t, again = NULL, legacy, per_thread;

    start();
    s = new_stream();
    t = new_stream();
    WORKS(custream_wrap(&again, handle_of(s), -1, NULL, NULL));
    WORKS(custream_legacy_default(&legacy));
    WORKS(custream_per_thread_default(&per_thread));
    CHECK_IS(custream_equal(s, s), 1);
    CHECK_IS(custream_equal(s, again), 1);
    CHECK_IS(custream_equal(s, t), 0);
    CHECK_IS(custream_equal(s, legacy), 0);
    CHECK_IS(custream_equal(legacy, legacy), 1);
    CHECK_IS(custream_equal(legacy, per_thread), 0);
    CHECK_IS(custream_equal(NULL, NULL), 1);
    CHECK_IS(custream_equal(s, NULL), 0);
    CHECK_IS(custream_equal(NULL, s), 0);
    WORKS(custream_close(t));
    CHECK_IS(custream_equal(t, t), 1);
    CHECK_IS(custream_equal(t, s), 0);
    WORKS(custream_release(again));
    WORKS(custream_release(s));
    WORKS(custream_release(t));
}

ROW(80, "equal streams, equal hashes")
{
    custream_t s, t, again = NULL;
    uint64_t hash;

    start();
    s = new_stream();
    t = new_stream();
    WORKS(custream_wrap(&again, handle_of(s), -1, NULL, NULL));
    hash = custream_hash(s);
    CHECK(hash == custream_hash(again));
    CHECK(hash != custream_hash(t)); /* neighbours, which a set wants apart */
    CHECK_IS(custream_hash(NULL), 0);
    WORKS(custream_release(again));
    WORKS(custream_close(s));
    CHECK(custream_hash(s) == hash);
    WORKS(custream_release(s));
    WORKS(custream_release(t));
}

static int order_of(custream_t a, custream_t b)
{
    int order = UNTOUCHED_INT, back = UNTOUCHED_INT;
    WORKS(custream_compare(a, b, &order));
    WORKS(custream_compare(b, a, &back));
    CHECK_IS(order, -back);
    return order;
}

ROW_WITH(81, "a total order: device, then handle", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t a, b, there, lower;
    int order;

    start();
    there =
        stream_with(1, CUSTREAM_NON_BLOCKING, 0); /* made first, so that its handle is the lowest */
    a = new_stream();
    b = new_stream();
    lower = handle_of(a) < handle_of(b) ? a : b;
    CHECK_IS(order_of(a, a), 0);
    CHECK_IS(order_of(lower, lower == a ? b : a), -1);
    CHECK_IS(order_of(a, there), -1);
    CHECK_IS(order_of(b, there), -1);
    FAILS_INT(custream_compare(NULL, a, &order), INVALID_VALUE, order);
    FAILS_INT(custream_compare(a, NULL, &order), INVALID_VALUE, order);
    GIVES(custream_compare(a, b, NULL), INVALID_VALUE);
    WORKS(custream_release(a));
    WORKS(custream_release(b));
    WORKS(custream_release(there));
}

ROW(82, "a line that describes a stream")
{
    char text[256], expected[64], small[8];
    custream_t s, legacy;
    CUdeviceptr memory;
    size_t length = 0, again = 0;

    start();
    s = stream_with(-1, CUSTREAM_NON_BLOCKING, -1);
    WORKS(custream_set_name(s, "copies"));
    WORKS(custream_format(s, text, sizeof text, &length));
    CHECK_IS(length, strlen(text));
    snprintf(expected, sizeof expected, "stream %p on device 0", (void *)handle_of(s));
    CHECK(strstr(text, expected));
    CHECK(strstr(text, "custream ") == text);
    CHECK(strstr(text, ", non-blocking, priority -1, \"copies\""));
    CHECK(!strchr(text, '\n'));
    WORKS(custream_format(s, NULL, 0, &again));
    CHECK_IS(again, length);
    OK(cuMemAlloc(&memory, 16));
    OK(cuMemsetD8Async(memory, 1, 16, handle_of(s))); /* a stream has a lane once it has work */
    memset(small, 'x', sizeof small);
    WORKS(custream_format(s, small, 5, &again));
    CHECK(memcmp(small, "cust\0xxx", 8) == 0);
    CHECK_IS(again, length);
    WORKS(custream_close(s));
    OK(cuMemFree(memory));
    WORKS(custream_format(s, text, sizeof text, NULL));
    CHECK(strstr(text, "custream ") == text);
    WORKS(custream_legacy_default(&legacy));
    WORKS(custream_format(legacy, text, sizeof text, NULL));
    CHECK(strstr(text, "default"));
    GIVES(custream_format(NULL, text, sizeof text, NULL), INVALID_VALUE);
    GIVES(custream_format(s, NULL, 9, NULL), INVALID_VALUE);
    WORKS(custream_release(s));
}

ROW(82_long, "a line of any length")
{
    static char name[4000], text[5000], part[600];
    size_t length = 0, whole = 0;
    custream_t s;

    start();
    s = new_stream();
    memset(name, 'n', sizeof name - 1);
    WORKS(custream_set_name(s, name));
    WORKS(custream_format(s, text, sizeof text, &whole));
    CHECK_IS(whole, strlen(text));
    CHECK(whole > sizeof name && strstr(text, name) && text[whole - 1] == '"');
    WORKS(custream_format(s, NULL, 0, &length));
    CHECK_IS(length, whole);
    WORKS(custream_format(s, part, sizeof part, &length));
    CHECK_IS(length, whole);
    CHECK_IS(strlen(part), sizeof part - 1);
    CHECK(strncmp(part, text, sizeof part - 1) == 0);
    WORKS(custream_close(s));
    WORKS(custream_format(s, text, sizeof text, &length));
    CHECK(strcmp(text + length - strlen("\", closed"), "\", closed") == 0);
    WORKS(custream_release(s));
}

ROW(82_name, "names")
{
    char text[64] = "", long_name[5000], back[5001];
    custream_options_t options;
    custream_t s = NULL;
    size_t length = 9;

    start();
    WORKS(custream_options_init(&options));
    snprintf(text, sizeof text, "from options");
    options.name = text;
    WORKS(custream_create(&s, &options));
    memset(text, 0, sizeof text); /* it was copied */
    WORKS(custream_get_name(s, text, sizeof text, &length));
    CHECK(strcmp(text, "from options") == 0 && length == 12);
    WORKS(custream_set_name(s, NULL));
    WORKS(custream_get_name(s, text, sizeof text, &length));
    CHECK(!*text && length == 0);
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    WORKS(custream_set_name(s, long_name));
    WORKS(custream_get_name(s, back, sizeof back, &length));
    CHECK_IS(length, sizeof long_name - 1);
    CHECK(strcmp(back, long_name) == 0);
    WORKS(custream_get_name(s, NULL, 0, &length));
    CHECK_IS(length, sizeof long_name - 1);
    WORKS(custream_set_name(s, ""));
    WORKS(custream_get_name(s, NULL, 0, &length));
    CHECK_IS(length, 0);
    GIVES(custream_get_name(s, NULL, 4, NULL), INVALID_VALUE);
    GIVES(custream_set_name(NULL, "x"), INVALID_VALUE);
    WORKS(custream_release(s));
}
