/* The activity functions: what is recorded, and when the client gets it. */
#include "tests/fakecuda/cupti/fake_cupti.h"

#include <dlfcn.h>
#include <unistd.h>

pthread_mutex_t cupti_state = PTHREAD_MUTEX_INITIALIZER; /* guards what is on, and being attached */
static const struct fake_traced *(*door)(const struct fake_tracer *);
static const struct fake_traced *driver;
static bool attached, forked;

/* ---- The driver ---- */

static void find_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);

    if (library) *(void **)&door = dlsym(library, "custream_fakecuda_trace");
    if (door) driver = door(NULL);
}

const struct fake_traced *cupti_driver(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_driver);
    if (UNLIKELY(forked)) {
        driver = door ? door(NULL) : NULL;
        forked = false;
    }
    return driver;
}

static bool any_single(void)
{
    for (size_t i = 0; i < DRIVER_CALLS; i++)
        if (cupti_driver_on[i]) return true;
    return false;
}

static bool anything_on(void)
{
    static const CUpti_ActivityKind recorded[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
        CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_DRIVER,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CUDA_EVENT,
        CUPTI_ACTIVITY_KIND_RUNTIME};

    for (size_t i = 0; i < COUNT_OF(recorded); i++)
        if (cupti_on(recorded[i])) return true;
    return any_single() || cupti_called_back_count != 0 || cupti_runtime_called_back_count != 0;
}

/* The child of a fork can do nothing with the driver, and has no worker. */
static void in_child(void)
{
    pthread_mutex_init(&cupti_state, NULL);
    cupti_clock_forked();
    cupti_work_forked();
    cupti_buffers_forked();
    memset(cupti_kinds, 0, sizeof cupti_kinds);
    memset(cupti_driver_on, 0, sizeof cupti_driver_on);
    cupti_subscriber_forget();
    attached = false;
    forked = true;
}

void cupti_attach(void)
{
    static const struct fake_tracer tracer = {
        cupti_call_enter, cupti_call_exit, cupti_work_new, cupti_work_done};
    static bool watching;
    bool wanted = anything_on();

    if (!watching) pthread_atfork(NULL, NULL, in_child);
    watching = true;
    if (wanted == attached) return;
    if (wanted) {
        cupti_clock_mark();
        cupti_worker_start();
    }
    door(wanted ? &tracer : NULL);
    attached = wanted;
}

/* ---- What is on ---- */

static CUptiResult check_kind(CUpti_ActivityKind kind)
{
    if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT)
        return CUPTI_ERROR_INVALID_KIND;
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_EVENT:
    case CUPTI_ACTIVITY_KIND_METRIC:
    case CUPTI_ACTIVITY_KIND_EVENT_INSTANCE:
    case CUPTI_ACTIVITY_KIND_METRIC_INSTANCE:
    case CUPTI_ACTIVITY_KIND_INSTANTANEOUS_EVENT:
    case CUPTI_ACTIVITY_KIND_INSTANTANEOUS_EVENT_INSTANCE:
    case CUPTI_ACTIVITY_KIND_INSTANTANEOUS_METRIC:
    case CUPTI_ACTIVITY_KIND_INSTANTANEOUS_METRIC_INSTANCE:
        return CUPTI_ERROR_NOT_COMPATIBLE; /* gone with the legacy profiler */
    default: return CUPTI_SUCCESS;
    }
}

/* Single calls are honoured where one was on when there came to be a context, and no more once the
 * DRIVER kind was switched off; the answer is the same either way. Calls of the runtime are seen
 * from when the kind of either was on with a context, until cuptiFinalize; single ones from when
 * they are called back. */
static enum { SINGLES_OPEN, SINGLES_HONOURED, SINGLES_LOST } singles;

static void see_runtime(void)
{
    bool on = cupti_on(CUPTI_ACTIVITY_KIND_DRIVER) || cupti_on(CUPTI_ACTIVITY_KIND_RUNTIME) ||
              (cupti_runtime_seen && driver->any_context());
    __atomic_store_n(&cupti_runtime_seen, on, __ATOMIC_RELAXED);
}

static CUptiResult set_kind(CUpti_ActivityKind kind, bool on)
{
    CUptiResult result = check_kind(kind);

    if (result) return result;
    if (!cupti_driver()) return CUPTI_ERROR_NOT_INITIALIZED;
    LOCKED(cupti_state);
    __atomic_store_n(&cupti_kinds[kind], on, __ATOMIC_RELAXED);
    cupti_fault_watch(false);
    if (kind == CUPTI_ACTIVITY_KIND_DRIVER)
        for (size_t i = 1; i < DRIVER_CALLS; i++)
            __atomic_store_n(&cupti_driver_on[i], on, __ATOMIC_RELAXED);
    if (kind == CUPTI_ACTIVITY_KIND_DRIVER && !on && driver->any_context()) singles = SINGLES_LOST;
    if (kind == CUPTI_ACTIVITY_KIND_DRIVER || kind == CUPTI_ACTIVITY_KIND_RUNTIME) see_runtime();
    cupti_attach();
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind)
{
    ENTER(cuptiActivityEnable);
    return set_kind(kind, true);
}
CUptiResult CUPTIAPI cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
    ENTER(cuptiActivityEnableAndDump);
    return set_kind(kind, true);
}
CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind)
{
    ENTER(cuptiActivityDisable);
    return set_kind(kind, false);
}

CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
    ENTER(cuptiActivityEnableDriverApi);
    if (!cbid || cbid >= DRIVER_CALLS) return CUPTI_ERROR_INVALID_PARAMETER;
    if (!cupti_driver()) return CUPTI_ERROR_NOT_INITIALIZED;
    LOCKED(cupti_state);
    if (singles == SINGLES_OPEN && cupti_driver()->any_context())
        singles = any_single() ? SINGLES_HONOURED : SINGLES_LOST;
    if (singles != SINGLES_LOST || cupti_on(CUPTI_ACTIVITY_KIND_DRIVER))
        __atomic_store_n(&cupti_driver_on[cbid], enable != 0, __ATOMIC_RELAXED);
    cupti_attach();
    return CUPTI_SUCCESS;
}

/* The runtime's calls are not recorded one by one: these are taken and have no effect. */
CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable)
{
    ENTER(cuptiActivityEnableRuntimeApi);
    (void)cbid, (void)enable;
    return cupti_driver() ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_INITIALIZED;
}

/* ---- Buffers ---- */

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(
    CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete)
{
    ENTER(cuptiActivityRegisterCallbacks);
    if (!request || !complete) return CUPTI_ERROR_INVALID_PARAMETER;
    cupti_buffers_register(request, complete);
    return CUPTI_SUCCESS;
}

/* The record of what a flush itself takes. */
static void write_overhead(uint64_t start)
{
    CUpti_ActivityOverhead3 record = {.kind = CUPTI_ACTIVITY_KIND_OVERHEAD,
        .overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH,
        .objectKind = CUPTI_ACTIVITY_OBJECT_THREAD,
        .objectId.pt = {(uint32_t)getpid(), cupti_thread_id()},
        .start = start,
        .end = cupti_now()};
    cupti_write(cupti_own_source(), &record, sizeof record);
}

static CUptiResult flush(uint32_t flag)
{
    bool forced = flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED;
    uint64_t start = cupti_now();

    if (!cupti_buffers_registered() || cupti_inside) return CUPTI_ERROR_INVALID_OPERATION;
    if (cupti_driver()) cupti_driver()->advance();
    if (!forced) cupti_fault_watch(true);
    cupti_drain(forced);
    if (cupti_on(CUPTI_ACTIVITY_KIND_OVERHEAD)) write_overhead(start);
    cupti_deliver(true, forced);
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag)
{
    ENTER(cuptiActivityFlushAll);
    return flush(flag);
}
CUptiResult CUPTIAPI cuptiActivityFlush(CUcontext context, uint32_t stream, uint32_t flag)
{
    ENTER(cuptiActivityFlush);
    (void)context, (void)stream;
    return flush(flag);
}

