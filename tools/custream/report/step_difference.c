#include "tools/custream/report/inside.h"

#include <math.h>

#include "tools/custream/command.h"
#include "tools/custream/model/table.h"
#include "tools/custream/model/views.h"

/* A slowest that took no more than this share of the mean longer is like the others: its times
 * differ by chance. */
#define CHANCE 0.01

/* What a range consists of. WAIT: a call that waits. */
enum item { ITEM_WORK, ITEM_CALL, ITEM_IDLE, ITEM_WAIT };

/* Of all ranges: a tally's total is what an item took in all, and its sum[0] what it took in the
 * slowest. */
struct items {
    const struct step_reader *reader;
    struct tallies tallies;
    bool slowest; /* the range at hand is it */
};

static void item_add(struct items *items, enum item item, uint32_t what, int64_t amount)
{
    struct tally *tally = tally_of(&items->tallies, key_of(item, what));
    tally_add(tally, amount);
    if (items->slowest) tally->sum[0] += (double)amount;
}

/* The place among thread_calls of the thread's first call that begins at or after a time. */
static uint32_t call_from(const struct run *run, uint32_t thread, int64_t time)
{
    uint32_t low = run->thread_calls.begins[thread], high = run->thread_calls.begins[thread + 1];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (run->calls[run->thread_calls.members[middle]].begin < time) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void items_of_calls(struct items *items, const struct range *range)
{
    const struct run *run = items->reader->run;
    for (uint32_t i = call_from(run, range->thread, range->begin);
        i < run->thread_calls.begins[range->thread + 1]; i++) {
        const struct call *call = &run->calls[run->thread_calls.members[i]];
        if (call->begin >= range->end) break;
        item_add(
            items, call_waits(call) ? ITEM_WAIT : ITEM_CALL, call->name, call->end - call->begin);
        for (uint32_t w = 0; w < call->works; w++) {
            const struct work *work = &run->works[run->works_of[call->work + w]];
            item_add(items, ITEM_WORK, work->name, work->end - work->begin);
        }
    }
}

/* The first idle time of rows [low, high), one device's, that ends after a time. */
static size_t idle_from(const struct idles *idles, size_t low, size_t high, int64_t time)
{
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (idles->rows[middle].end <= time) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void items_of_idles(struct items *items, const struct range *range)
{
    const struct step_reader *reader = items->reader;
    for (size_t d = 0; d < reader->run->device_count; d++) {
        const size_t end = reader->device_idles[d + 1];
        for (size_t i = idle_from(reader->idles, reader->device_idles[d], end, range->begin);
            i < end; i++) {
            const struct idle *idle = &reader->idles->rows[i];
            if (idle->begin >= range->end) break;
            const int64_t from = idle->begin > range->begin ? idle->begin : range->begin,
                          to = idle->end < range->end ? idle->end : range->end;
            item_add(items, ITEM_IDLE, idle->cause, to - from);
        }
    }
}

static const char *item_text(
    struct report *report, const struct run *run, const struct tally *item, double mean)
{
    const bool idle = key_high(item->key) == ITEM_IDLE;
    const char *what =
        idle ? cause_info[key_low(item->key)].title : text_in(run, key_low(item->key));
    return report_text(report, "%s%s: %.3f ms, on average %.3f ms", idle ? "idle, " : "", what,
        item->sum[0] / 1e6, mean / 1e6);
}

/* `more`: how much longer than the mean of `count` ranges the slowest took. */
static const char *largest_excess(
    const struct items *items, struct report *report, uint32_t count, double more)
{
    const struct tally *largest[2] = {NULL, NULL}; /* of what is no wait, of waits */
    double excess[2] = {0, 0};
    for (size_t i = 0; i < items->tallies.count; i++) {
        const struct tally *item = &items->tallies.rows[i];
        const bool wait = key_high(item->key) == ITEM_WAIT;
        const double its = item->sum[0] - (double)item->total / count;
        if (its > excess[wait]) largest[wait] = item, excess[wait] = its;
    }
    const bool wait = excess[0] < more / 2 && excess[1] > excess[0];
    return largest[wait] ? item_text(report, items->reader->run, largest[wait],
                               (double)largest[wait]->total / count)
                         : NULL;
}

const char *step_difference(const struct step_reader *reader, struct report *report,
    const uint32_t *ranges, uint32_t count, uint32_t slowest)
{
    struct items items = {.reader = reader};
    double mean = 0, more = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct range *range = &reader->run->ranges[ranges[i]];
        const double length = (double)(range->end - range->begin);
        items.slowest = i == slowest;
        mean += length / count;
        if (items.slowest) more = length;
        items_of_calls(&items, range);
        items_of_idles(&items, range);
    }
    more -= mean;
    const char *text = more > mean * CHANCE ? largest_excess(&items, report, count, more) : NULL;
    tallies_free(&items.tallies);
    return text;
}

struct step_reader step_reader_make(const struct run *run, const struct idles *idles)
{
    struct step_reader reader = {run, idles, array_zeros(run->device_count + 1, sizeof(size_t))};
    for (size_t i = 0; i < idles->count; i++)
        reader.device_idles[idles->rows[i].device + 1] = i + 1;
    for (size_t d = 0; d < run->device_count; d++)
        if (reader.device_idles[d + 1] < reader.device_idles[d])
            reader.device_idles[d + 1] = reader.device_idles[d];
    return reader;
}

void step_reader_free(struct step_reader *reader) { free(reader->device_idles); }
