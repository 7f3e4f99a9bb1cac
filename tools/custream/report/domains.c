#include "tools/custream/report/domains.h"

#include <stdlib.h>

#include "tools/custream/report/numbers.h"
#include "tools/custream/report/room.h"

/* By device: the context of its work, NONE where there are several. A stream on which no work ran, but a host function or a wait, is of that one. */
static uint32_t *only_contexts(const struct run *run)
{
    uint32_t *only = room_for(run->device_count, sizeof *only);
    for (size_t s = 0; s < run->stream_count; s++) {
        const struct stream *stream = &run->streams[s];
        if (stream->context) only[stream->device] = only[stream->device] && only[stream->device] != stream->context ? NONE : stream->context;
    }
    return only;
}

uint32_t *legacy_domains(const struct run *run, size_t *count)
{
    struct numbers contexts = {0};
    uint32_t *only = only_contexts(run), *of = room_for(run->stream_count, sizeof *of);
    *count = 0;
    for (size_t s = 0; s < run->stream_count; s++) {
        const struct stream *stream = &run->streams[s];
        const uint32_t context = stream->context ? stream->context : only[stream->device];
        of[s] = NONE;
        if (!stream->known || stream->non_blocking || context == NONE) continue;
        uint32_t *at = numbers_at(&contexts, (uint64_t)stream->device << 32 | context, NONE);
        if (*at == NONE) *at = (uint32_t)(*count)++;
        of[s] = *at;
    }
    numbers_free(&contexts);
    free(only);
    return of;
}
