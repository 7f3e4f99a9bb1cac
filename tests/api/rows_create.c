/* Making streams: flags, priorities and their ranges. */
#include "tests/api/rows.h"

ROW(1, "create an owned stream")
{
    custream_options_t options;
    custream_t s = NULL, t = NULL;

    start();
    WORKS(custream_create(&s, NULL));
    WORKS(custream_options_init(&options));
    CHECK_IS(options.size, sizeof options);
    WORKS(custream_create(&t, &options));
    CHECK(s != t && handle_of(s) != handle_of(t));
    CHECK_IS(owned(s), 1);
    OK(cuStreamQuery(handle_of(s)));
    WORKS(custream_query(t));
    WORKS(custream_release(s));
    WORKS(custream_release(t));
    GIVES(custream_create(NULL, NULL), INVALID_VALUE);
    GIVES(custream_options_init(NULL), INVALID_VALUE);
}

static void refused(const char *what, const custream_options_t *options)
{
    custream_t s = UNTOUCHED;
    custream_status_t status = custream_create(&s, options);

    if (status == CUSTREAM_INVALID_VALUE && s == UNTOUCHED) return;
    fprintf(stderr, "%s: %s\n", what, custream_status_name(status));
    FAILED();
}
#define REFUSED(field_, value) \
    do { \
        custream_options_t options_; \
        WORKS(custream_options_init(&options_)); \
        options_.field_ = value; \
        refused(#field_ " = " #value, &options_); \
    } while (0)

ROW(1_refused, "options that mean nothing")
{
    custream_options_t options;

    start();
    REFUSED(size, 0);
    REFUSED(device, 99);
    REFUSED(device, -2);
    REFUSED(flags, 2);
    REFUSED(flags, 0x80000000u);
    REFUSED(priority_policy, (custream_priority_policy_t)7);
    WORKS(custream_options_init(&options));
    options.pooled = 1;
    options.flags = CUSTREAM_DEFAULT;
    refused("pooled and blocking", &options);
}

ROW_WITH(1_fails, "the driver refuses to make one", "CUSTREAM_FAKE_FAIL=cuStreamCreate*=2")
{
    custream_t s;

    start();
    FAILS(custream_create(&s, NULL), DRIVER, s);
    CHECK_IS(driver_error(), 2);
    WORKS(custream_legacy_default(&s));
    WORKS(custream_query(s)); /* a call that succeeds */
    CHECK_IS(driver_error(), 0);
}

/* test_api.py reads the driver's counts: each is made and destroyed once, by these calls. */
ROW(2, "the driver's call")
{
    start();
    for (int i = 0; i < 5; i++) {
        custream_t s = stream_with(-1, CUSTREAM_NON_BLOCKING, -i);
        WORKS(custream_retain(s));
        WORKS(custream_release(s));
        if (i & 1) WORKS(custream_close(s));
        WORKS(custream_release(s));
    }
}

ROW(5, "new streams are non-blocking unless asked")
{
    custream_options_t options;
    custream_t s;

    start();
    WORKS(custream_options_init(&options));
    CHECK_IS(options.flags, CUSTREAM_NON_BLOCKING);
    s = new_stream();
    CHECK_IS(nonblocking(s), 1);
    hold(CU_STREAM_LEGACY);
    OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, handle_of(s), NULL, NULL));
    WORKS(custream_synchronize(s)); /* it does not wait for the legacy stream */
    open_gate();
    OK(cuCtxSynchronize());
    WORKS(custream_release(s));
}

ROW(6, "choose the blocking flag")
{
    unsigned flags = 99;
    custream_t blocking, free_one;

    start();
    blocking = stream_with(-1, CUSTREAM_DEFAULT, 0);
    free_one = stream_with(-1, CUSTREAM_NON_BLOCKING, 0);
    OK(cuStreamGetFlags(handle_of(blocking), &flags));
    CHECK_IS(flags, CU_STREAM_DEFAULT);
    OK(cuStreamGetFlags(handle_of(free_one), &flags));
    CHECK_IS(flags, CU_STREAM_NON_BLOCKING);
    hold(CU_STREAM_LEGACY);
    mark(CU_STREAM_LEGACY, '1');
    mark(handle_of(blocking), '2');
    GIVES(custream_query(blocking), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(blocking));
    CHECK(marks_are("12"));
    WORKS(custream_release(blocking));
    WORKS(custream_release(free_one));
}

