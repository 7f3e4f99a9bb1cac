#define _GNU_SOURCE
#include "shim/gpu/share.h"

#include <sched.h>
#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/keep.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/realdl.h"
#include "shim/gpu/share_record.h"

enum { KINDS = 64, CALLS = 2048 };

/* From when to when something is listened to, in ticks. begun 0: never; ended 0: still. */
struct span {
    _Atomic cs_u64 begun, ended;
};

/* A buffer of the client's, and the functions that it had registered by then: it goes back through those. */
struct filling {
    CUpti_BuffersCallbackRequestFunc request;
    CUpti_BuffersCallbackCompleteFunc complete;
    uint8_t *buffer; /* NULL: none at the moment */
    size_t size, most, used, records;
};

/* What the other client asked for. Written by its calls, under the lock; read by whoever brings it records. */
static struct cs_lock lock = CS_LOCK_INIT(CS_RANK_SHARE, "share");
static struct {
    CUpti_BuffersCallbackRequestFunc request;
    CUpti_BuffersCallbackCompleteFunc _Atomic complete; /* NULL: it does not listen */
    CUpti_BuffersCallbackRequestFunc last_request; /* it may enable again without registering again */
    CUpti_BuffersCallbackCompleteFunc last_complete;
    struct filling spare; /* that it has handed out and we have not filled; the lock's */
    struct span kinds[KINDS];
    struct span calls[2][CALLS]; /* driver and runtime calls: a kind of them is all of them */
    int calls_on;
    _Atomic int serving;         /* threads that bring it records, or ask it for a buffer, at this moment */
    _Atomic cs_u64 dropped;
    struct cs_scale scale;       /* the lock's */
} client;

static _Atomic bool ours; /* our backend has the records */

void *cs_share_real(const char *name)
{
    static const char *const sonames[] = {"libcupti.so.13", "libcupti.so.12"};
    struct cs_image image;
    for (size_t i = 0; i < CS_COUNT(sonames); i++)
        if (cs_image_find(sonames[i], &image)) return cs_image_symbol(&image, name);
    return NULL;
}

static bool span_is_open(const struct span *span) { return cs_load(&span->begun) && !cs_load(&span->ended); }

static bool span_has(const struct span *span, cs_u64 at)
{
    const cs_u64 begun = cs_load(&span->begun), ended = cs_load(&span->ended);
    return begun && at >= begun && (!ended || at < ended);
}

/* By how much the number of open ones changes. */
static int span_set(struct span *span, bool open, cs_u64 now)
{
    if (open == span_is_open(span)) return 0;
    if (open) cs_store(&span->begun, now);
    cs_store(&span->ended, open ? 0 : now);
    return open ? 1 : -1;
}

/* Threads that bring records look at them meanwhile. */
static void spans_forget(struct span *spans, size_t n)
{
    for (size_t i = 0; i < n; i++) cs_store(&spans[i].begun, 0), cs_store(&spans[i].ended, 0);
}

static bool is_on(CUpti_ActivityKind kind) { return (unsigned)kind < KINDS && span_is_open(&client.kinds[kind]); }

static bool any_on(void)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (is_on((CUpti_ActivityKind)kind)) return true;
    return client.calls_on != 0;
}

static bool asked_for(CUpti_ActivityKind kind) { return (unsigned)kind < KINDS && cs_load(&client.kinds[kind].begun); }

/* --- bringing it records --- */

/* Counts this thread in. It ends with the functions that it finds now, and who makes the client listen no more waits for it. */
static bool serve(struct filling *to)
{
    *to = (struct filling){0};
    if (!cs_load_acq(&client.complete)) return false;
    atomic_fetch_add(&client.serving, 1);
    cs_lock_take(&lock);
    to->request = client.request;
    to->complete = cs_load(&client.complete);
    cs_lock_drop(&lock);
    if (!to->complete) atomic_fetch_sub(&client.serving, 1);
    return to->complete;
}

static void serve_end(void) { atomic_fetch_sub(&client.serving, 1); }

static struct filling take_spare(void)
{
    cs_lock_take(&lock);
    const struct filling spare = client.spare;
    client.spare.buffer = NULL;
    cs_lock_drop(&lock);
    return spare;
}

/* False: there is one. */
static bool put_spare(const struct filling *buffer)
{
    cs_lock_take(&lock);
    const bool free = !client.spare.buffer;
    if (free) client.spare = *buffer;
    cs_lock_drop(&lock);
    return free;
}

