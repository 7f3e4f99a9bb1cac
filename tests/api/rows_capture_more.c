/* Captures that are not this library's alone: begun or ended past it, in several contexts, and
 * asked about while they go on. */
#include "tests/api/rows.h"

static custream_capture_status_t state_of(custream_t s)
{
    custream_capture_status_t status = (custream_capture_status_t)99;
    WORKS(custream_capture_status(s, &status, NULL));
    return status;
}
static int nodes_in(CUgraph graph)
{
    size_t count = 99;
    OK(cuGraphGetNodes(graph, NULL, &count));
    return (int)count;
}
/* Ended past this library. */
static CUgraph ended_by_cuda(CUstream raw)
{
    CUgraph graph = NULL;
    OK(cuStreamEndCapture(raw, &graph));
    return graph;
}
static void end_well(custream_t s)
{
    custream_graph_t graph = NULL;
    CHECK_IS(state_of(s), CUSTREAM_CAPTURE_ACTIVE);
    WORKS(custream_end_capture(s, &graph));
    if (graph) WORKS(custream_graph_release(graph));
}

ROW(3_capturing, "flags of a stream that captures")
{
    custream_t w = NULL, own;
    char text[200];
    unsigned flags = 9;
    CUstream raw;

    start();
    OK(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    own = new_stream();
    OK(cuStreamBeginCapture(raw, CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(custream_begin_capture(own, CUSTREAM_CAPTURE_RELAXED));
    WORKS(custream_wrap(&w, raw, -1, NULL, NULL));
    GIVES(custream_get_flags(w, &flags), CAPTURE_UNSUPPORTED);
    WORKS(custream_get_flags(own, &flags));
    CHECK_IS(flags, CUSTREAM_NON_BLOCKING);
    WORKS(custream_format(w, text, sizeof text, NULL));
    CHECK(strstr(text, "blocking") == NULL);
    CHECK_IS(priority_of(w), 0);
    CHECK_IS(device_of(w), 0);
    CHECK_IS(state_of(w), CUSTREAM_CAPTURE_ACTIVE);
    end_well(own);
    OK(cuGraphDestroy(ended_by_cuda(raw)));
    CHECK_IS(nonblocking(w), 1);
    WORKS(custream_release(w));
    OK(cuStreamDestroy(raw));
}

/* ---- Forks ---- */

ROW(60_foreign, "fork and join in a capture that somebody else began")
{
    custream_t w = NULL, other, out[2];
    CUgraph graph;
    CUstream raw;

    start();
    OK(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    other = new_stream();
    OK(cuStreamBeginCapture(raw, CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(custream_wrap(&w, raw, -1, NULL, NULL));
    WORKS(custream_fork(w, 2, out));
    mark(handle_of(out[0]), 'a');
    mark(handle_of(out[1]), 'b');
    WORKS(custream_join(w, 2, out));
    WORKS(custream_release(w)); /* none of these may break it */
    WORKS(custream_release(other));
    WORKS(custream_shutdown());
    graph = ended_by_cuda(raw);
    CHECK_IS(nodes_in(graph), 2);
    OK(cuGraphDestroy(graph));
    OK(cuStreamDestroy(raw));
}

ROW(60_ended, "streams joined in captures that others end are destroyed")
{
    custream_t w = NULL, out;
    CUstream raw, branch[3];

    start();
    OK(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    WORKS(custream_wrap(&w, raw, -1, NULL, NULL));
    for (int i = 0; i < 3; i++) {
        OK(cuStreamBeginCapture(raw, CU_STREAM_CAPTURE_MODE_RELAXED));
        WORKS(custream_fork(w, 1, &out));
        branch[i] = handle_of(out);
        WORKS(custream_join(w, 1, &out));
        if (i) GONE(cuStreamQuery(branch[i - 1])); /* the next join has noticed */
        OK(cuGraphDestroy(ended_by_cuda(raw)));
    }
    WORKS(custream_release(w)); /* so does a release */
    GONE(cuStreamQuery(branch[2]));
    OK(cuStreamDestroy(raw));
}

ROW(60_two, "captures that overlap keep their own branches")
{
    custream_t s, t, in_s, in_t;
    CUstream of_s, of_t;

    start();
    s = new_stream();
    t = new_stream();
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    WORKS(custream_begin_capture(t, CUSTREAM_CAPTURE_RELAXED));
    WORKS(custream_fork(s, 1, &in_s));
    WORKS(custream_fork(t, 1, &in_t));
    of_s = handle_of(in_s);
    of_t = handle_of(in_t);
    WORKS(custream_join(s, 1, &in_s));
    WORKS(custream_join(t, 1, &in_t));
    end_well(t);
    GONE(cuStreamQuery(of_t));
    if (simulated()) CHECK_IS(cuStreamIsCapturing(of_s, &(CUstreamCaptureStatus){0}), CUDA_SUCCESS);
    end_well(s);
    GONE(cuStreamQuery(of_s));
}

ROW(60_twice, "a stream cannot be joined twice at once")
{
    custream_t s, in[2];

    start();
    s = new_stream();
    in[0] = in[1] = new_stream();
    GIVES(custream_join(s, 2, in), INVALID_VALUE);
    WORKS(custream_query(in[0]));
    WORKS(custream_release(in[0]));
}

/* ---- Per-thread default streams: one in each context ---- */

ROW_WITH(52_contexts, "a thread captures its default streams of two devices at once",
    "CUSTREAM_FAKE_DEVICES=2")
{
    CUcontext there = NULL;
    custream_t d;

    start();
    there = primary_of(1);
    WORKS(custream_per_thread_default(&d));
    WORKS(custream_begin_capture(d, CUSTREAM_CAPTURE_RELAXED));
    OK(cuCtxSetCurrent(there));
    WORKS(custream_begin_capture(d, CUSTREAM_CAPTURE_RELAXED));
    end_well(d);
    OK(cuCtxSetCurrent(context));
    end_well(d);
    WORKS(custream_synchronize(d));
}

ROW_WITH(58_contexts, "a paused capture goes on where it was", "CUSTREAM_FAKE_DEVICES=2")
{
    CUcontext there = NULL;
    custream_t d;

    start();
    there = primary_of(1);
    WORKS(custream_per_thread_default(&d));
    WORKS(custream_begin_capture(d, CUSTREAM_CAPTURE_RELAXED));
    WORKS(custream_pause_capture(d));
    OK(cuCtxSetCurrent(there));
    GIVES(custream_resume_capture(d), CAPTURE_STATE);
    CHECK_IS(state_of(d), CUSTREAM_CAPTURE_NONE);
    WORKS(custream_begin_capture(d, CUSTREAM_CAPTURE_RELAXED)); /* nothing is paused here */
    end_well(d);
    OK(cuCtxSetCurrent(context));
    WORKS(custream_resume_capture(d));
    end_well(d);
}

/* ---- Begun or ended past this library ---- */

ROW(57_other, "another capture than the one that was begun here")
{
    custream_graph_t graph;
    custream_t s;
    CUstream raw;

    start();
    s = new_stream();
    raw = handle_of(s);
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    OK(cuGraphDestroy(ended_by_cuda(raw)));
    OK(cuStreamBeginCapture(raw, CU_STREAM_CAPTURE_MODE_RELAXED));
    FAILS(custream_end_capture(s, &graph), CAPTURE_STATE, graph);
    CHECK_IS(state_of(s), CUSTREAM_CAPTURE_ACTIVE);
    GIVES(custream_pause_capture(s), CAPTURE_STATE);
    CHECK_IS(state_of(s), CUSTREAM_CAPTURE_ACTIVE);
    WORKS(custream_adopt_capture(s));
    GIVES(custream_adopt_capture(s), CAPTURE_STATE);
    end_well(s);
}

ROW(57_again, "adopt at once what followed a capture of this library's")
{
    custream_t s;
    CUstream raw;

    start();
    s = new_stream();
    raw = handle_of(s);
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    OK(cuGraphDestroy(ended_by_cuda(raw)));
    OK(cuStreamBeginCapture(raw, CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(custream_adopt_capture(s));
    end_well(s);
}

/* ---- Questions, and waiting ---- */

ROW(55_query, "asking a stream that captures breaks nothing")
{
    custream_t s, blocking, legacy;

    start();
    s = new_stream();
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    GIVES(custream_query(s), CAPTURE_UNSUPPORTED);
    end_well(s);
    WORKS(custream_query(s));

    blocking = stream_with(-1, CUSTREAM_DEFAULT, 0);
    WORKS(custream_legacy_default(&legacy));
    WORKS(custream_begin_capture(
        blocking, CUSTREAM_CAPTURE_RELAXED)); /* the legacy stream would have to wait for it */
    GIVES(custream_query(legacy), CAPTURE_UNSUPPORTED);
    GIVES(custream_synchronize(legacy), CAPTURE_UNSUPPORTED);
    end_well(blocking);
    WORKS(custream_query(legacy));
}

static void refused(custream_event_t e, custream_t capturing)
{
    GIVES(custream_event_query(e), CAPTURE_UNSUPPORTED);
    GIVES(custream_event_synchronize(e), CAPTURE_UNSUPPORTED);
    CHECK_IS(state_of(capturing), CUSTREAM_CAPTURE_ACTIVE);
}

ROW(55_event, "asking an event that was recorded in a capture breaks nothing")
{
    custream_event_t before, e, f, of_branch;
    custream_event_options_t timed;
    custream_t s, branch;
    float ms;

    start();
    s = new_stream();
    before = new_event();
    WORKS(custream_record(s, before, 0));
    WORKS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED));
    WORKS(custream_event_options_init(&timed));
    timed.timing = 1;
    WORKS(custream_record_new(s, &timed, &e));
    WORKS(custream_record_new(s, &timed, &f));
    refused(e, s);
    GIVES(custream_event_elapsed_ms(e, f, 0, &ms), CAPTURE_UNSUPPORTED);
    WORKS(custream_event_synchronize(before)); /* of no capture */
    WORKS(custream_event_query(before));
    WORKS(custream_fork(s, 1, &branch));
    WORKS(custream_record_new(branch, NULL, &of_branch));
    refused(of_branch, s);
    WORKS(custream_join(s, 1, &branch));
    refused(of_branch, s); /* the stream is closed, but captured still */
    end_well(s);
    WORKS(custream_record(s, e, 0));
    WORKS(custream_record(s, of_branch, 0));
    WORKS(custream_event_synchronize(e));
    WORKS(custream_event_synchronize(of_branch));
    WORKS(custream_event_query(of_branch));
}

ROW(55_event_foreign, "an event recorded in a capture that somebody else began")
{
    custream_t w = NULL, branch;
    custream_event_t e;
    CUstream raw;

    start();
    OK(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture(raw, CU_STREAM_CAPTURE_MODE_RELAXED));
    WORKS(custream_wrap(&w, raw, -1, NULL, NULL));
    WORKS(custream_fork(w, 1, &branch));
    WORKS(custream_record_new(branch, NULL, &e));
    refused(e, w);
    WORKS(custream_join(w, 1, &branch));
    refused(e, w);
    GIVES(custream_device_synchronize(-1), CAPTURE_UNSUPPORTED); /* known by its branch */
    OK(cuGraphDestroy(ended_by_cuda(raw)));
    WORKS(custream_device_synchronize(-1));
    WORKS(custream_release(w));
    OK(cuStreamDestroy(raw));
}

ROW(55_device, "waiting for a device on which a stream captures breaks nothing")
{
    custream_t per_thread, s[4] = {NULL};
    CUstream raw;

    start();
    OK(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    WORKS(custream_per_thread_default(&per_thread));
    s[0] = new_stream();
    s[1] = stream_with(-1, CUSTREAM_DEFAULT, 0);
    s[2] = per_thread;
    WORKS(custream_wrap(&s[3], raw, -1, NULL, NULL));
    for (int i = 0; i < 4; i++) {
        WORKS(custream_begin_capture(s[i], CUSTREAM_CAPTURE_RELAXED));
        GIVES(custream_device_synchronize(-1), CAPTURE_UNSUPPORTED);
        end_well(s[i]);
        WORKS(custream_device_synchronize(-1));
    }
    OK(cuStreamDestroy(raw));
}

ROW(55_device_foreign, "a blocking stream that nobody has wrapped captures")
{
    CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
    CUstream raw;

    start();
    OK(cuStreamCreate(&raw, CU_STREAM_DEFAULT));
    OK(cuStreamBeginCapture(raw, CU_STREAM_CAPTURE_MODE_RELAXED));
    GIVES(custream_device_synchronize(-1), CAPTURE_UNSUPPORTED);
    OK(cuStreamIsCapturing(raw, &now));
    CHECK_IS(now, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuGraphDestroy(ended_by_cuda(raw)));
    OK(cuStreamDestroy(raw));
}

ROW_WITH(55_device_other, "a stream of another device captures", "CUSTREAM_FAKE_DEVICES=2")
{
    custream_t there[2] = {NULL};
    CUstream raw;

    start();
    OK(cuCtxSetCurrent(primary_of(1)));
    OK(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    OK(cuCtxSetCurrent(context));
    there[0] = stream_with(1, CUSTREAM_NON_BLOCKING, 0);
    WORKS(custream_wrap(&there[1], raw, -1, NULL, NULL));
    for (int i = 0; i < 2; i++) {
        WORKS(custream_begin_capture(there[i], CUSTREAM_CAPTURE_RELAXED));
        WORKS(custream_device_synchronize(0));
        GIVES(custream_device_synchronize(1), CAPTURE_UNSUPPORTED);
        end_well(there[i]);
    }
    WORKS(custream_release(there[1]));
    OK(cuStreamDestroy(raw));
}
