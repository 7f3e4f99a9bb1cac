#include "tools/custream/model/domains.h"

#include <stdlib.h>

#include "tools/custream/model/room.h"
#include "tools/custream/trace/numbers.h"

bool run_has_contexts(const struct run *run)
{
    size_t made = 0;
    bool primary = false;
    for (size_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        if (call_kind(call) != CS_KIND_CONTEXT || call->result) continue;
        switch (call->call) {
        case CS_CALL_cuCtxCreate:
        case CS_CALL_cuCtxCreate_v2:
        case CS_CALL_cuCtxCreate_v3:
        case CS_CALL_cuCtxCreate_v4:
        case CS_CALL_cuCtxFromGreenCtx: made++; break;
        case CS_CALL_cuDevicePrimaryCtxRetain: primary = true; break;
        default: break;
        }
    }
    return made + primary > 1;
}

/* By device: the context of its work, NONE where there are several. A stream on which no work ran, but a host function or a wait, is of that one. */
static uint32_t *only_contexts(const struct run *run)
{
    uint32_t *only = room_for(run->device_count, sizeof *only);
    const bool several = run_has_contexts(run);
    for (size_t d = 0; d < run->device_count && several; d++) only[d] = NONE;
    for (size_t s = 0; s < run->stream_count; s++) {
        const struct stream *stream = &run->streams[s];
        if (stream->context && !several) only[stream->device] = only[stream->device] && only[stream->device] != stream->context ? NONE : stream->context;
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
