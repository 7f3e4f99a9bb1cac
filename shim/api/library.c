/* The end, and what there is. */
#include "shim/api/current.h"
#include "shim/api/default.h"
#include "shim/api/graph.h"
#include "shim/api/sized.h"

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
    TRY(api_size_check(stats));
    CHECK(device >= -1 && device < API_DEVICES, CUSTREAM_INVALID_VALUE);
    api_object_counts(API_STREAM, device, &found.streams, &found.streams_made);
    api_object_counts(API_EVENT, device, &found.events, &found.events_made);
    api_object_counts(API_GRAPH, device, &found.graphs, &found.graphs_made);
    found.streams_wrapped = api_object_count(API_STREAM, device, API_WRAPPED);
    found.pooled = api_object_count(API_STREAM, device, API_POOLED);
    return api_give(stats, &found);
}

CS_EXPORT status custream_foreach(int (*function)(custream_t stream, void *arg), void *arg)
{
    struct api_walk walk;
    NEED(function);
    api_walk_begin(&walk, API_STREAM);
    for (custream_t s; (s = api_walk_next(&walk)) && !function(s, arg);) continue;
    api_walk_end(&walk);
    return CUSTREAM_SUCCESS;
}
