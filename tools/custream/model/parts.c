#include "tools/custream/model/parts.h"

#include <math.h>

bool parts_all(const struct run *run)
{
    for (size_t i = 0; i < run->part_count; i++)
        if (run->parts[i].number && run->parts[i].number != i + 1) return false;
    return true;
}

struct lost parts_lost(const struct run *run)
{
    struct lost lost = {0};
    for (size_t i = 0; i < run->part_count; i++) {
        lost.calls += run->parts[i].lost.calls;
        lost.works += run->parts[i].lost.works;
    }
    return lost;
}

/* What was recovered may say nothing of the parts before it, and fmax() takes the number of a number and NAN. */
struct lost parts_lost_in_all(const struct run *run)
{
    struct lost lost = {0};
    for (size_t i = 0; i < run->part_count; i++) {
        const struct part *part = &run->parts[i];
        lost.calls = fmax(lost.calls + part->lost.calls, part->lost_in_all.calls);
        lost.works = fmax(lost.works + part->lost.works, part->lost_in_all.works);
    }
    return lost;
}

bool parts_continue(const struct run *run) { return run->part_count && run->parts[run->part_count - 1].continues; }

/* A later part takes back what was missed in an earlier one and came. What was recovered says what the part before it said. */
static double untimed_after(const struct part *part, double before)
{
    const double sum = before + part->without_times + part->launches_without_kernel;
    if (isnan(part->untimed_in_all)) return sum;
    return part->recovered ? fmax(sum, part->untimed_in_all) : part->untimed_in_all;
}

struct untimed parts_untimed(const struct run *run)
{
    struct untimed untimed = {0};
    for (size_t i = 0; i < run->part_count; i++) {
        const struct part *part = &run->parts[i];
        const bool says = !isnan(part->untimed_in_all);
        untimed.without_times += part->without_times;
        untimed.launches += part->launches_without_kernel;
        untimed.all = untimed_after(part, untimed.all);
        untimed.said |= says;
        untimed.at_most = !says || part->recovered || part->continues;
    }
    return untimed;
}