/* The worker gives full buffers back anyway, and a period gives no others. */
CUptiResult CUPTIAPI cuptiActivityFlushPeriod(uint32_t milliseconds)
{
    ENTER(cuptiActivityFlushPeriod);
    (void)milliseconds;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(
    CUcontext context, uint32_t stream, size_t *dropped)
{
    ENTER(cuptiActivityGetNumDroppedRecords);
    (void)context, (void)stream;
    if (!dropped) return CUPTI_ERROR_INVALID_PARAMETER;
    *dropped = cupti_buffers_dropped();
    return CUPTI_SUCCESS;
}

static size_t record_bytes(CUpti_ActivityKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return sizeof(CUpti_ActivityGraphTrace2);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: return sizeof(CUpti_ActivityCudaEvent2);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_OVERHEAD: return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL: return sizeof(CUpti_ActivityMemoryPool3);
    case CUPTI_ACTIVITY_KIND_MEMORY2: return sizeof(CUpti_ActivityMemory4);
    default: return 0;
    }
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(
    uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    size_t at = 0, bytes;

    ENTER(cuptiActivityGetNextRecord);
    if (!buffer || !record) return CUPTI_ERROR_INVALID_PARAMETER;
    if (*record) at = (size_t)((uint8_t *)*record - buffer) + record_bytes((*record)->kind);
    if (at >= valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    bytes = record_bytes(((CUpti_Activity *)(buffer + at))->kind);
    if (!bytes || at + bytes > valid) return CUPTI_ERROR_INVALID_KIND;
    *record = (CUpti_Activity *)(buffer + at);
    return CUPTI_SUCCESS;
}

/* ---- Options ---- */

CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback)
{
    ENTER(cuptiActivityRegisterTimestampCallback);
    if (!callback) return CUPTI_ERROR_INVALID_PARAMETER;
    cupti_clock_set(callback);
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t *timestamp)
{
    ENTER(cuptiGetTimestamp);
    if (!timestamp) return CUPTI_ERROR_INVALID_PARAMETER;
    *timestamp = cupti_now();
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
    ENTER(cuptiActivityEnableLatencyTimestamps);
    cupti_latency = enable != 0;
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnableAllSyncRecords(uint8_t enable)
{
    ENTER(cuptiActivityEnableAllSyncRecords);
    cupti_all_syncs = enable != 0;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
    ENTER(cuptiSetThreadIdType);
    if (type != CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT &&
        type != CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
        return CUPTI_ERROR_INVALID_PARAMETER;
    cupti_system_threads = type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type)
{
    ENTER(cuptiGetThreadIdType);
    if (!type) return CUPTI_ERROR_INVALID_PARAMETER;
    *type = cupti_system_threads ? CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM
                                 : CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
    return CUPTI_SUCCESS;
}

/* Taken, without effect: nothing here launches graphs from the device, has attributes or allocates
 * by a library's name. */
#define IGNORED(function) \
    CUptiResult CUPTIAPI function(uint8_t enable) { \
        ENTER(function); \
        (void)enable; \
        return CUPTI_SUCCESS; \
    }
IGNORED(cuptiActivityEnableLaunchAttributes)
IGNORED(cuptiActivityEnableDeviceGraph)
IGNORED(cuptiActivityEnableAllocationSource)
IGNORED(cuptiActivityEnableCudaEventDeviceTimestamps)

CUptiResult CUPTIAPI cuptiActivityEnableHWTrace(uint8_t enable)
{
    ENTER(cuptiActivityEnableHWTrace);
    (void)enable;
    return CUPTI_ERROR_NOT_SUPPORTED; /* Blackwell alone has it */
}

/* Values of size_t, but for the three of one byte; the defaults are the header's. */
static struct attribute {
    size_t bytes, value;
} attributes[] = {
    [CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE] = {sizeof(size_t), 3200000},
    [CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP] = {sizeof(size_t), 8388608},
    [CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT] = {sizeof(size_t), 250},
    [CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE] = {sizeof(size_t), 25000},
    [CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT] = {sizeof(size_t), 250},
    [CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER] = {1, 0},
    [CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE] = {sizeof(size_t), 3},
    [CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE] = {sizeof(size_t), 3},
    [CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED] = {1, 0},
    [CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER] = {1, 1},
    [CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS] = {sizeof(size_t), 16777216},
};

static CUptiResult check_attribute(
    CUpti_ActivityAttribute attribute, const size_t *bytes, const void *value)
{
    if (!bytes || !value || (size_t)attribute >= COUNT_OF(attributes))
        return CUPTI_ERROR_INVALID_PARAMETER;
    return *bytes < attributes[attribute].bytes ? CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT
                                                : CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetAttribute(
    CUpti_ActivityAttribute attribute, size_t *bytes, void *value)
{
    CUptiResult result;

    ENTER(cuptiActivityGetAttribute);
    result = check_attribute(attribute, bytes, value);
    if (result) return result;
    LOCKED(cupti_state);
    *bytes = attributes[attribute].bytes;
    memcpy(value, &attributes[attribute].value, *bytes); /* little endian */
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivitySetAttribute(
    CUpti_ActivityAttribute attribute, size_t *bytes, void *value)
{
    CUptiResult result;

    ENTER(cuptiActivitySetAttribute);
    result = check_attribute(attribute, bytes, value);
    if (result) return result;
    LOCKED(cupti_state);
    attributes[attribute].value = 0;
    memcpy(&attributes[attribute].value, value, attributes[attribute].bytes);
    if (attribute == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER)
        cupti_per_thread = attributes[attribute].value != 0;
    return CUPTI_SUCCESS;
}

/* ---- The end ---- */

/* Everything is off and forgotten, the client's callbacks and the buffers on loan too; the
 * correlation ids go on. */
CUptiResult CUPTIAPI cuptiFinalize(void)
{
    ENTER(cuptiFinalize);
    {
        LOCKED(cupti_state);
        for (size_t i = 0; i < KINDS; i++) __atomic_store_n(&cupti_kinds[i], 0, __ATOMIC_RELAXED);
        cupti_fault_watch(false);
        for (size_t i = 0; i < DRIVER_CALLS; i++)
            __atomic_store_n(&cupti_driver_on[i], 0, __ATOMIC_RELAXED);
        __atomic_store_n(&cupti_runtime_seen, false, __ATOMIC_RELAXED);
        for (size_t i = 0; i < RUNTIME_CALLS; i++)
            __atomic_store_n(&cupti_runtime_numbered[i], 0, __ATOMIC_RELAXED);
        singles = SINGLES_OPEN;
        cupti_subscriber_forget();
        __atomic_add_fetch(&cupti_generation, 1, __ATOMIC_RELAXED);
        if (cupti_driver()) cupti_attach();
    }
    cupti_work_forget();
    cupti_buffers_forget();
    cupti_clock_set(NULL);
    cupti_all_syncs = true;
    cupti_latency = cupti_system_threads = false;
    return CUPTI_SUCCESS;
}
