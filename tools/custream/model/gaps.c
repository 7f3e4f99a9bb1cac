#include "tools/custream/model/gaps.h"

bool gap_next(const struct idles *idles, const struct run *run, size_t *at, struct gap *gap)
{
    if (*at >= idles->count) return false;
    const struct idle *row = &idles->rows[*at];
    const uint32_t call = run->works[row->next].call;
    *gap = (struct gap){.begin = row->begin,
                        .end = row->begin,
                        .device = row->device,
                        .next = row->next,
                        .first = *at,
                        .thread = call == NONE ? NONE : run->calls[call].thread};
    for (; *at < idles->count; ++*at, row++) {
        if (row->device != gap->device || row->next != gap->next || row->begin != gap->end) break;
        gap->end = row->end;
        if (row->cause == CAUSE_HOST) gap->host += row->end - row->begin;
        if (row->cause == CAUSE_LAUNCH) gap->launch += row->end - row->begin;
    }
    gap->last = *at;
    return true;
}
