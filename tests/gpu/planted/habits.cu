// Habits that cost time: the default stream, waits for the whole device, events and streams that do nothing or are too many.
#include "tests/gpu/planted/device.cuh"

#include <cstring>

// --- the default stream ---

// Kernels on two streams that could run side by side, all enqueued ahead. `between`: a short one on the default stream after each.
static void by_turns(cudaStream_t first, cudaStream_t second, bool between) {
    enqueued_ahead({first, second}, [=] {
        for (int i = 0; i < ROUNDS; i++) {
            launch(FIRST, WORK_US, first);
            if (between) launch(THIRD, WORK_US / 10, 0);
            launch(SECOND, WORK_US, second);
            if (between) launch(THIRD, WORK_US / 10, 0);
        }
    });
    measured.cost_ns = ROUNDS * (WORK_US + (between ? 2 * WORK_US / 10 : 0)) * 1000ll; // all but one stream's kernels could run beside those
}
void legacy_serial(bool mended) {
    if (mended) by_turns(free_stream(), free_stream(), false);
    else by_turns(0, blocking_stream(), false);
}
void legacy_blocking(bool mended) {
    if (mended) by_turns(free_stream(), free_stream(), true);
    else by_turns(blocking_stream(), blocking_stream(), true);
}

// --- the host waits ---

void device_sync(bool mended) {
    enum { STEPS = 20 };
    cudaStream_t stream = free_stream();
    if (mended) {
        enqueued_ahead({stream}, [=] {
            for (int i = 0; i < STEPS; i++) launch(FIRST, WORK_US, stream);
        });
        return;
    }
    for (int i = 0; i < STEPS; i++) {
        launch(FIRST, WORK_US, stream);
        MUST(cudaDeviceSynchronize());
        if (i < STEPS - 1) measured.idle_ns += rest(WORK_US);
    }
    measured.cost_ns = measured.idle_ns;
}

// Asks again and again whether an event has come.
void spinning(bool mended) {
    enum { QUERIES = 2000 }; // fewer than a thread's ring has room for
    cudaStream_t stream = free_stream();
    cudaEvent_t event = event_new();
    for (int i = 0; i < ROUNDS; i++) {
        launch(FIRST, 3 * WORK_US, stream);
        MUST(cudaEventRecord(event, stream));
        for (int j = 0; !mended && j < QUERIES && cudaEventQuery(event) == cudaErrorNotReady; j++) continue;
        MUST(cudaEventSynchronize(event));
        (void)cudaGetLastError(); // a query's answer is no error of the next launch
    }
    MUST(cudaDeviceSynchronize());
}

// --- events and streams ---

// The waits are for an event that was recorded before the loop, and not behind the work whose result is wanted.
void early_record(bool mended) {
    cudaStream_t stream = free_stream(), other = free_stream();
    cudaEvent_t event = event_new();
    enqueued_ahead({stream, other}, [=] {
        if (!mended) MUST(cudaEventRecord(event, other));
        for (int i = 0; i < ROUNDS; i++) {
            for (int j = 0; j < 4; j++) launch(SECOND, WORK_US / 2, other);
            if (mended) MUST(cudaEventRecord(event, other));
            MUST(cudaStreamWaitEvent(stream, event));
            launch(FIRST, WORK_US, stream);
        }
    });
}

void never_recorded(bool mended) {
    cudaStream_t stream = free_stream(), other = free_stream();
    enqueued_ahead({stream, other}, [=] {
        for (int i = 0; i < ROUNDS; i++) {
            cudaEvent_t event = event_new();
            launch(SECOND, WORK_US, other);
            if (mended) MUST(cudaEventRecord(event, other));
            MUST(cudaStreamWaitEvent(stream, event));
            launch(FIRST, WORK_US, stream);
            MUST(cudaEventDestroy(event));
        }
    });
}

// Waits on the stream that recorded the event, which is in order anyway: so many that the GPU has nothing to do meanwhile.
void wait_for_nothing(bool mended) {
    enum { WAITS = 1000 };
    cudaStream_t stream = free_stream();
    cudaEvent_t event = event_new();
    auto rounds = [=](int waits) {
        for (int i = 0; i < ROUNDS; i++) {
            launch(FIRST, WORK_US / 100, stream);
            MUST(cudaEventRecord(event, stream));
            for (int j = 0; j < waits; j++) MUST(cudaStreamWaitEvent(stream, event));
        }
    };
    if (mended) enqueued_ahead({stream}, [=] { rounds(0); });
    else rounds(WAITS);
    MUST(cudaDeviceSynchronize());
    MUST(cudaEventDestroy(event));
    MUST(cudaStreamDestroy(stream));
}

void many_events(bool mended) {
    enum { MANY = 200 };
    cudaStream_t stream = free_stream();
    cudaEvent_t event = mended ? event_new() : nullptr;
    launch(FIRST, WORK_US, stream);
    for (int i = 0; i < MANY; i++) {
        if (!mended) event = event_new();
        MUST(cudaEventRecord(event, stream));
    }
    MUST(cudaDeviceSynchronize());
    MUST(cudaEventDestroy(event)); // the last one, of so many
    MUST(cudaStreamDestroy(stream));
}

// More streams with work at once than there are queues to the device: what waits for the work before it holds the other streams of its queue.
void many_streams(bool mended) {
    enum { MANY = 24, EACH = 20 };
    cudaStream_t streams[MANY];
    Gate gate;
    int count = mended ? 4 : MANY;
    for (int i = 0; i < count; i++) streams[i] = free_stream();
    for (int i = 0; i < count; i++) {
        gate.wait(streams[i]);
        launch(SECOND, WORK_US / 100, streams[i]);
    }
    for (int i = 0; i < MANY * EACH; i++) launch(FIRST, WORK_US / 20, streams[i / EACH % count]);
    gate.open();
    MUST(cudaDeviceSynchronize());
}

// Priorities that the device does not have, so that both streams get the same.
void priorities(bool mended) {
    cudaStream_t streams[2];
    int least, greatest;
    MUST(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    for (int i = 0; i < 2; i++) {
        int asked = mended ? (i ? greatest : least) : greatest - 5 * (i + 1);
        MUST(cudaStreamCreateWithPriority(&streams[i], cudaStreamNonBlocking, asked));
    }
    enqueued_ahead({streams[0], streams[1]}, [=] {
        for (int i = 0; i < 2 * ROUNDS; i++) launch(i % 2 ? SECOND : FIRST, WORK_US, streams[i % 2]);
    });
}

// Calls that fail, and nobody looks.
void failing(bool mended) {
    cudaStream_t stream = free_stream();
    char *memory = device_memory(), *from = pinned_memory();
    memset(from, 0, copy_bytes);
    for (int i = 0; i < ROUNDS; i++) {
        cudaError_t result = cudaMemcpyAsync(mended ? memory : nullptr, from, copy_bytes, cudaMemcpyHostToDevice, stream);
        if (mended != (result == cudaSuccess)) exit(1);
        (void)cudaGetLastError(); // or the launch would seem to have failed
        launch(FIRST, WORK_US, stream);
    }
    MUST(cudaDeviceSynchronize());
}