ROW(7, "ask for the blocking flag")
{
    unsigned flags = 99;
    int answer;
    custream_t s;

    start();
    s = stream_with(-1, CUSTREAM_DEFAULT, 0);
    CHECK_IS(nonblocking(s), 0);
    WORKS(custream_get_flags(s, &flags));
    CHECK_IS(flags, CUSTREAM_DEFAULT);
    WORKS(custream_release(s));
    s = new_stream();
    CHECK_IS(nonblocking(s), 1);
    WORKS(custream_get_flags(s, &flags));
    CHECK_IS(flags, CUSTREAM_NON_BLOCKING);
    FAILS_INT(custream_is_nonblocking(NULL, &answer), INVALID_VALUE, answer);
    GIVES(custream_is_nonblocking(s, NULL), INVALID_VALUE);
    GIVES(custream_get_flags(s, NULL), INVALID_VALUE);
    WORKS(custream_release(s));
}

/* A stream of a priority that its policy made of the wanted one; what CUDA knows must agree. */
static int made(custream_priority_policy_t policy, int wanted)
{
    custream_options_t options;
    custream_t s = NULL;
    int priority = UNTOUCHED_INT, requested = UNTOUCHED_INT, pure = UNTOUCHED_INT;

    WORKS(custream_options_init(&options));
    options.priority = wanted;
    options.priority_policy = policy;
    WORKS(custream_create(&s, &options));
    if (!s) return UNTOUCHED_INT;
    OK(cuStreamGetPriority(handle_of(s), &priority));
    CHECK_IS(priority_of(s), priority);
    WORKS(custream_get_requested_priority(s, &requested));
    CHECK_IS(requested, wanted);
    WORKS(custream_clamp_priority(-1, policy, wanted, &pure));
    CHECK_IS(pure, priority);
    WORKS(custream_release(s));
    return priority;
}

static void out_of_range(int wanted)
{
    custream_options_t options;
    custream_t s;
    int pure;

    WORKS(custream_options_init(&options));
    options.priority = wanted;
    options.priority_policy = CUSTREAM_PRIORITY_STRICT;
    FAILS(custream_create(&s, &options), PRIORITY_OUT_OF_RANGE, s);
    FAILS_INT(custream_clamp_priority(-1, CUSTREAM_PRIORITY_STRICT, wanted, &pure),
        PRIORITY_OUT_OF_RANGE, pure);
}

ROW(8, "request a priority")
{
    start();
    CHECK_IS(made(CUSTREAM_PRIORITY_CLAMP, -2), -2);
    CHECK_IS(made(CUSTREAM_PRIORITY_STRICT, -4), -4);
    CHECK_IS(made(CUSTREAM_PRIORITY_CLAMP_BAND, -1), -1);
}

ROW(9, "the default priority is the least")
{
    custream_options_t options;
    custream_t s;

    start();
    WORKS(custream_options_init(&options));
    CHECK_IS(options.priority, 0);
    CHECK_IS(options.priority_policy, CUSTREAM_PRIORITY_CLAMP);
    s = new_stream();
    CHECK_IS(priority_of(s), 0);
    WORKS(custream_release(s));
}

ROW(10, "priority above the least")
{
    int got;

    start();
    CHECK_IS(made(CUSTREAM_PRIORITY_CLAMP, 1), 0);
    CHECK_IS(made(CUSTREAM_PRIORITY_CLAMP, 100), 0);
    CHECK_IS(made(CUSTREAM_PRIORITY_CLAMP_BAND, 100), 0);
    out_of_range(1);
    out_of_range(100);
    FAILS_INT(
        custream_clamp_priority(-1, (custream_priority_policy_t)9, 1, &got), INVALID_VALUE, got);
    FAILS_INT(custream_clamp_priority(99, CUSTREAM_PRIORITY_CLAMP, 1, &got), INVALID_VALUE, got);
    GIVES(custream_clamp_priority(-1, CUSTREAM_PRIORITY_CLAMP, 1, NULL), INVALID_VALUE);
}

ROW(11, "priority below the greatest")
{
    start();
    CHECK_IS(made(CUSTREAM_PRIORITY_CLAMP, -100), -5);
    CHECK_IS(made(CUSTREAM_PRIORITY_CLAMP_BAND, -100), -1); /* as Warp */
    CHECK_IS(made(CUSTREAM_PRIORITY_CLAMP, INT32_MIN), -5);
    out_of_range(-6);
    out_of_range(-100);
}

ROW(11_band, "a narrower range of a stream's own")
{
    custream_options_t options;
    custream_t s = NULL;

    start();
    WORKS(custream_options_init(&options));
    CHECK_IS(options.band_least, 0);
    CHECK_IS(options.band_greatest, -1);
    options.priority_policy = CUSTREAM_PRIORITY_CLAMP_BAND;
    options.band_greatest = -3; /* as PyTorch */
    options.priority = -100;
    WORKS(custream_create(&s, &options));
    CHECK_IS(priority_of(s), -3);
    WORKS(custream_release(s));
    options.priority = 5;
    WORKS(custream_create(&s, &options));
    CHECK_IS(priority_of(s), 0);
    WORKS(custream_release(s));
    options.band_greatest = -100; /* the device's range holds as well */
    options.priority = -50;
    WORKS(custream_create(&s, &options));
    CHECK_IS(priority_of(s), -5);
    WORKS(custream_release(s));
}

