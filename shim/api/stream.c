/* Stream objects, and how they end. */
#include "shim/api/stream.h"
#include "shim/api/link.h"

#include <signal.h>
#include <stdlib.h>

bool api_stream_is_default(custream_t s) { return s->kind == API_LEGACY || s->kind == API_PER_THREAD; }

/* The recorder meets some streams later than we do: those that a hook made, and those of before it began to keep anything. */
cs_u64 api_stream_link(custream_t s)
{
    cs_u64 link = cs_load(&s->link);
    if (link || api_stream_is_default(s)) return link;
    const cs_u64 found = api_link->stream(s->handle);
    return !found || atomic_compare_exchange_strong(&s->link, &link, found) ? found : link;
}

/* What the recorder knew before a fork is the parent's. */
bool api_stream_has_ended(custream_t s) { return !api_forked() && api_link->stream_ended(api_stream_link(s)); }

status api_stream_usable(custream_t s)
{
    TRY(api_object_usable(s, API_STREAM));
    return api_stream_has_ended(s) ? CUSTREAM_INVALID_HANDLE : CUSTREAM_SUCCESS;
}

status api_stream_enter(custream_t s)
{
    struct api_scope scope;
    int device = -1;
    return api_stream_is_default(s) ? api_enter(&device, &scope) : CUSTREAM_SUCCESS; /* with -1 nothing is pushed */
}

status api_stream_ready(custream_t s)
{
    USABLE_STREAM(s);
    TRY(api_ready());
    return api_stream_enter(s);
}

status api_enter_of(custream_t stream, struct api_scope *scope)
{
    CUcontext context = stream->home.context;
    int any = -1;
    scope->pushed = false;
    if (api_stream_is_default(stream)) return api_enter(&any, scope);
    if (!context) TRY(CUDA(cuStreamGetCtx, stream->handle, &context));
    TRY(CUDA(cuCtxPushCurrent_v2, context));
    scope->pushed = true;
    return CUSTREAM_SUCCESS;
}

/* --- the end --- */

