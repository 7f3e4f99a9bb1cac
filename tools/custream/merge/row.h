/* Rows of a trace file, one after another, and what merging needs of one. */
#ifndef CS_MERGE_ROW_H
#define CS_MERGE_ROW_H

#include "tools/custream/trace/json.h"

/* Who takes them, and may change them in place. False: enough, `error` was set. */
struct source_sink {
    void *of;
    bool (*row)(void *of, struct json *json, char error[256]);
    bool (*member)(void *of, struct json *json, char error[256]); /* NULL: not wanted */
};

/* JSON_END; JSON_CUT: each row that was whole has been told; JSON_BROKEN: `error` says why. */
/* `skip_to`: json.h. */
enum json_step source_read(
    const char *path, uint64_t skip_to, const struct source_sink *sink, char error[256]);
/* The same of a trace that is open. */
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
    ROW_WAIT_IDS, /* of args */
    ROW_KEYS
};

struct merge_row {
    struct yyjson_val *at[ROW_KEYS]; /* NULL: it has none */
    char ph;
};

/* False: a member stands twice, or there is no ph. */
bool row_read(struct merge_row *row, struct yyjson_val *value);

#endif