static bool fetch(struct filling *to)
{
    const struct filling spare = take_spare();
    *to = (struct filling){.request = to->request, .complete = to->complete, .buffer = spare.buffer, .size = spare.size, .most = spare.most};
    if (!to->buffer) to->request(&to->buffer, &to->size, &to->most);
    return to->buffer != NULL;
}

static void deliver(struct filling *from)
{
    if (from->buffer) from->complete(NULL, 0, from->buffer, from->size, from->used);
    from->buffer = NULL;
}

/* As alone, a buffer of its own is always out: some clients do not flush without. Where another thread was faster, ours goes back empty. */
static void hand_out(struct filling *to)
{
    struct filling more = {.request = to->request, .complete = to->complete};
    cs_lock_take(&lock);
    const bool out = client.spare.buffer;
    cs_lock_drop(&lock);
    if (out) return;
    more.request(&more.buffer, &more.size, &more.most);
    if (more.buffer && !put_spare(&more)) deliver(&more);
}

static void hand_out_first(void)
{
    struct filling to;
    if (!serve(&to)) return;
    hand_out(&to);
    serve_end();
}

static bool is_for_client(const CUpti_Activity *record)
{
    CUpti_ActivityKind kind = record->kind;
    const CUpti_ActivityAPI *call = (const CUpti_ActivityAPI *)record;
    bool runtime = kind == CUPTI_ACTIVITY_KIND_RUNTIME;
    if ((runtime || kind == CUPTI_ACTIVITY_KIND_DRIVER) && call->cbid < CALLS) return span_has(&client.calls[runtime][call->cbid], call->start);
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && !asked_for(kind)) kind = CUPTI_ACTIVITY_KIND_KERNEL;
    cs_u64 begin = cs_shared_begin(record);
    return asked_for(kind) && (!begin || span_has(&client.kinds[kind], begin));
}

static void copy(struct filling *to, const CUpti_Activity *record, size_t size, const struct cs_scale *scale)
{
    if (to->buffer && (to->used + size > to->size || (to->most && to->records == to->most))) deliver(to);
    if (!to->buffer && (!fetch(to) || size > to->size)) {
        cs_add(&client.dropped, 1);
        return;
    }
    CUpti_Activity *theirs = (CUpti_Activity *)(to->buffer + to->used);
    memcpy(theirs, record, size);
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && !asked_for(record->kind)) theirs->kind = CUPTI_ACTIVITY_KIND_KERNEL;
    cs_shared_convert(theirs, scale);
    to->used += size;
    to->records++;
}

/* As it is now: the client may choose another clock while records are brought, from several threads at once. */
static struct cs_scale scale_now(void)
{
    cs_lock_take(&lock);
    const struct cs_scale scale = client.scale;
    cs_lock_drop(&lock);
    return scale;
}

/* Asks the clock, which is the client's: not under the lock. */
static void scale_set(CUpti_TimestampCallbackFunc clock)
{
    struct cs_scale scale;
    cs_scale_begin(&scale, clock);
    cs_lock_take(&lock);
    client.scale = scale;
    cs_lock_drop(&lock);
}

void cs_share_completed(const uint8_t *buffer, size_t valid)
{
    struct filling to;
    CUpti_Activity *record = NULL, *next = NULL;
    if (!serve(&to)) return;
    uint8_t *at = (uint8_t *)buffer;
    struct cs_scale scale = scale_now();
    cs_scale_extend(&scale);
    bool more = valid && cs_cupti()->cuptiActivityGetNextRecord(at, valid, &next) == CUPTI_SUCCESS;
    while (more) {
        record = next;
        more = cs_cupti()->cuptiActivityGetNextRecord(at, valid, &next) == CUPTI_SUCCESS;
        size_t size = (size_t)((more ? (const uint8_t *)next : buffer + valid) - (const uint8_t *)record);
        if (is_for_client(record)) copy(&to, record, size, &scale);
    }
    deliver(&to);
    hand_out(&to);
    serve_end();
}

void cs_share_dropped(size_t records) { cs_add(&client.dropped, records); }

/* It has what it asked for and listens no more: nothing of it may be called or written to. The spare is taken when nobody can hand one out any more. */
static void forget(void)
{
    cs_lock_take(&lock);
    client.request = NULL;
    cs_store_rel(&client.complete, NULL);
    cs_lock_drop(&lock);
    while (atomic_load(&client.serving)) sched_yield();
    struct filling spare = take_spare();
    deliver(&spare); /* empty */
    cs_lock_take(&lock);
    spans_forget(client.kinds, KINDS);
    spans_forget(client.calls[0], CALLS);
    spans_forget(client.calls[1], CALLS);
    client.calls_on = 0;
    cs_lock_drop(&lock);
}

