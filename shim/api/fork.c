/* Fork and join: streams that take part in another's work, or capture, for a while. */
#include "shim/api/api.h"
#include "shim/api/link.h"

#include <stdlib.h>
#include <string.h>

/* --- fork --- */

static status branch(custream_t stream, custream_t *out)
{
    bool own = !api_stream_is_default(stream), known = own && cs_load_acq(&stream->flags_known);
    unsigned flags = known ? cs_load(&stream->flags) : (unsigned)CUSTREAM_NON_BLOCKING;
    TRY(api_stream_make(out, API_OWNED, own ? stream->object.device : -1, flags, stream->requested, stream->passed, NULL));
    status result = custream_wait_stream(*out, stream, NULL, 0);
    if (result != CUSTREAM_SUCCESS) custream_release(*out);
    return result;
}

CS_EXPORT status custream_fork(custream_t stream, int n, custream_t out[])
{
    status result = CUSTREAM_SUCCESS;
    int made = 0;
    NEED(out);
    CHECK(n > 0, CUSTREAM_INVALID_VALUE);
    USABLE_STREAM(stream);
    TRY(api_ready());
    api_is_capturing(stream); /* so that one that somebody else began is known of */
    custream_t *streams = calloc((size_t)n, sizeof *streams);
    CHECK(streams, CUSTREAM_NO_MEMORY);
    while (made < n && (result = branch(stream, &streams[made])) == CUSTREAM_SUCCESS) made++;
    if (result == CUSTREAM_SUCCESS) memcpy(out, streams, (size_t)n * sizeof *streams);
    else
        while (made) custream_release(streams[--made]);
    free(streams);
    return result;
}

/* --- joined in a capture --- */

/* CUDA minds the end of a stream that takes part in a capture. It does so until that is over, whoever ends it: so the stream itself is asked. One thread at a time
 * looks, and takes streams out; others have it look once more. */
static custream_t joined; /* the lock's */
static _Atomic unsigned wanted;

/* Closed for the program, whose reference is the list's now. */
static void keep(custream_t stream, cs_u64 capture)
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
    if (api_link_stream_ended(api_stream_link(stream)) || !api_home_lives(&stream->home) || api_enter_of(stream, &scope) != CUSTREAM_SUCCESS) return false;
    bool on = api_capture_id(stream) == stream->joined_in;
    api_leave(&scope);
    return on;
}

static void end(custream_t stream)
{
    custream_t *at = &joined;
    cs_lock_take(&api_lock);
    while (*at != stream) at = &(*at)->next_joined;
    *at = stream->next_joined;
    cs_lock_drop(&api_lock);
    api_stream_destroy(stream);
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
        if (!on) end(s);
    }
}

void api_joined_end(void)
{
    unsigned known;
    if (!first_joined() || api_thread_is_cudas() || api_forked() || atomic_fetch_add(&wanted, 1u)) return;
    struct api_thread *thread = api_thread();
    CUresult last = thread ? thread->last : CUDA_SUCCESS;
    do {
        known = cs_load(&wanted);
        look();
    } while (!atomic_compare_exchange_strong(&wanted, &known, 0u));
    if (thread) thread->last = last; /* the program's own call's */
}

CS_EXPORT status custream_join(custream_t stream, int n, custream_t const in[])
{
    NEED(in);
    CHECK(n > 0, CUSTREAM_INVALID_VALUE);
    USABLE_STREAM(stream);
    for (int i = 0; i < n; i++) {
        USABLE_STREAM(in[i]);
        CHECK(in[i]->kind == API_OWNED && in[i] != stream, CUSTREAM_INVALID_VALUE);
        for (int k = 0; k < i; k++) CHECK(in[k] != in[i], CUSTREAM_INVALID_VALUE);
    }
    for (int i = 0; i < n; i++) TRY(custream_wait_stream(stream, in[i], NULL, 0));
    for (int i = 0; i < n; i++) {
        cs_u64 capture = api_stream_usable(in[i]) == CUSTREAM_SUCCESS ? api_capture_id(in[i]) : 0;
        if (capture) keep(in[i], capture);
        else custream_close(in[i]), custream_release(in[i]);
    }
    api_joined_end();
    return CUSTREAM_SUCCESS;
}
