/*
 * The simulated CUPTI's own header. It records what the simulated driver tells it (driver/trace.h)
 * and delivers it as the real CUPTI 13.0 does.
 *
 *   settings.c   errors on demand and the other settings of the environment
 *   clock.c      the clock of the records, and the GPU's times in it
 *   call.c       calls of the driver: API and synchronisation records, correlation ids, a
 * subscriber's callbacks work.c       work of the GPU: from when it is enqueued until its record is
 * written buffer.c     the client's buffers, and the worker thread activity.c   the activity
 * functions;  query.c, subscribe.c, names.c: the others
 *
 * Locks, outermost first; the driver's own lock stands between `state` and `queue`, since it is
 * held when work is reported: state (activity.c), drain (work.c), list and a source's (buffer.c),
 * [driver], queue (work.c), full (buffer.c), clock, worker. The client's callbacks run without the
 * driver's lock and those after it; asking for a buffer holds the source's and, for GPU records,
 * `drain`.
 */
#ifndef FAKECUDA_FAKE_CUPTI_H
#define FAKECUDA_FAKE_CUPTI_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/driver/trace.h"

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_result.h>
#include <cupti_runtime_cbid.h>
#include <cupti_version.h>

#define UNLIKELY(x)     __builtin_expect(!!(x), 0)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum {
    DRIVER_CALLS = CUPTI_DRIVER_TRACE_CBID_SIZE,
    RUNTIME_CALLS = CUPTI_RUNTIME_TRACE_CBID_SIZE,
    KINDS = 64
};

static inline void cupti_unlock(pthread_mutex_t **held) { pthread_mutex_unlock(*held); }
/* Takes a lock until the end of the scope. */
#define LOCKED(mutex)           LOCKED_AT_(mutex, __LINE__)
#define LOCKED_AT_(mutex, line) LOCKED_ON_(mutex, line)
#define LOCKED_ON_(mutex, line) LOCKED_AS_(mutex, held_##line)
#define LOCKED_AS_(mutex, held) \
    __attribute__((cleanup(cupti_unlock), unused)) pthread_mutex_t *held = &(mutex); \
    pthread_mutex_lock(held)

/* ---- Entering a function (settings.c) ---- */

/* One exported function; CUSTREAM_FAKE_CUPTI makes it fail from its `from`th call on. */
struct cupti_entry {
    const char *name;
    CUptiResult code;
    unsigned long from, seen;
    bool once; /* at that call alone */
    bool untold;
};
CUptiResult cupti_refused(struct cupti_entry *entry);

/* Stands first in each exported function. The entries are found by their section. */
#define ENTER(function) \
    static struct cupti_entry entry_ = {.name = #function}; \
    static struct cupti_entry *listed_ __attribute__((section("cupti_entries"), used)) = &entry_; \
    if (UNLIKELY(entry_.code)) { \
        CUptiResult refused_ = cupti_refused(&entry_); \
        if (refused_) return refused_; \
    }

/* The other settings, read when the library is loaded. */
extern struct cupti_settings {
    long version;
    long zero, lose, early, late; /* 0: off */
    bool shuffle, overlap;
} cupti_settings;

/* ---- Clock (clock.c) ---- */

#include <time.h>
uint64_t cupti_read_clock(clockid_t clock);
uint64_t cupti_now(void);                                   /* in the client's domain; any thread */
void cupti_clock_set(CUpti_TimestampCallbackFunc callback); /* NULL: CLOCK_REALTIME */
void cupti_clock_mark(
    void); /* ties both clocks at this moment; before converting, and before the first work */
void cupti_clock_forked(void);
uint64_t cupti_convert(uint64_t monotonic); /* up to the latest mark; the order of times is kept */

/* ---- Buffers (buffer.c) ---- */

/* A buffer being filled: one a thread that makes records, and the common one for all else. */
struct cupti_source {
    pthread_mutex_t lock;
    struct cupti_source *next;
    uint8_t *bytes; /* NULL: none on loan */
    size_t size, used, most, count;
};
extern struct cupti_source cupti_common;
struct cupti_source *cupti_own_source(void); /* the calling thread's, or the common one */
void cupti_write(struct cupti_source *source, const void *record, size_t bytes);
void cupti_deliver(bool retire,
    bool empty); /* full buffers; retire: those begun as well; empty: also those without a record */
void cupti_buffers_register(
    CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete);
bool cupti_buffers_registered(void);
size_t cupti_buffers_dropped(void); /* and forgets */
void cupti_buffers_forget(void);    /* what is on loan, and the callbacks */
void cupti_buffers_forked(
    void); /* the child of a fork: has no worker, and any lock may be held by nobody */
extern bool cupti_per_thread;
void cupti_worker_start(void);
void cupti_worker_tell(void);
/* True while the thread runs one of the client's callbacks: its calls of the driver are not
 * recorded then. */
extern __thread bool cupti_inside;

/* ---- Calls (call.c) ---- */

extern uint8_t cupti_kinds[KINDS]; /* which are on; relaxed */
extern uint8_t cupti_driver_on[DRIVER_CALLS];
extern unsigned cupti_generation; /* counts cuptiFinalize */
uint32_t cupti_thread_id(void);
uint32_t cupti_correlation(struct fake_trace_call *call); /* the call's id; NULL: a new one */
void cupti_call_enter(struct fake_trace_call *call);
void cupti_call_exit(struct fake_trace_call *call, CUresult result);
static inline bool cupti_on(CUpti_ActivityKind kind)
{
    return __atomic_load_n(&cupti_kinds[kind], __ATOMIC_RELAXED);
}
extern bool cupti_system_threads, cupti_all_syncs;
extern bool cupti_runtime_seen; /* calls of the runtime are numbered, and those of the driver inside
                                   them are not; relaxed */
extern uint8_t cupti_runtime_numbered[RUNTIME_CALLS]; /* the same of single ones: there was a
                                                         callback of it; relaxed */

/* ---- Work (work.c) ---- */

void *cupti_work_new(
    struct fake_trace_call *call, void *launch, const struct fake_trace_work *work);
void cupti_work_done(void *token, uint64_t start, uint64_t end);
void cupti_drain(bool forced); /* writes the records of finished work; forced: also of work that is
                                  not finished, without times */
void cupti_work_forget(void);
void cupti_work_forked(void);
extern bool cupti_latency;

/* CUPTI's faults: GRAPH_TRACE and MEMCPY2 are on, and somebody has flushed without force since: the
 * next graph with a copy breaks the context. And a graph that was instantiated while GRAPH_TRACE
 * was off is launched while it is on: the process dies. */
void cupti_fault_watch(bool flushed);

/* ---- Being attached to the driver (activity.c) ---- */

const struct fake_traced *cupti_driver(
    void);               /* NULL: it is not the simulated one, or there is none */
void cupti_attach(void); /* attaches or detaches, by what is on; with the state's lock held */
extern pthread_mutex_t cupti_state;

/* ---- Subscriber (subscribe.c) ---- */

extern uint8_t cupti_called_back[DRIVER_CALLS],
    cupti_runtime_called_back[RUNTIME_CALLS]; /* calls that a subscriber wants to be told of;
                                                 relaxed */
extern unsigned cupti_called_back_count, cupti_runtime_called_back_count;
void cupti_call_back(struct fake_trace_call *call, CUresult *result); /* result NULL: on entry */
void cupti_subscriber_forget(void);

/* ---- Names (names.c) ---- */

uint32_t cupti_driver_number(const char *symbol); /* 0: later than this CUPTI */
uint32_t cupti_runtime_number(const char *symbol);

#endif
