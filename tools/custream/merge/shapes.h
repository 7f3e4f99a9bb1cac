/* How kernels were launched, where a trace of ours leaves that to an earlier row. */
#ifndef CS_MERGE_SHAPES_H
#define CS_MERGE_SHAPES_H

#include <stdbool.h>

#include "tools/custream/trace/numbers.h"

struct yyjson_doc;
struct yyjson_val;

struct shapes {
    struct numbers last; /* by GPU and name: the last one's number in `told`, +1 */
    struct yyjson_doc **told;
    size_t count, capacity;
    struct yyjson_val *row; /* as it was made last */
    size_t row_capacity;
};

/* Once for each row of a file: the row with what it leaves out, until the next call. */
struct yyjson_val *shapes_tell(struct shapes *shapes, struct yyjson_val *row);
void shapes_free(struct shapes *shapes);

/* Whether the header's member "metadata" is that of a trace of ours. */
bool metadata_is_ours(struct yyjson_val *metadata);

#endif
