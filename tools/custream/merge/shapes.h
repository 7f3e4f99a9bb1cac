/*
 * How kernels were launched: a trace of ours says it of a kernel where the one before of that name on the GPU, in the file, was launched otherwise. Where rows in
 * between are left out, or somebody looks at one row, each has to say it.
 */
#ifndef CS_MERGE_SHAPES_H
#define CS_MERGE_SHAPES_H

#include "tools/custream/merge/row.h"
#include "tools/custream/trace/numbers.h"

struct shapes {
    struct numbers last; /* by GPU and name: the last one's number in `texts`, +1 */
    char **texts;        /* "grid":[1,1,1],... */
    size_t text_count, text_capacity;
    char *row; /* as it was told last */
    size_t row_capacity;
};

/* Once for each row of a file, in its order: the row with what it does not say itself. The text is the caller's, or stays until the next call. */
void shapes_tell(struct shapes *shapes, const char **text, size_t *length);
void shapes_free(struct shapes *shapes);

/* Whether the header's member "metadata" is that of a trace of ours: other tools leave nothing out. */
bool shapes_are_left_out(const char *metadata);

#endif
