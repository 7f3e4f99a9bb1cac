/*
 * The client's buffers: asked for by whoever has a record to write, filled back to back, and given
 * back by the worker thread when full or by a flush.
 *
 * By default each thread that makes API records fills buffers of its own, as in the real CUPTI
 * (CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER); the GPU's records go into common ones.
 */
#include "tests/fakecuda/cupti/fake_cupti.h"

#include <signal.h>
#include <time.h>

enum { BATCH_NS = 1000000 }; /* how long the worker lets records gather */

struct cupti_source cupti_common = {.lock = PTHREAD_MUTEX_INITIALIZER};
bool cupti_per_thread = true;
__thread bool cupti_inside;

/* A buffer that waits to be given back. */
struct full {
    struct full *next;
    uint8_t *bytes;
    size_t size, used, count;
};

static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER; /* guards `sources` */
static struct cupti_source *sources;
static __thread struct cupti_source *own;
static pthread_key_t own_key;

static pthread_mutex_t full_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the next three */
static pthread_cond_t delivered = PTHREAD_COND_INITIALIZER;
static struct full *first_full, **last_full = &first_full;
static unsigned delivering; /* threads that are giving buffers back */

static CUpti_BuffersCallbackRequestFunc request_buffer; /* atomic, as is the next */
static CUpti_BuffersCallbackCompleteFunc complete_buffer;
static size_t dropped, written; /* atomic */

static pthread_mutex_t worker_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the next two */
static bool worker_told, worker_started;
static pthread_cond_t worker_wakes = PTHREAD_COND_INITIALIZER;

void cupti_buffers_register(
    CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete)
{
    __atomic_store_n(&request_buffer, request, __ATOMIC_RELEASE);
    __atomic_store_n(&complete_buffer, complete, __ATOMIC_RELEASE);
}
bool cupti_buffers_registered(void)
{
    return __atomic_load_n(&complete_buffer, __ATOMIC_ACQUIRE) != NULL;
}
size_t cupti_buffers_dropped(void) { return __atomic_exchange_n(&dropped, 0, __ATOMIC_RELAXED); }

/* ---- Sources ---- */

/* Moves the buffer to those that are given back. The source's lock is held. */
static void retire(struct cupti_source *source)
{
    struct full *full = malloc(sizeof *full);

    if (!full) abort();
    *full = (struct full){NULL, source->bytes, source->size, source->used, source->count};
    source->bytes = NULL;
    LOCKED(full_lock);
    *last_full = full;
    last_full = &full->next;
}

static void thread_ends(void *value)
{
    struct cupti_source *source = value, **link = &sources;

    own = NULL;
    {
        LOCKED(list);
        while (*link != source) link = &(*link)->next;
        *link = source->next;
    }
    if (source->bytes) retire(source);
    free(source);
    cupti_worker_tell();
}
static void make_key(void) { pthread_key_create(&own_key, thread_ends); }

struct cupti_source *cupti_own_source(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (!cupti_per_thread) return &cupti_common;
    if (own) return own;
    pthread_once(&once, make_key);
    own = calloc(1, sizeof *own);
    if (!own) abort();
    pthread_mutex_init(&own->lock, NULL);
    pthread_setspecific(own_key, own);
    LOCKED(list);
    own->next = sources;
    sources = own;
    return own;
}

static bool fits(const struct cupti_source *source, size_t bytes)
{
    return source->bytes && bytes <= source->size - source->used &&
           (!source->most || source->count < source->most);
}

static void ask(struct cupti_source *source)
{
    CUpti_BuffersCallbackRequestFunc function = __atomic_load_n(&request_buffer, __ATOMIC_ACQUIRE);
    uint8_t *bytes = NULL;
    size_t size = 0, most = 0;

    if (!function) return;
    cupti_inside = true;
    function(&bytes, &size, &most);
    cupti_inside = false;
    source->bytes = size ? bytes : NULL;
    source->size = size;
    source->most = most;
    source->used = source->count = 0;
    if (!source->bytes || (uintptr_t)bytes % ACTIVITY_RECORD_ALIGNMENT == 0) return;
    retire(source); /* cannot be used */
}

void cupti_write(struct cupti_source *source, const void *record, size_t bytes)
{
    size_t nth = __atomic_add_fetch(&written, 1, __ATOMIC_RELAXED);
    bool lost = cupti_settings.lose && nth % (size_t)cupti_settings.lose == 0;

    LOCKED(source->lock);
    if (!lost && !fits(source, bytes)) {
        if (source->bytes) {
            retire(source);
            cupti_worker_tell();
        }
        ask(source);
    }
    if (lost || !fits(source, bytes)) {
        __atomic_add_fetch(&dropped, 1, __ATOMIC_RELAXED);
        return;
    }
    memcpy(source->bytes + source->used, record, bytes);
    source->used += bytes;
    source->count++;
}

