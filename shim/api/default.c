/*
 * The default streams: CUDA's two, and Warp's, one of ours for each device. And the pools, PyTorch's. What the library holds itself is in the device's primary
 * context, whichever was current at the first need, and is made anew once a reset has ended that.
 */
#include "shim/api/default.h"
#include "shim/api/making.h"
#include "shim/api/priority.h"
#include "shim/api/sized.h"

#include <stdlib.h>

static _Atomic(custream_t) of_device[API_DEVICES];
static _Atomic int mode = -1; /* not read yet */

/* Those streams are of whatever context is current: so each device has an event for them, of the context that was current when it was last asked for. */
static custream_event_t events[2][API_DEVICES]; /* the lock's */

/* The one that is there, where it is of `here`, else `made`, which may be NULL; referenced for the caller. *other: what the caller has to release. */
static custream_event_t event_in(custream_event_t *slot, const struct api_home *here, custream_event_t made, custream_event_t *other)
{
    *other = made;
    cs_lock_take(&api_lock);
    bool fits = *slot && api_home_is(&(*slot)->home, here) && !cs_load_acq(&(*slot)->object.closed);
    if (!fits && made) *other = *slot, *slot = made;
    custream_event_t found = fits || made ? *slot : NULL;
    if (found) found->object.references++;
    cs_lock_drop(&api_lock);
    return found;
}

status api_default_event(custream_t stream, custream_event_t *event)
{
    custream_event_t made, other;
    struct api_home here;
    struct api_scope scope;
    int device = -1;
    TRY(api_enter(&device, &scope)); /* with -1 nothing is pushed */
    custream_event_t *slot = &events[stream->kind == API_PER_THREAD][device];
    api_home_now(&here);
    custream_event_t found = event_in(slot, &here, NULL, &other);
    if (!found) {
        TRY(custream_event_create(&made, NULL));
        found = event_in(slot, &made->home, made, &other);
        if (other) custream_event_release(other);
    }
    *event = found;
    return CUSTREAM_SUCCESS;
}

static void event_drop(custream_event_t *slot)
{
    cs_lock_take(&api_lock);
    custream_event_t event = *slot;
    *slot = NULL;
    cs_lock_drop(&api_lock);
    if (event) custream_event_release(event);
}

static status stream_in_primary(custream_t *stream, enum api_stream_kind kind, int device, unsigned flags, int priority, const char *name)
{
    struct api_scope scope;
    TRY(api_enter_primary(device, &scope));
    status result = api_stream_make(stream, kind, device, flags, priority, priority, name);
    api_leave(&scope);
    return result;
}

static status device_stream(int device, custream_t *stream)
{
    custream_t s, none = NULL;
    struct api_scope scope;
    TRY(api_enter(&device, &scope));
    api_leave(&scope);
    s = cs_load_acq(&of_device[device]);
    if (s && !api_home_lives(&s->home) && atomic_compare_exchange_strong(&of_device[device], &s, NULL)) custream_release(s);
    if (!cs_load_acq(&of_device[device])) {
        TRY(stream_in_primary(&s, API_DEVICE_DEFAULT, device, CUSTREAM_DEFAULT, 0, "default of custream"));
        if (!atomic_compare_exchange_strong(&of_device[device], &none, s)) custream_release(s);
    }
    custream_t found = cs_load_acq(&of_device[device]);
    CHECK(found, CUSTREAM_CLOSED); /* custream_shutdown, meanwhile */
    TRY(custream_retain(found));
    *stream = found;
    return CUSTREAM_SUCCESS;
}

static bool asks_for_per_thread(const char *variable)
{
    const char *text = getenv(variable);
    return text && strtol(text, NULL, 10) != 0;
}

