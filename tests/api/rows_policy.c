/* The preload library's policies and the objects of this API: what is made here meets them as what
 * the program makes itself. */
#include "tests/api/rows.h"

ROW_WITH(
    8_policy, "a policy narrows the priorities that the process sees", "CUSTREAM_PRIORITY=0:-1")
{
    int greatest = 9, requested = 9, seen = preloaded() ? -1 : -5;
    custream_t s, w = NULL;
    CUstream raw;

    start();
    WORKS(custream_priority_range(-1, NULL, &greatest));
    CHECK_IS(greatest, seen);
    s = stream_with(-1, CUSTREAM_NON_BLOCKING, -5);
    CHECK_IS(priority_of(s), seen);
    WORKS(custream_get_requested_priority(s, &requested));
    CHECK_IS(requested, -5);
    OK(cuStreamCreateWithPriority(&raw, CU_STREAM_NON_BLOCKING, -4));
    WORKS(custream_wrap(&w, raw, -1, NULL, NULL));
    CHECK_IS(priority_of(w), preloaded() ? -1 : -4);
    WORKS(custream_get_requested_priority(w, &requested)); /* the library has seen it being made */
    CHECK_IS(requested, -4);
    WORKS(custream_release(w));
    WORKS(custream_release(s));
    OK(cuStreamDestroy(raw));
}

ROW_WITH(1_policy, "streams that share one", "CUSTREAM_STREAMS=pool:2")
{
    custream_t s[5];

    start();
    for (int i = 0; i < 5; i++) {
        s[i] = new_stream();
        CHECK_IS(nonblocking(s[i]), 1);
        for (int k = 0; k < i; k++)
            CHECK(s[i] != s[k]); /* objects of their own, whatever is behind them */
    }
    for (int i = 1; i < 5; i++) {
        mark(handle_of(s[i - 1]), (char)('0' + i));
        WORKS(custream_wait_stream(s[i], s[i - 1], NULL, 0));
    }
    WORKS(custream_synchronize(s[4]));
    CHECK(marks_are("1234"));
    for (int i = 0; i < 5; i++) WORKS(custream_release(s[i]));
}

/* What handle 0 means is the policy's; the objects stand for CUDA's explicit handles. */
ROW_WITH(30_policy, "the default stream is redirected", "CUSTREAM_DEFAULT_STREAM=per-thread")
{
    custream_t legacy, per_thread;

    start();
    WORKS(custream_legacy_default(&legacy));
    WORKS(custream_per_thread_default(&per_thread));
    hold(CU_STREAM_LEGACY);
    GIVES(custream_query(legacy), NOT_READY);
    open_gate();
    WORKS(custream_synchronize(legacy));
    hold(NULL);
    GIVES(custream_query(preloaded() ? per_thread : legacy), NOT_READY);
    open_gate();
    OK(cuCtxSynchronize());
}

ROW_WITH(60_policy, "branches have their stream's priority", "CUSTREAM_PRIORITY=shift:-1")
{
    custream_t s, branch, twig, w = NULL, of_wrapped;
    int requested = 9;
    CUstream raw;

    start();
    s = new_stream();
    WORKS(custream_fork(s, 1, &branch));
    WORKS(custream_fork(branch, 1, &twig));
    CHECK_IS(priority_of(s), preloaded() ? -1 : 0);
    CHECK_IS(priority_of(branch), priority_of(s));
    CHECK_IS(priority_of(twig), priority_of(s));
    WORKS(custream_get_requested_priority(twig, &requested));
    CHECK_IS(requested, 0);
    OK(cuStreamCreateWithPriority(&raw, CU_STREAM_NON_BLOCKING, -2));
    WORKS(custream_wrap(&w, raw, -1, NULL, NULL));
    WORKS(custream_fork(w, 1, &of_wrapped));
    CHECK_IS(priority_of(of_wrapped), priority_of(w));
    WORKS(custream_join(branch, 1, &twig));
    WORKS(custream_join(s, 1, &branch));
    WORKS(custream_join(w, 1, &of_wrapped));
    WORKS(custream_release(w));
    OK(cuStreamDestroy(raw));
}
