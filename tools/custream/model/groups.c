#include "tools/custream/model/groups.h"

#include <stdlib.h>

#include "tools/custream/command.h"

struct groups groups_make(size_t group_count, size_t row_count, uint32_t (*group)(const void *of, size_t i), const void *of)
{
    struct groups groups = {.begins = calloc(group_count + 2, sizeof *groups.begins), .members = malloc((row_count + 1) * sizeof *groups.members)};
    if (!groups.begins || !groups.members) out_of_memory();
    for (size_t i = 0; i < row_count; i++)
        if (group(of, i) != UINT32_MAX) groups.begins[group(of, i) + 2]++;
    for (size_t g = 2; g <= group_count; g++) groups.begins[g] += groups.begins[g - 1];
    uint32_t *next = groups.begins + 1; /* where each group begins; when all are in, where it ends, which is where the next one begins */
    for (size_t i = 0; i < row_count; i++)
        if (group(of, i) != UINT32_MAX) groups.members[next[group(of, i)]++] = (uint32_t)i;
    return groups;
}

void groups_free(struct groups *groups)
{
    free(groups->begins);
    free(groups->members);
    *groups = (struct groups){0};
}