CS_EXPORT status custream_get_default_mode(custream_default_mode_t *out)
{
    int unread = -1;
    NEED(out);
    bool own = asks_for_per_thread("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM") || asks_for_per_thread("CUPY_CUDA_PER_THREAD_DEFAULT_STREAM");
    if (cs_load(&mode) == -1) atomic_compare_exchange_strong(&mode, &unread, own ? CUSTREAM_DEFAULT_PER_THREAD : CUSTREAM_DEFAULT_LEGACY);
    *out = (custream_default_mode_t)cs_load(&mode);
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_set_default_mode(custream_default_mode_t wanted)
{
    CHECK((unsigned)wanted <= CUSTREAM_DEFAULT_DEVICE, CUSTREAM_INVALID_VALUE);
    cs_store(&mode, (int)wanted);
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_default(int device, custream_t *stream)
{
    custream_default_mode_t now;
    NEED(stream);
    TRY(api_ready());
    TRY(api_device_check(device));
    TRY(custream_get_default_mode(&now));
    switch (now) {
    case CUSTREAM_DEFAULT_PER_THREAD: return custream_per_thread_default(stream);
    case CUSTREAM_DEFAULT_DEVICE: return device_stream(device, stream);
    default: return custream_legacy_default(stream);
    }
}

void api_defaults_release(void)
{
    for (int device = 0; device < API_DEVICES; device++) {
        custream_t s = atomic_exchange(&of_device[device], NULL);
        if (s) custream_release(s);
        for (int i = 0; i < 2; i++) event_drop(&events[i][device]);
    }
    cs_store(&mode, -1);
}

/* --- pools --- */

enum { LEVELS = 4 };

static struct level {
    _Atomic(struct pool *) pool;
    _Atomic unsigned next;
} levels[API_DEVICES][LEVELS];
struct pool {
    struct api_home home;
    custream_t streams[CUSTREAM_POOL_SIZE];
};

static void pool_free(struct pool *pool)
{
    for (int i = 0; pool && i < CUSTREAM_POOL_SIZE; i++)
        if (pool->streams[i]) custream_release(pool->streams[i]);
    free(pool);
}

/* The list itself stays: another thread may be taking a stream from it. */
static void pool_end(struct pool *pool)
{
    for (int i = 0; pool && i < CUSTREAM_POOL_SIZE; i++) custream_release(pool->streams[i]);
}

static status pool_make(int device, int level, struct pool *pool)
{
    status result = CUSTREAM_SUCCESS;
    for (int i = 0; i < CUSTREAM_POOL_SIZE && result == CUSTREAM_SUCCESS; i++)
        result = stream_in_primary(&pool->streams[i], API_POOLED, device, CUSTREAM_NON_BLOCKING, -level, NULL);
    if (result == CUSTREAM_SUCCESS) pool->home = pool->streams[0]->home;
    return result;
}

static status pool_of(int device, int level, struct pool **out)
{
    struct pool *made, *none = NULL, *there = cs_load_acq(&levels[device][level].pool);
    if ((*out = there) && api_home_lives(&there->home)) return CUSTREAM_SUCCESS;
    if (there && atomic_compare_exchange_strong(&levels[device][level].pool, &there, NULL)) pool_end(there);
    CHECK(made = calloc(1, sizeof *made), CUSTREAM_NO_MEMORY);
    status result = pool_make(device, level, made);
    if (result != CUSTREAM_SUCCESS || !atomic_compare_exchange_strong(&levels[device][level].pool, &none, made)) pool_free(made);
    if (result != CUSTREAM_SUCCESS) return result;
    *out = cs_load_acq(&levels[device][level].pool);
    return *out ? CUSTREAM_SUCCESS : CUSTREAM_CLOSED; /* custream_shutdown, meanwhile */
}

CS_EXPORT status custream_create_from_pool(custream_t *stream, int device, int priority, int avoid_capturing)
{
    struct api_scope scope;
    struct pool *pool;
    int level;
    NEED(stream);
    TRY(api_ready());
    TRY(api_enter(&device, &scope));
    api_leave(&scope);
    TRY(api_clamp(device, CUSTREAM_PRIORITY_CLAMP_BAND, 0, 1 - LEVELS, priority, &level));
    TRY(pool_of(device, -level, &pool));
    for (int i = 0; i < CUSTREAM_POOL_SIZE; i++) {
        custream_t s = pool->streams[cs_add(&levels[device][-level].next, 1u) % CUSTREAM_POOL_SIZE];
        if (avoid_capturing && api_is_capturing(s->handle)) continue;
        TRY(custream_retain(s));
        *stream = s;
        return CUSTREAM_SUCCESS;
    }
    return CUSTREAM_CAPTURE_STATE;
}

CS_EXPORT status custream_create(custream_t *stream, const custream_options_t *options)
{
    custream_options_t chosen = api_stream_defaults;
    int priority;
    NEED(stream);
    TRY(api_take(&chosen, options));
    CHECK(!(chosen.flags & ~(unsigned)CUSTREAM_NON_BLOCKING), CUSTREAM_INVALID_VALUE);
    TRY(api_ready());
    api_postponed_end();
    TRY(api_clamp(chosen.device, chosen.priority_policy, chosen.band_least, chosen.band_greatest, chosen.priority, &priority));
    if (chosen.pooled) {
        CHECK(chosen.flags == CUSTREAM_NON_BLOCKING && !(chosen.name && *chosen.name), CUSTREAM_INVALID_VALUE);
        return custream_create_from_pool(stream, chosen.device, priority, 0);
    }
    return api_stream_make(stream, API_OWNED, chosen.device, chosen.flags, chosen.priority, priority, chosen.name);
}

void api_pools_release(void)
{
    for (int device = 0; device < API_DEVICES; device++)
        for (int level = 0; level < LEVELS; level++) pool_end(atomic_exchange(&levels[device][level].pool, NULL));
}