static status destroy(custream_t s)
{
    custream_event_t cached = atomic_exchange(&s->cached, NULL);
    if (cached) api_release(cached, API_EVENT);
    api_capture_drop(&s->capture);
    if (s->kind == API_WRAPPED) {
        if (s->release) s->release(s->owner);
        s->release = NULL;
    } else if (!api_stream_is_default(s) && !api_forked() && !api_stream_has_ended(s) && api_home_lives(&s->home)) {
        return CUDA_ENDS(cuStreamDestroy_v2, s->handle);
    }
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_close(custream_t stream)
{
    TRY(api_object_check(stream, API_STREAM));
    CHECK(stream->kind == API_OWNED || stream->kind == API_WRAPPED, CUSTREAM_INVALID_VALUE);
    if (atomic_exchange(&stream->object.closed, true)) return CUSTREAM_SUCCESS;
    api_object_unlist(&stream->object); /* before its handle can come again */
    return destroy(stream);
}

CS_EXPORT status custream_retain(custream_t stream) { return api_retain(stream, API_STREAM); }

/* Streams whose last reference went in a function that CUDA called, where it may not be called: they end on a thread of their own, or where there can be none
 * with the next that goes elsewhere. */
static _Atomic(custream_t) postponed;

static status end_now(custream_t s)
{
    status result = atomic_exchange(&s->object.closed, true) ? CUSTREAM_SUCCESS : destroy(s);
    custream_event_t cached = atomic_exchange(&s->cached, NULL); /* made while another thread closed it */
    if (cached) api_release(cached, API_EVENT);
    free(s->name);
    api_object_free(s);
    return result;
}

void api_postponed_end(void)
{
    if (CS_LIKELY(!cs_load(&postponed)) || api_thread_cudas) return;
    for (custream_t next, s = atomic_exchange(&postponed, NULL); s; s = next) {
        next = s->next_joined;
        end_now(s);
    }
}

static void *end_elsewhere(void *unused) { return api_postponed_end(), unused; }

static void postpone(custream_t s)
{
    pthread_t thread;
    sigset_t all, before;
    s->next_joined = cs_load(&postponed);
    while (!atomic_compare_exchange_weak(&postponed, &s->next_joined, s)) continue;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the program's signals go to its own threads */
    if (!pthread_create(&thread, NULL, end_elsewhere, NULL)) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static status end(void *stream)
{
    if (api_thread_cudas) return postpone(stream), CUSTREAM_SUCCESS;
    status result = end_now(stream);
    api_joined_end();
    return result;
}

CS_EXPORT status custream_release(custream_t stream)
{
    api_postponed_end();
    return api_release(stream, API_STREAM);
}

/* --- joined in a capture --- */

/* CUDA minds the end of a stream that takes part in a capture. It does so until that is over, whoever ends it: so the stream itself is asked. One thread at a time
 * looks, and takes streams out; others have it look once more. */
static custream_t joined; /* the lock's */
static _Atomic unsigned wanted;

/* Closed for the program, whose reference is the list's now. */
void api_joined_keep(custream_t stream, cs_u64 capture)
{
    if (atomic_exchange(&stream->object.closed, true)) { /* by another thread */
        custream_release(stream);
        return;
    }
    api_object_unlist(&stream->object);
    cs_lock_take(&api_lock);
    stream->joined_in = capture;
    stream->next_joined = joined;
    joined = stream;
    cs_lock_drop(&api_lock);
}

static custream_t first_joined(void)
{
    cs_lock_take(&api_lock);
    custream_t first = joined;
    cs_lock_drop(&api_lock);
    return first;
}

bool api_joined_in(cs_u64 capture, const struct api_home *home)
{
    cs_lock_take(&api_lock);
    custream_t s = joined;
    while (s && ((capture && s->joined_in != capture) || (home && !api_home_is(&s->home, home)))) s = s->next_joined;
    cs_lock_drop(&api_lock);
    return s;
}

/* In its own context, which need not be current, nor be there any more. */
static bool goes_on(custream_t stream)
{
    struct api_scope scope;
    if (api_link->stream_ended(api_stream_link(stream)) || !api_home_lives(&stream->home) || api_enter_of(stream, &scope) != CUSTREAM_SUCCESS) return false;
    bool on = api_capture_id(stream->handle) == stream->joined_in;
    api_leave(&scope);
    return on;
}

static void joined_over(custream_t stream)
{
    custream_t *at = &joined;
    cs_lock_take(&api_lock);
    while (*at != stream) at = &(*at)->next_joined;
    *at = stream->next_joined;
    cs_lock_drop(&api_lock);
    destroy(stream);
    custream_release(stream);
}

/* What holds for one stream of a capture holds for all. */
static void look(void)
{
    cs_u64 asked = 0;
    bool on = false;
    for (custream_t next, s = first_joined(); s; s = next) {
        next = s->next_joined;
        if (s->joined_in != asked) asked = s->joined_in, on = goes_on(s);
        if (!on) joined_over(s);
    }
}

void api_joined_end(void)
{
    unsigned known;
    if (!first_joined() || api_thread_cudas || api_forked() || atomic_fetch_add(&wanted, 1u)) return;
    struct api_thread *thread = api_thread();
    CUresult last = thread ? thread->last : CUDA_SUCCESS;
    do {
        known = cs_load(&wanted);
        look();
    } while (!atomic_compare_exchange_strong(&wanted, &known, 0u));
    if (thread) thread->last = last; /* the program's own call's */
}

/* --- the beginning --- */

status api_stream_new(custream_t *out, enum api_stream_kind kind, CUstream handle, int device)
{
    custream_t s = api_object_new(API_STREAM, sizeof *s, end);
    CHECK(s, CUSTREAM_NO_MEMORY);
    s->kind = kind;
    s->object.stays = kind == API_LEGACY || kind == API_PER_THREAD;
    s->object.sort = (int)kind;
    s->handle = handle;
    s->object.device = device;
    api_stream_link(s);
    *out = s;
    return CUSTREAM_SUCCESS;
}
