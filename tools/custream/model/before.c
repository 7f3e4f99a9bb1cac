#include "tools/custream/model/before.h"

#include <math.h>

#include "tools/custream/model/tally.h"

/* What is missing of the time before `until`. */
struct gone {
    bool works, calls;
};

static struct gone gone_before(const struct run *run, int64_t until)
{
    struct gone gone = {0};
    for (size_t i = 0; i < run->loss_count; i++) {
        const struct loss *loss = &run->losses[i];
        if (loss->begin >= until || loss->end <= run->begin) continue;
        gone.works |= loss->no_times || loss->works;
        gone.calls |= loss->closed || loss->calls;
    }
    return gone;
}

struct before before_first_work(const struct run *run, const struct span *device)
{
    const int64_t first = device->begin;
    const struct gone gone = gone_before(run, first);
    struct before before = {.ns = gone.works ? NAN : (double)(first - run->begin), .no_call_ns = NAN};
    struct tallies calls = {0};
    int64_t reached = run->begin, none = 0; /* reached: until here calls are looked at */
    for (size_t c = 0; c < run->call_count && run->calls[c].begin < first; c++) {
        const struct call *call = &run->calls[c];
        const int64_t end = call->end < first ? call->end : first;
        tally_add(tally_of(&calls, call->name), end - call->begin);
        if (call->begin > reached) none += call->begin - reached;
        if (end > reached) reached = end;
    }
    tallies_sort(&calls);
    if (calls.count) {
        before.call = (text)calls.rows[0].key;
        before.times = (double)calls.rows[0].times;
        before.call_ns = (double)calls.rows[0].total;
    }
    if (!gone.calls) before.no_call_ns = (double)(none + first - reached);
    tallies_free(&calls);
    return before;
}
