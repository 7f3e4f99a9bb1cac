/* A client of CUPTI that keeps all records it is given, in the order in which it got them. */
#ifndef FAKECUDA_RECORDS_H
#define FAKECUDA_RECORDS_H

#include <cupti_activity.h>
#include <cupti_driver_cbid.h>
#include <cupti_version.h>
#include <pthread.h>
#include <stdbool.h>

#include "device.h"

union record {
    CUpti_Activity any;
    CUpti_ActivityKernel10 kernel;
    CUpti_ActivityMemcpy6 copy;
    CUpti_ActivityMemcpyPtoP4 peer;
    CUpti_ActivityMemset4 set;
    CUpti_ActivityGraphTrace2 graph;
    CUpti_ActivityAPI api;
    CUpti_ActivitySynchronization2 sync;
    CUpti_ActivityExternalCorrelation external;
    CUpti_ActivityOverhead3 overhead;
    CUpti_ActivityCudaEvent2 event;
};

enum { MAX_RECORDS = 20000 };
static union record records[MAX_RECORDS]; /* guarded by records_lock while work goes on */
static size_t record_count, buffers_given, buffers_back, buffer_size = 1 << 16, buffer_most,
                                                         buffer_skew;
static bool buffer_refused;
static pthread_t given_back_by; /* the last buffer */
static pthread_mutex_t records_lock = PTHREAD_MUTEX_INITIALIZER;

#define SIZE_OF(kind_, member) \
    case CUPTI_ACTIVITY_KIND_##kind_: return sizeof records[0].member
static inline size_t record_size(CUpti_ActivityKind kind)
{
    switch (kind) {
        SIZE_OF(CONCURRENT_KERNEL, kernel);
        SIZE_OF(KERNEL, kernel);
        SIZE_OF(MEMCPY, copy);
        SIZE_OF(MEMCPY2, peer);
        SIZE_OF(MEMSET, set);
        SIZE_OF(GRAPH_TRACE, graph);
        SIZE_OF(DRIVER, api);
        SIZE_OF(RUNTIME, api);
        SIZE_OF(SYNCHRONIZATION, sync);
        SIZE_OF(EXTERNAL_CORRELATION, external);
        SIZE_OF(OVERHEAD, overhead);
        SIZE_OF(CUDA_EVENT, event);
    default: return 0;
    }
}

static void CUPTIAPI ask_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
    pthread_mutex_lock(&records_lock);
    *buffer = buffer_refused ? NULL : aligned_alloc(8, buffer_size + 8);
    *size = buffer_refused ? 0 : buffer_size;
    *most = buffer_most;
    if (*buffer) *buffer += buffer_skew, buffers_given++;
    pthread_mutex_unlock(&records_lock);
}

static void CUPTIAPI take_buffer(
    CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;

    pthread_mutex_lock(&records_lock);
    CHECK(!ctx && !stream);
    CHECK_IS(size, buffer_size);
    buffers_back++;
    given_back_by = pthread_self();
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        CHECK((uintptr_t)record % 8 == 0);
        CHECK(record_size(record->kind) != 0);
        if (record_count < MAX_RECORDS)
            memcpy(&records[record_count++], record, record_size(record->kind));
    }
    free(buffer - buffer_skew);
    pthread_mutex_unlock(&records_lock);
}

static inline void forget_records(void) { record_count = buffers_given = buffers_back = 0; }

static inline void enable(CUpti_ActivityKind kind) { OK(cuptiActivityEnable(kind)); }
static inline void disable(CUpti_ActivityKind kind) { OK(cuptiActivityDisable(kind)); }

/* Gets all that is finished. */
static inline void flush(void) { OK(cuptiActivityFlushAll(0)); }

static inline size_t count_kind(CUpti_ActivityKind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < record_count; i++) count += records[i].any.kind == kind;
    return count;
}

/* The nth record of a kind. If there is none the test cannot go on. */
static inline union record *nth(CUpti_ActivityKind kind, size_t n)
{
    for (size_t i = 0; i < record_count; i++)
        if (records[i].any.kind == kind && n-- == 0) return &records[i];
    fprintf(stderr, "no record %zu of kind %d among %zu\n", n, (int)kind, record_count);
    exit(1);
}
#define NTH(kind, n) nth(CUPTI_ACTIVITY_KIND_##kind, n)

/* The record of the call with this number, the latest of several. */
static inline CUpti_ActivityAPI *call_record(uint32_t cbid)
{
    for (size_t i = record_count; i-- > 0;)
        if (records[i].any.kind == CUPTI_ACTIVITY_KIND_DRIVER && records[i].api.cbid == cbid)
            return &records[i].api;
    fprintf(stderr, "no record of call %u among %zu\n", cbid, record_count);
    exit(1);
}
#define CALL_RECORD(call) call_record(CUPTI_DRIVER_TRACE_CBID_##call)

#endif
