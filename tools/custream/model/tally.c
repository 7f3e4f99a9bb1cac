#include "tools/custream/model/tally.h"

#include <stdlib.h>

#include "tools/custream/command.h"

struct tally *tally_of(struct tallies *tallies, uint64_t key)
{
    const uint32_t at = *numbers_at(&tallies->index, key, (uint32_t)tallies->count);
    if (at == tallies->count) {
        tallies->rows = array_room(tallies->rows, tallies->count, &tallies->capacity, sizeof *tallies->rows);
        tallies->rows[tallies->count++] = (struct tally){.key = key};
    }
    return &tallies->rows[at];
}

void tally_add(struct tally *tally, int64_t duration)
{
    if (!tally->times || duration < tally->shortest) tally->shortest = duration;
    if (duration > tally->longest) tally->longest = duration;
    if (__builtin_add_overflow(tally->total, duration, &tally->total)) tally->total = INT64_MAX; /* a damaged file: times of decades */
    tally->times++;
}

/* Those of equal length in the order of their keys: the same file makes the same table. */
static int longer_first(const void *a, const void *b)
{
    const struct tally *one = a, *other = b;
    if (one->total != other->total) return one->total < other->total ? 1 : -1;
    return (one->key > other->key) - (one->key < other->key);
}

void tallies_sort(struct tallies *tallies)
{
    if (tallies->count) qsort(tallies->rows, tallies->count, sizeof *tallies->rows, longer_first);
}

void tallies_free(struct tallies *tallies)
{
    free(tallies->rows);
    numbers_free(&tallies->index);
    *tallies = (struct tallies){0};
}
