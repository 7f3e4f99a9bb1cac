#include "tools/custream/merge/row.h"

#include <stdio.h>
#include <string.h>
#include <yyjson.h>

enum json_step source_rows(struct json *json, const struct source_sink *sink, char error[256])
{
    bool good = true;
    *error = 0;
    while (good) {
        const enum json_step step = json_next(json);
        if (step == JSON_BROKEN) snprintf(error, 256, "%s", json->error);
        if (step != JSON_ROW && step != JSON_MEMBER) return step;
        if (step == JSON_MEMBER) good = !sink->member || sink->member(sink->of, json, error);
        else if (yyjson_obj_size(json->value)) good = sink->row(sink->of, json, error);
        else if (!yyjson_is_obj(json->value)) { /* an empty object, with which XLA ends its rows, is
                                                   passed over */
            snprintf(error, 256, "line %llu: no trace: a row that is no object",
                (unsigned long long)json->lines + 1);
            good = false;
        }
    }
    return JSON_BROKEN;
}

enum json_step source_read(
    const char *path, uint64_t skip_to, const struct source_sink *sink, char error[256])
{
    struct json json;
    const bool good = json_open(&json, path, false);
    json.skip_to = skip_to;
    const enum json_step end = good ? source_rows(&json, sink, error) : JSON_BROKEN;
    if (!good) snprintf(error, 256, "%s", json.error);
    json_close(&json);
    return end;
}

static const struct {
    const char *name;
    size_t length;
} names[ROW_KEYS] = {
#define NAME(key, name) [ROW_##key] = {name, sizeof name - 1},
    NAME(PH, "ph") NAME(NAME, "name") NAME(CAT, "cat") NAME(PID, "pid") NAME(TID, "tid")
        NAME(TS, "ts") NAME(DUR, "dur") NAME(ID, "id") NAME(BIND_ID, "bind_id") NAME(ID2, "id2")
            NAME(CORRELATION, "correlation") NAME(ARGS_NAME, "name") NAME(ARGS_LABELS, "labels")
                NAME(STREAM, "cs.stream") NAME(ORIGIN, "origin") NAME(WAIT_IDS, "event_wait_ids")
#undef NAME
};

/* Finds the keys from..to in an object. Returns false if a key stands twice. */
static bool members_read(
    struct merge_row *row, yyjson_val *object, enum row_key from, enum row_key to)
{
    yyjson_val *name, *value;
    size_t i, count;
    yyjson_obj_foreach(object, i, count, name, value) {
        for (enum row_key key = from; key < to; key++) {
            if (!yyjson_equals_strn(name, names[key].name, names[key].length)) continue;
            if (row->at[key]) return false;
            row->at[key] = value;
        }
        const bool args = from == ROW_PH && yyjson_is_obj(value) && yyjson_equals_str(name, "args");
        if (args && !members_read(row, value, ROW_CORRELATION, ROW_KEYS)) return false;
    }
    return true;
}

bool row_read(struct merge_row *row, yyjson_val *value)
{
    *row = (struct merge_row){0};
    if (!members_read(row, value, ROW_PH, ROW_CORRELATION) || yyjson_get_len(row->at[ROW_PH]) != 1)
        return false;
    if (!yyjson_is_str(row->at[ROW_PH])) return false;
    row->ph = *yyjson_get_str(row->at[ROW_PH]);
    return row->ph;
}