/* Other threads are not here. */
void cs_share_after_fork_in_child(void)
{
    cs_lock_forget(&lock);
    cs_store(&client.serving, 0);
}

/* --- the backend's side --- */

bool cs_share_begin(void)
{
    cs_lock_take(&lock);
    bool free = !cs_load_acq(&client.complete);
    if (free) cs_store_rel(&ours, true);
    cs_lock_drop(&lock);
    return free;
}

void cs_share_end(void) { cs_store_rel(&ours, false); }
bool cs_share_has_records(void) { return cs_load_acq(&ours); }
bool cs_share_serves(void) { return cs_load_acq(&client.complete); }

bool cs_share_wants(CUpti_ActivityKind kind) { return is_on(kind); }

bool cs_share_wants_nodes(void)
{
    static const CUpti_ActivityKind of_nodes[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                                  CUPTI_ACTIVITY_KIND_MEMSET};
    bool any = false;
    for (size_t i = 0; i < CS_COUNT(of_nodes); i++) any = any || is_on(of_nodes[i]);
    return any && !is_on(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
}

/* --- its calls --- */

CUptiResult cs_share_cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete)
{
    CS_KEEP_ERRNO;
    if (!request || !complete) return CUPTI_ERROR_INVALID_PARAMETER;
    scale_set(scale_now().clock);
    cs_lock_take(&lock);
    client.request = client.last_request = request;
    cs_store_rel(&client.complete, client.last_complete = complete);
    bool through = !cs_load_acq(&ours);
    cs_lock_drop(&lock);
    cs_log(CS_LOG_DEBUG, "another client: cuptiActivityRegisterCallbacks");
    if (through) CS_CUPTI_THROUGH(cuptiActivityRegisterCallbacks, request, complete);
    hand_out_first();
    return CUPTI_SUCCESS;
}

/* What it enables again has a new beginning: the records from before it go out first. */
static void settle(const struct span *span)
{
    if (cs_load_acq(&ours) && cs_load(&span->ended)) cs_cupti()->cuptiActivityFlushAll(0);
}

static void listens_again(void)
{
    cs_lock_take(&lock);
    bool again = !cs_load_acq(&client.complete) && client.last_complete;
    if (again) client.request = client.last_request;
    if (again) cs_store_rel(&client.complete, client.last_complete);
    cs_lock_drop(&lock);
    if (again && cs_load_acq(&ours)) hand_out_first();
}

static void note_kind(CUpti_ActivityKind kind, bool on)
{
    cs_log(CS_LOG_DEBUG, "another client: cuptiActivity%s(%d)", on ? "Enable" : "Disable", (int)kind);
    if ((unsigned)kind >= KINDS) return;
    if (on) listens_again(), settle(&client.kinds[kind]);
    cs_lock_take(&lock);
    cs_u64 now = cs_ticks();
    bool runtime = kind == CUPTI_ACTIVITY_KIND_RUNTIME;
    span_set(&client.kinds[kind], on, now);
    for (int id = 0; (runtime || kind == CUPTI_ACTIVITY_KIND_DRIVER) && id < CALLS; id++) client.calls_on += span_set(&client.calls[runtime][id], on, now);
    cs_lock_drop(&lock);
}

static void note_call(bool runtime, CUpti_CallbackId id, bool on)
{
    cs_log(CS_LOG_DEBUG, "another client: cuptiActivityEnable%sApi(%u, %d)", runtime ? "Runtime" : "Driver", id, on);
    if (id >= CALLS) return;
    if (on) listens_again(), settle(&client.calls[runtime][id]);
    cs_lock_take(&lock);
    client.calls_on += span_set(&client.calls[runtime][id], on, cs_ticks());
    cs_lock_drop(&lock);
}

/* Our backend may look at no calls for the time being: it does again while somebody listens. */
static void wake_backend(void)
{
    if (!cs_load_acq(&ours) || !cs_cupti_paused()) return;
    listens_again();
    cs_gpu_flush(1000);
}

