/* Beginning and end, and what there is. */
#include "shim/api/api.h"

CS_EXPORT status custream_init_options_init(custream_init_options_t *options)
{
    NEED(options);
    *options = (custream_init_options_t){.size = sizeof *options, .make_context = 1};
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_init(const custream_init_options_t *options)
{
    CHECK(!options || options->size == sizeof *options, CUSTREAM_INVALID_VALUE);
    return api_init(options);
}

CS_EXPORT status custream_shutdown(void)
{
    api_postponed_end();
    api_joined_end();
    api_currents_release();
    api_pools_release();
    api_defaults_release();
    api_contexts_release();
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_stats(int device, custream_stats_t *stats)
{
    custream_stats_t found = {.size = sizeof found};
    NEED(stats);
    CHECK(stats->size == sizeof found && device >= -1 && device < API_DEVICES, CUSTREAM_INVALID_VALUE);
    cs_u64 until = api_last_id(), after = 0;
    api_object_counts(API_STREAM, device, &found.streams, &found.streams_made);
    api_object_counts(API_EVENT, device, &found.events, &found.events_made);
    api_object_counts(API_GRAPH, device, &found.graphs, &found.graphs_made);
    for (custream_t s; (s = api_object_after(API_STREAM, after, until)); after = s->object.id, custream_release(s)) {
        if (device != -1 && s->object.device != device) continue;
        found.streams_wrapped += s->kind == API_WRAPPED;
        found.pooled += s->kind == API_POOLED;
    }
    *stats = found;
    return CUSTREAM_SUCCESS;
}

CS_EXPORT status custream_foreach(int (*function)(custream_t stream, void *arg), void *arg)
{
    cs_u64 until = api_last_id(), after = 0;
    int ends = 0;
    NEED(function);
    for (custream_t s; !ends && (s = api_object_after(API_STREAM, after, until)); after = s->object.id, custream_release(s)) ends = function(s, arg);
    return CUSTREAM_SUCCESS;
}
