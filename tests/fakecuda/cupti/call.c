/* Calls of the driver: correlation ids, and the records of the calls themselves. */
#include "tests/fakecuda/cupti/fake_cupti.h"

#include <sys/syscall.h>
#include <unistd.h>

uint8_t cupti_kinds[KINDS];
uint8_t cupti_driver_on[DRIVER_CALLS];
unsigned cupti_generation;
bool cupti_system_threads, cupti_all_syncs = true, cupti_runtime_seen;
uint8_t cupti_runtime_numbered[RUNTIME_CALLS];

/* A call takes its id on entry if it will be recorded, else when it first enqueues work. */
uint32_t cupti_correlation(struct fake_trace_call *call)
{
    static uint32_t last;

    if (!call) return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    if (!call->correlation) call->correlation = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return call->correlation;
}

uint32_t cupti_thread_id(void)
{
    return cupti_system_threads ? (uint32_t)syscall(SYS_gettid)
                                : (uint32_t)(uintptr_t)pthread_self();
}

/* The symbol's number, looked up once a symbol; 0 for what came after this CUPTI. */
static uint32_t number_of(struct fake_trace_call *call)
{
    uint32_t note = __atomic_load_n(call->note, __ATOMIC_RELAXED);

    if (!note) {
        note = cupti_driver_number(call->name) + 1;
        __atomic_store_n(call->note, note, __ATOMIC_RELAXED);
    }
    return note - 1;
}

static void enter_runtime(struct fake_trace_call *call)
{
    call->cbid = cupti_runtime_number(call->name);
    if (!__atomic_load_n(&cupti_runtime_seen, __ATOMIC_RELAXED) &&
        !__atomic_load_n(&cupti_runtime_numbered[call->cbid], __ATOMIC_RELAXED))
        return;
    call->recorded = call->cbid && cupti_on(CUPTI_ACTIVITY_KIND_RUNTIME);
    call->called_back =
        call->cbid && __atomic_load_n(&cupti_runtime_called_back[call->cbid], __ATOMIC_RELAXED);
    cupti_correlation(call);
    if (call->called_back) cupti_call_back(call, NULL);
    call->start = cupti_now();
}

/* The call of the runtime that this one of the driver is made in, and whose number its work has. */
static struct fake_trace_call *around(const struct fake_trace_call *call)
{
    return call->outer && call->outer->runtime && call->outer->correlation ? call->outer : NULL;
}

void cupti_call_enter(struct fake_trace_call *call)
{
    if (call->runtime) {
        if (!cupti_inside) enter_runtime(call);
        return;
    }
    call->cbid = number_of(call);
    if (cupti_inside) return;
    if (around(call)) call->correlation = around(call)->correlation;
    else
        call->recorded =
            call->cbid && __atomic_load_n(&cupti_driver_on[call->cbid], __ATOMIC_RELAXED);
    call->called_back =
        call->cbid && __atomic_load_n(&cupti_called_back[call->cbid], __ATOMIC_RELAXED);
    if (call->recorded || call->called_back) cupti_correlation(call);
    if (call->called_back) cupti_call_back(call, NULL);
    if (call->recorded || cupti_latency || cupti_on(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION))
        call->start = cupti_now();
}

/* ---- External correlation ---- */

struct external {
    struct external *next;
    uint64_t id;
};
static __thread struct external *externals[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];

static void write_externals(uint32_t correlation)
{
    if (!cupti_on(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return;
    for (int kind = 1; kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE; kind++) {
        CUpti_ActivityExternalCorrelation record = {
            .kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
            .externalKind = kind,
            .correlationId = correlation};
        if (!externals[kind]) continue;
        record.externalId = externals[kind]->id;
        cupti_write(cupti_own_source(), &record, sizeof record);
    }
}

CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(
    CUpti_ExternalCorrelationKind kind, uint64_t id)
{
    struct external *external;

    ENTER(cuptiActivityPushExternalCorrelationId);
    if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID ||
        kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
        return CUPTI_ERROR_INVALID_PARAMETER;
    external = malloc(sizeof *external);
    if (!external) return CUPTI_ERROR_OUT_OF_MEMORY;
    *external = (struct external){externals[kind], id};
    externals[kind] = external;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(
    CUpti_ExternalCorrelationKind kind, uint64_t *last)
{
    struct external *external;

    ENTER(cuptiActivityPopExternalCorrelationId);
    if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID ||
        kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
        return CUPTI_ERROR_INVALID_PARAMETER;
    external = externals[kind];
    if (!external) return CUPTI_ERROR_QUEUE_EMPTY;
    if (last) *last = external->id;
    externals[kind] = external->next;
    free(external);
    return CUPTI_SUCCESS;
}

/* ---- What a call leaves behind ---- */

static void write_sync(struct fake_trace_call *call, CUresult result, uint64_t end)
{
    static const CUpti_ActivitySynchronizationType types[] = {
        [FAKE_SYNC_EVENT] = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE,
        [FAKE_SYNC_WAIT] = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT,
        [FAKE_SYNC_STREAM] = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
        [FAKE_SYNC_CONTEXT] = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE,
    };
    const struct fake_trace_sync *sync = &call->sync;
    CUpti_ActivitySynchronization2 record = {
        .kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
        .type = types[sync->kind],
        .start = call->start,
        .end = end,
        .correlationId = cupti_correlation(call),
        .contextId = sync->context,
        .streamId = sync->stream ? sync->stream : CUPTI_SYNCHRONIZATION_INVALID_VALUE,
        .cudaEventId = sync->event ? sync->event : CUPTI_SYNCHRONIZATION_INVALID_VALUE,
        .cudaEventSyncId = sync->event ? sync->recording : CUPTI_SYNCHRONIZATION_INVALID_VALUE,
        .returnValue = (uint32_t)result,
    };

    if (sync->query && result && !cupti_all_syncs) return;
    cupti_write(cupti_own_source(), &record, sizeof record);
}

static void write_event(struct fake_trace_call *call)
{
    const struct fake_trace_sync *sync = &call->sync;
    CUpti_ActivityCudaEvent2 record = {.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT,
        .correlationId = cupti_correlation(call),
        .contextId = sync->context,
        .streamId = sync->stream,
        .eventId = sync->event,
        .deviceId = sync->device,
        .cudaEventSyncId = sync->recording};

    cupti_write(cupti_own_source(), &record, sizeof record);
}

static void write_call(struct fake_trace_call *call, CUresult result, uint64_t end)
{
    CUpti_ActivityAPI record = {
        .kind = call->runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER,
        .cbid = call->cbid,
        .start = call->start,
        .end = end,
        .processId = (uint32_t)getpid(),
        .threadId = cupti_thread_id(),
        .correlationId = call->correlation,
        .returnValue = (uint32_t)result};

    write_externals(call->correlation);
    cupti_write(cupti_own_source(), &record, sizeof record);
}

void cupti_call_exit(struct fake_trace_call *call, CUresult result)
{
    uint64_t end;

    if (cupti_inside) return;
    end = call->start ? cupti_now() : 0;
    if (call->called_back) cupti_call_back(call, &result);
    if (call->recorded) write_call(call, result, end);
    if (call->sync.kind == FAKE_EVENT_RECORD) {
        if (cupti_on(CUPTI_ACTIVITY_KIND_CUDA_EVENT)) write_event(call);
    } else if (call->sync.kind && call->start && cupti_on(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) {
        write_sync(call, result, end);
    }
}