CUptiResult cs_share_cuptiActivityEnable(CUpti_ActivityKind kind)
{
    CS_KEEP_ERRNO;
    wake_backend();
    note_kind(kind, true); /* before anybody looks what is on: a backend that starts meanwhile must know */
    if (!cs_load_acq(&ours)) {
        __typeof__(&cuptiActivityEnable) real = CS_CUPTI_REAL(cuptiActivityEnable);
        CUptiResult through = real ? real(kind) : CUPTI_ERROR_NOT_INITIALIZED;
        if (cs_load_acq(&ours)) cs_cupti_mend(kind); /* our backend began meanwhile */
        return through;
    }
    CUptiResult result = cs_cupti_ask_for_client(kind, true);
    if (result != CUPTI_SUCCESS) note_kind(kind, false);
    cs_cupti_wishes_changed();
    return result;
}

CUptiResult cs_share_cuptiActivityDisable(CUpti_ActivityKind kind)
{
    CS_KEEP_ERRNO;
    note_kind(kind, false);
    if (!cs_load_acq(&ours)) CS_CUPTI_THROUGH(cuptiActivityDisable, kind);
    CUptiResult result = cs_cupti_ask_for_client(kind, false);
    cs_cupti_wishes_changed();
    return result;
}

CUptiResult cs_share_cuptiActivityEnableDriverApi(CUpti_CallbackId id, uint8_t enable)
{
    CS_KEEP_ERRNO;
    if (enable) wake_backend();
    note_call(false, id, enable);
    if (cs_load_acq(&ours) && !enable) return CUPTI_SUCCESS; /* our filter may need it */
    CS_CUPTI_THROUGH(cuptiActivityEnableDriverApi, id, enable);
}

CUptiResult cs_share_cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, uint8_t enable)
{
    CS_KEEP_ERRNO;
    note_call(true, id, enable);
    CS_CUPTI_THROUGH(cuptiActivityEnableRuntimeApi, id, enable);
}

CUptiResult cs_share_cuptiActivityFlushAll(uint32_t flag)
{
    CS_KEEP_ERRNO;
    bool last = !any_on();
    CUptiResult result;
    cs_log(CS_LOG_DEBUG, "another client: cuptiActivityFlushAll(%u)%s", flag, last ? ", its last" : "");
    if (cs_load_acq(&ours)) {
        result = cs_cupti()->cuptiActivityFlushAll(flag);
    } else {
        __typeof__(&cuptiActivityFlushAll) real = CS_CUPTI_REAL(cuptiActivityFlushAll);
        result = real ? real(flag) : CUPTI_ERROR_NOT_INITIALIZED;
    }
    if (last && cs_load_acq(&client.complete)) forget();
    return result;
}

CUptiResult cs_share_cuptiActivityFlushPeriod(uint32_t ms)
{
    CS_KEEP_ERRNO;
    if (cs_load_acq(&ours)) return CUPTI_SUCCESS; /* we flush often enough for two */
    CS_CUPTI_THROUGH(cuptiActivityFlushPeriod, ms);
}

CUptiResult cs_share_cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock)
{
    CS_KEEP_ERRNO;
    if (!clock) return CUPTI_ERROR_INVALID_PARAMETER;
    scale_set(clock);
    if (cs_load_acq(&ours)) return CUPTI_SUCCESS;
    CS_CUPTI_THROUGH(cuptiActivityRegisterTimestampCallback, clock);
}

CUptiResult cs_share_cuptiGetTimestamp(uint64_t *now)
{
    CS_KEEP_ERRNO;
    if (!cs_load_acq(&ours)) CS_CUPTI_THROUGH(cuptiGetTimestamp, now);
    if (!now) return CUPTI_ERROR_INVALID_PARAMETER;
    *now = cs_client_now(scale_now().clock);
    return CUPTI_SUCCESS;
}

CUptiResult cs_share_cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
    CS_KEEP_ERRNO;
    if (!cs_load_acq(&ours)) CS_CUPTI_THROUGH(cuptiActivityGetNumDroppedRecords, context, stream, dropped);
    if (!dropped) return CUPTI_ERROR_INVALID_PARAMETER;
    *dropped = atomic_exchange(&client.dropped, 0);
    return CUPTI_SUCCESS;
}

CUptiResult cs_share_cuptiFinalize(void)
{
    CS_KEEP_ERRNO;
    cs_log(CS_LOG_DEBUG, "another client: cuptiFinalize");
    forget();
    cs_lock_take(&lock);
    client.last_request = NULL;
    client.last_complete = NULL;
    client.scale.clock = NULL;
    cs_lock_drop(&lock);
    if (!cs_load_acq(&ours)) {
        cs_share_finalized();
        CS_CUPTI_THROUGH(cuptiFinalize);
    }
    cs_share_unsubscribe();
    cs_cupti_wishes_changed();
    return CUPTI_SUCCESS;
}
