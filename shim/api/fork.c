/* Fork and join: streams that take part in another's work, or capture, for a while. */
#include "shim/api/making.h"

#include <stdlib.h>
#include <string.h>

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
    api_is_capturing(stream->handle); /* so that one that somebody else began is known of */
    custream_t *streams = calloc((size_t)n, sizeof *streams);
    CHECK(streams, CUSTREAM_NO_MEMORY);
    while (made < n && (result = branch(stream, &streams[made])) == CUSTREAM_SUCCESS) made++;
    if (result == CUSTREAM_SUCCESS) memcpy(out, streams, (size_t)n * sizeof *streams);
    else
        while (made) custream_release(streams[--made]);
    free(streams);
    return result;
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
        cs_u64 capture = api_stream_usable(in[i]) == CUSTREAM_SUCCESS ? api_capture_id(in[i]->handle) : 0;
        if (capture) api_joined_keep(in[i], capture);
        else custream_close(in[i]), custream_release(in[i]);
    }
    api_joined_end();
    return CUSTREAM_SUCCESS;
}