/* ---- Giving back ---- */

/* CUSTREAM_FAKE_CUPTI_SHUFFLE: the records of a buffer in another order, always the same for as
 * many. */
static void shuffle(struct full *full)
{
    CUpti_Activity **records = malloc((full->count + 1) * sizeof *records), *record = NULL;
    uint8_t *copy = malloc(full->used + 1);
    size_t count = 0, at = 0;
    uint64_t random = 88172645463325252u;

    if (!records || !copy) abort();
    memcpy(copy, full->bytes, full->used);
    while (cuptiActivityGetNextRecord(copy, full->used, &record) == CUPTI_SUCCESS)
        records[count++] = record;
    for (size_t i = count; i > 1; i--) {
        CUpti_Activity *swapped = records[i - 1];
        size_t other;

        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        other = random % i;
        records[i - 1] = records[other];
        records[other] = swapped;
    }
    for (size_t i = 0; i < count; i++) {
        CUpti_Activity *end = records[i];
        size_t bytes;

        if (cuptiActivityGetNextRecord(copy, full->used, &end) != CUPTI_SUCCESS)
            end = (CUpti_Activity *)(copy + full->used);
        bytes = (size_t)((uint8_t *)end - (uint8_t *)records[i]);
        memcpy(full->bytes + at, records[i], bytes);
        at += bytes;
    }
    free(records);
    free(copy);
}

static void give_back(struct full *full)
{
    CUpti_BuffersCallbackCompleteFunc function =
        __atomic_load_n(&complete_buffer, __ATOMIC_ACQUIRE);

    if (cupti_settings.shuffle) shuffle(full);
    cupti_inside = true;
    if (function) function(NULL, 0, full->bytes, full->size, full->used);
    cupti_inside = false;
    free(full);
}

static void retire_begun(struct cupti_source *source, bool empty)
{
    LOCKED(source->lock);
    if (source->bytes && (source->used || empty)) retire(source);
}

void cupti_deliver(bool retiring, bool empty)
{
    struct full *mine;

    if (retiring) {
        LOCKED(list);
        for (struct cupti_source *s = sources; s; s = s->next) retire_begun(s, empty);
        retire_begun(&cupti_common, empty);
    }
    pthread_mutex_lock(&full_lock);
    mine = first_full;
    first_full = NULL;
    last_full = &first_full;
    delivering++;
    pthread_mutex_unlock(&full_lock);
    while (mine) {
        struct full *next = mine->next;
        give_back(mine);
        mine = next;
    }
    LOCKED(full_lock);
    delivering--;
    pthread_cond_broadcast(&delivered);
    while (retiring && delivering)
        pthread_cond_wait(&delivered, &full_lock); /* a flush has been delivered when it returns */
}

void cupti_buffers_forget(void)
{
    LOCKED(list);
    for (struct cupti_source *s = sources; s; s = s->next) {
        LOCKED(s->lock);
        s->bytes = NULL;
    }
    LOCKED(cupti_common.lock);
    cupti_common.bytes = NULL;
    LOCKED(full_lock);
    while (first_full) {
        struct full *next = first_full->next;
        free(first_full);
        first_full = next;
    }
    last_full = &first_full;
    cupti_buffers_register(NULL, NULL);
}

/* ---- The worker ---- */

static void *worker(void *unused)
{
    const struct timespec batch = {0, BATCH_NS};

    (void)unused;
    for (;;) {
        pthread_mutex_lock(&worker_lock);
        while (!worker_told) pthread_cond_wait(&worker_wakes, &worker_lock);
        worker_told = false;
        pthread_mutex_unlock(&worker_lock);
        nanosleep(&batch, NULL);
        cupti_drain(false);
        cupti_deliver(false, false);
    }
    return NULL;
}

void cupti_worker_tell(void)
{
    LOCKED(worker_lock);
    worker_told = true;
    pthread_cond_signal(&worker_wakes);
}

void cupti_buffers_forked(void)
{
    pthread_mutex_init(&worker_lock, NULL);
    pthread_cond_init(&worker_wakes, NULL);
    pthread_mutex_init(&list, NULL);
    pthread_mutex_init(&full_lock, NULL);
    pthread_cond_init(&delivered, NULL);
    pthread_mutex_init(&cupti_common.lock, NULL);
    for (struct cupti_source *s = sources; s; s = s->next) pthread_mutex_init(&s->lock, NULL);
    worker_started = false;
    delivering = 0;
    cupti_inside = false;
    cupti_buffers_forget();
}

void cupti_worker_start(void)
{
    sigset_t all, before;
    pthread_t thread;

    LOCKED(worker_lock);
    if (worker_started) return;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    worker_started = pthread_create(&thread, NULL, worker, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (worker_started) pthread_detach(thread);
}