ROW(12, "priority in the range")
{
    start();
    for (int p = 0; p >= -5; p--) {
        CHECK_IS(made(CUSTREAM_PRIORITY_CLAMP, p), p);
        CHECK_IS(made(CUSTREAM_PRIORITY_STRICT, p), p);
        CHECK_IS(made(CUSTREAM_PRIORITY_CLAMP_BAND, p), p < -1 ? -1 : p);
    }
}

ROW_WITH(14, "the range of priorities, and a band for a device", "CUSTREAM_FAKE_DEVICES=2")
{
    int least = 9, greatest = 9;
    custream_t s;

    start();
    WORKS(custream_priority_range(-1, &least, &greatest));
    CHECK(least == 0 && greatest == -5);
    WORKS(custream_priority_range(0, NULL, NULL));
    WORKS(custream_set_priority_band(0, 0, -3));
    WORKS(custream_priority_range(0, NULL, &greatest));
    CHECK_IS(greatest, -3);
    CHECK_IS(made(CUSTREAM_PRIORITY_CLAMP, -5), -3);
    CHECK_IS(made(CUSTREAM_PRIORITY_STRICT, -3), -3);
    out_of_range(-4);
    WORKS(custream_priority_range(1, &least, &greatest)); /* the other device has none */
    CHECK(least == 0 && greatest == -5);
    s = stream_with(1, CUSTREAM_NON_BLOCKING, -5);
    CHECK_IS(priority_of(s), -5);
    WORKS(custream_release(s));
    WORKS(custream_set_priority_band(0, 0, 0));
    CHECK_IS(made(CUSTREAM_PRIORITY_CLAMP, -5), -5);
}

ROW(14_refused, "bands that are none")
{
    int greatest, least;

    start();
    GIVES(custream_set_priority_band(-1, 1, -3), INVALID_VALUE);
    GIVES(custream_set_priority_band(-1, -1, -3), INVALID_VALUE);
    GIVES(custream_set_priority_band(-1, 0, 1), INVALID_VALUE);
    GIVES(custream_set_priority_band(-1, 0, -6), INVALID_VALUE);
    GIVES(custream_set_priority_band(99, 0, -1), INVALID_VALUE);
    FAILS_INT(custream_priority_range(99, NULL, &greatest), INVALID_VALUE, greatest);
    FAILS_INT(custream_priority_range(-2, &least, NULL), INVALID_VALUE, least);
    WORKS(custream_priority_range(0, NULL, &greatest));
    CHECK_IS(greatest, -5);
}

ROW(15, "ask for the priority")
{
    custream_t s, legacy;
    int got;

    start();
    s = stream_with(-1, CUSTREAM_DEFAULT, -2);
    CHECK_IS(priority_of(s), -2);
    WORKS(custream_legacy_default(&legacy));
    CHECK_IS(priority_of(legacy), 0);
    FAILS_INT(custream_get_priority(NULL, &got), INVALID_VALUE, got);
    FAILS_INT(custream_get_requested_priority(NULL, &got), INVALID_VALUE, got);
    GIVES(custream_get_priority(s, NULL), INVALID_VALUE);
    GIVES(custream_get_requested_priority(s, NULL), INVALID_VALUE);
    WORKS(custream_release(s));
}

ROW(15_wrapped, "a wrapped stream's priority")
{
    CUstream raw;
    custream_t s = NULL;
    int requested = 9;

    start();
    OK(cuStreamCreateWithPriority(&raw, CU_STREAM_NON_BLOCKING, -3));
    WORKS(custream_wrap(&s, raw, -1, NULL, NULL));
    CHECK_IS(priority_of(s), -3);
    WORKS(custream_get_requested_priority(s, &requested));
    CHECK_IS(requested, -3);
    CHECK_IS(nonblocking(s), 1);
    WORKS(custream_release(s));
    OK(cuStreamDestroy(raw));
}

/* By whom ever: the one that it has, not the one that it was made with. */
ROW(15_changed, "a priority that was changed since")
{
    CUstreamAttrValue value = {.priority = -4};
    custream_t s;

    start();
    s = new_stream();
    OK(cuStreamSetAttribute(handle_of(s), CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    CHECK_IS(priority_of(s), -4);
    WORKS(custream_release(s));
}
