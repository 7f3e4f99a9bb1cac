/* Things that are due at some time, as a binary heap: the first one is on top. */
#ifndef CS_MODEL_DUE_H
#define CS_MODEL_DUE_H

#include "tools/custream/command.h"

struct due {
    int64_t at;
    uint32_t number;
};
struct dues {
    struct due *rows; /* rows[0]: the top */
    size_t count, capacity;
};

static inline bool due_before(struct due a, struct due b)
{
    return a.at != b.at ? a.at < b.at : a.number < b.number;
}

static inline void due_push(struct dues *dues, int64_t at, uint32_t number)
{
    const struct due due = {at, number};
    array_add(dues->rows, dues->count, dues->capacity, due);
    size_t to = dues->count - 1;
    for (; to && due_before(due, dues->rows[(to - 1) / 2]); to = (to - 1) / 2)
        dues->rows[to] = dues->rows[(to - 1) / 2];
    dues->rows[to] = due;
}

static inline struct due due_pop(struct dues *dues)
{
    const struct due first = dues->rows[0], last = dues->rows[--dues->count];
    size_t to = 0;
    for (size_t child; (child = 2 * to + 1) < dues->count; to = child) {
        if (child + 1 < dues->count && due_before(dues->rows[child + 1], dues->rows[child]))
            child++;
        if (!due_before(dues->rows[child], last)) break;
        dues->rows[to] = dues->rows[child];
    }
    dues->rows[to] = last;
    return first;
}

#endif
