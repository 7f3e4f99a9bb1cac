/* Habits that cost time: the default stream, waits for the whole device, events and streams that do
 * nothing or are too many. */
#include "tests/apps/planted/device.h"

#include <string.h>

/* --- the default stream --- */

/* Kernels on two streams that could run side by side, all enqueued ahead. `between`: a short one
 * between them, or NULL. */
static void by_turns(CUstream first, CUstream second, CUstream between)
{
    struct gate gate = gate_new();
    gate_wait(gate, first);
    gate_wait(gate, second);
    for (int i = 0; i < ROUNDS; i++) {
        launch(FIRST, WORK_US, first);
        if (between) launch(THIRD, WORK_US / 10, between);
        launch(SECOND, WORK_US, second);
        if (between) launch(THIRD, WORK_US / 10, between);
    }
    gate_open(gate);
    device_done();
}

void legacy_serial(bool mended)
{
    by_turns(mended ? free_stream() : CU_STREAM_LEGACY, mended ? free_stream() : blocking_stream(),
        NULL);
    measured.cost_ns =
        ROUNDS * WORK_US * 1000ll; /* one stream's kernels could all run beside the other's */
}
void legacy_blocking(bool mended)
{
    by_turns(mended ? free_stream() : blocking_stream(), mended ? free_stream() : blocking_stream(),
        CU_STREAM_LEGACY);
    measured.cost_ns =
        ROUNDS * (WORK_US + 2 * WORK_US / 10) * 1000ll; /* and the short ones beside both */
}

/* --- the host waits --- */

void device_sync(bool mended)
{
    enum { STEPS = 20 };
    CUstream stream = free_stream();
    struct gate gate = gate_new();
    if (mended) gate_wait(gate, stream);
    for (int i = 0; i < STEPS; i++) {
        launch(FIRST, WORK_US, stream);
        if (mended) continue;
        device_done();
        if (i < STEPS - 1) measured.idle_ns += rest(WORK_US);
    }
    gate_open(gate);
    device_done();
    measured.cost_ns = measured.idle_ns;
}

/* Asks again and again whether an event has come. */
void spinning(bool mended)
{
    enum { QUERIES = 2000 }; /* fewer than a thread's ring has room for */
    CUstream stream = free_stream();
    CUevent event = event_new();
    for (int i = 0; i < ROUNDS; i++) {
        launch(FIRST, 3 * WORK_US, stream);
        MUST(cuEventRecord(event, stream));
        for (int j = 0; !mended && j < QUERIES && cuEventQuery(event) == CUDA_ERROR_NOT_READY; j++)
            continue;
        MUST(cuEventSynchronize(event));
    }
    device_done();
}

/* --- events and streams --- */

/* The waits are for an event that was recorded before the loop, and not behind the work whose
 * result is wanted. */
void early_record(bool mended)
{
    CUstream stream = free_stream(), other = free_stream();
    CUevent event = event_new();
    struct gate gate = gate_new();
    gate_wait(gate, stream);
    gate_wait(gate, other);
    for (int i = 0; i < ROUNDS; i++) {
        if (!mended && !i) MUST(cuEventRecord(event, other));
        for (int j = 0; j < 4; j++) launch(SECOND, WORK_US / 2, other);
        if (mended) MUST(cuEventRecord(event, other));
        MUST(cuStreamWaitEvent(stream, event, 0));
        launch(FIRST, WORK_US, stream);
    }
    gate_open(gate);
    device_done();
}

void never_recorded(bool mended)
{
    CUstream stream = free_stream(), other = free_stream();
    struct gate gate = gate_new();
    gate_wait(gate, stream);
    gate_wait(gate, other);
    for (int i = 0; i < ROUNDS; i++) {
        CUevent event = event_new();
        launch(SECOND, WORK_US, other);
        if (mended) MUST(cuEventRecord(event, other));
        MUST(cuStreamWaitEvent(stream, event, 0));
        launch(FIRST, WORK_US, stream);
        MUST(cuEventDestroy(event));
    }
    gate_open(gate);
    device_done();
}

/* Waits on the stream that recorded the event, which is in order anyway: so many that the GPU has
 * nothing to do meanwhile. */
void wait_for_nothing(bool mended)
{
    enum { WAITS = 1000 };
    CUstream stream = free_stream();
    CUevent event = event_new();
    struct gate gate = gate_new();
    if (mended) gate_wait(gate, stream);
    for (int i = 0; i < ROUNDS; i++) {
        launch(FIRST, WORK_US / 100, stream);
        MUST(cuEventRecord(event, stream));
        for (int j = 0; !mended && j < WAITS; j++) MUST(cuStreamWaitEvent(stream, event, 0));
    }
    gate_open(gate);
    device_done();
    MUST(cuEventDestroy(event));
    MUST(cuStreamDestroy(stream));
}

void many_events(bool mended)
{
    enum { MANY = 200 };
    CUstream stream = free_stream();
    CUevent event = mended ? event_new() : NULL;
    launch(FIRST, WORK_US, stream);
    for (int i = 0; i < MANY; i++) {
        if (!mended) event = event_new();
        MUST(cuEventRecord(event, stream));
    }
    device_done();
    MUST(cuEventDestroy(event)); /* the last one, of so many */
    MUST(cuStreamDestroy(stream));
}

/* More streams with work at once than there are queues to the device: what waits for the work
 * before it holds the other streams of its queue. */
void many_streams(bool mended)
{
    enum { MANY = 24, EACH = 20 };
    CUstream streams[MANY];
    struct gate gate = gate_new();
    int count = mended ? 4 : MANY;
    for (int i = 0; i < count; i++) streams[i] = free_stream();
    for (int i = 0; i < count; i++) {
        gate_wait(gate, streams[i]);
        launch(SECOND, WORK_US / 100, streams[i]);
    }
    for (int i = 0; i < MANY * EACH; i++) launch(FIRST, WORK_US / 20, streams[i / EACH % count]);
    gate_open(gate);
    device_done();
}

/* Priorities that the device does not have, so that both streams get the same. */
void priorities(bool mended)
{
    CUstream streams[2];
    struct gate gate = gate_new();
    int least, greatest;
    MUST(cuCtxGetStreamPriorityRange(&least, &greatest));
    for (int i = 0; i < 2; i++) {
        int asked = mended ? (i ? greatest : least) : greatest - 5 * (i + 1);
        MUST(cuStreamCreateWithPriority(&streams[i], CU_STREAM_NON_BLOCKING, asked));
    }
    for (int i = 0; i < 2; i++) gate_wait(gate, streams[i]);
    for (int i = 0; i < 2 * ROUNDS; i++) launch(i % 2 ? SECOND : FIRST, WORK_US, streams[i % 2]);
    gate_open(gate);
    device_done();
}

/* Calls that fail, and nobody looks. */
void failing(bool mended)
{
    CUstream stream = free_stream();
    CUdeviceptr memory = device_memory();
    void *from = pinned_memory();
    memset(from, 0, copy_bytes);
    for (int i = 0; i < ROUNDS; i++) {
        CUresult result = cuMemcpyHtoDAsync(mended ? memory : 0, from, copy_bytes, stream);
        if (mended != (result == CUDA_SUCCESS)) exit(1);
        launch(FIRST, WORK_US, stream);
    }
    device_done();
}
