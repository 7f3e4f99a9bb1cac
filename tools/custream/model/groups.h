/* Rows by what they belong to: which rows each group has, in the order of the rows. */
#ifndef CS_MODEL_GROUPS_H
#define CS_MODEL_GROUPS_H

#include <stddef.h>
#include <stdint.h>

struct groups {
    uint32_t *begins; /* of group g: members[begins[g] .. begins[g + 1]) */
    uint32_t *members;
};

/* `group` tells the group of row i, from 0 to below group_count; UINT32_MAX: of none. */
struct groups groups_make(size_t group_count, size_t row_count, uint32_t (*group)(const void *of, size_t i), const void *of);
void groups_free(struct groups *groups);

#endif
