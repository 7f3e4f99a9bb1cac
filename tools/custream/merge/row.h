/* Reads a trace file row by row, and finds the members of a row that a merge needs. */
#ifndef CS_MERGE_ROW_H
#define CS_MERGE_ROW_H

#include "tools/custream/trace/json.h"
#include "tools/custream/trace/numbers.h"

/* Functions that take rows and members, and may change them. To stop the reading, a function sets
 * `error` and returns false. */
struct source_sink {
    void *of;
    bool (*row)(void *of, struct json *json, char error[256]);
    bool (*member)(void *of, struct json *json, char error[256]); /* NULL: members are skipped */
};

/* Returns JSON_END; JSON_CUT: the file ends too early, and the sink got each whole row; or
 * JSON_BROKEN: `error` says why. `skip_to`: as in json.h. */
enum json_step source_read(
    const char *path, uint64_t skip_to, const struct source_sink *sink, char error[256]);
/* Does the same with a trace that is open already. */
enum json_step source_rows(struct json *json, const struct source_sink *sink, char error[256]);

enum row_key {
    ROW_PH,
    ROW_NAME,
    ROW_CAT,
    ROW_PID,
    ROW_TID,
    ROW_TS,
    ROW_DUR,
    ROW_ID,
    ROW_BIND_ID,
    ROW_ID2,
    ROW_CORRELATION,
    ROW_ARGS_NAME,
    ROW_ARGS_LABELS,
    ROW_STREAM,
    ROW_ORIGIN,
    ROW_WAIT_IDS, /* ROW_CORRELATION to here: members of args */
    ROW_KEYS
};

struct merge_row {
    struct yyjson_val *at[ROW_KEYS]; /* the value of each key; NULL: the row has no such member */
    char ph;
};

/* Finds the row's members. Returns false if a member stands twice, or `ph` is not one character. */
bool row_read(struct merge_row *row, struct yyjson_val *value);

/* Gives kernels the shape that our traces leave out: the last kernel of that name on that GPU had
 * it. */
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
