/* Gives kernels the shape that our traces leave out: the last kernel of that name on that GPU had
 * it. */
#ifndef CS_MERGE_SHAPES_H
#define CS_MERGE_SHAPES_H

#include <stdbool.h>

#include "tools/custream/trace/numbers.h"

struct yyjson_doc;
struct yyjson_val;

struct shapes {
    struct numbers last;      /* by GPU and kernel name: the place of its last shape in `told` */
    struct yyjson_doc **told; /* the shapes, each an object */
    size_t count, capacity;
    struct yyjson_val *row; /* the row that shapes_tell() made last */
    size_t row_capacity;
};

/* Returns the row with its shape, until the next call. To be called for each row in turn. */
struct yyjson_val *shapes_tell(struct shapes *shapes, struct yyjson_val *row);
void shapes_free(struct shapes *shapes);

/* Whether the member "metadata" of a header says that custream wrote the trace. */
bool metadata_is_ours(struct yyjson_val *metadata);

#endif
