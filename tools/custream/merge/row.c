#include "tools/custream/merge/row.h"

#include <stdio.h>
#include <string.h>
#include <yyjson.h>

#include "tools/custream/command.h"
#include "tools/custream/trace/row.h"

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

/* --- shapes --- */

static const char *const facts[] = {
    "grid", "block", "registers per thread", "shared memory", "local memory per thread"};

/* Copies the facts that stand in args into an object of their own. */
static yyjson_doc *told_of(yyjson_val *args)
{
    struct rope text = {0};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        yyjson_val *value = yyjson_obj_get(args, facts[i]);
        if (!value) continue;
        rope_print(&text, "%c\"%s\":", text.length ? ',' : '{', facts[i]);
        row_print(&text, value);
    }
    rope_literal(&text, "}");
    yyjson_doc *doc = value_parse(text.at, text.length);
    if (!doc) out_of_memory();
    free(text.at);
    return doc;
}

/* Returns a copy of the row with the members of `told` in front of those in its args. */
static yyjson_val *filled(
    struct shapes *shapes, yyjson_val *row, yyjson_val *args, yyjson_val *told)
{
    const size_t before = (size_t)(args + 1 - row), more = told->uni.ofs / sizeof *told - 1;
    const size_t all = row->uni.ofs / sizeof *row;
    while (shapes->row_capacity < all + more)
        shapes->row =
            array_room(shapes->row, shapes->row_capacity, &shapes->row_capacity, sizeof *row);
    yyjson_val *made = shapes->row;
    memcpy(made, row, before * sizeof *row);
    memcpy(made + before, told + 1, more * sizeof *row);
    memcpy(made + before + more, args + 1, (all - before) * sizeof *row);
    made->uni.ofs += more * sizeof *row;
    made[before - 1].uni.ofs += more * sizeof *row;
    unsafe_yyjson_set_len(&made[before - 1], yyjson_obj_size(args) + yyjson_obj_size(told));
    return made;
}

yyjson_val *shapes_tell(struct shapes *shapes, yyjson_val *row)
{
    yyjson_val *args = yyjson_obj_get(row, "args");
    if (!yyjson_equals_str(yyjson_obj_get(row, "cat"), "kernel") || !yyjson_is_obj(args))
        return row;
    uint32_t *last = last_shape(&shapes->last, value_hash(5, yyjson_obj_get(row, "pid")),
        value_hash(5, yyjson_obj_get(row, "name")));
    const bool known = *last != UINT32_MAX;
    if (!yyjson_obj_get(args, facts[0]))
        return known ? filled(shapes, row, args, yyjson_doc_get_root(shapes->told[*last])) : row;
    if (known) yyjson_doc_free(shapes->told[*last]);
    else {
        *last = (uint32_t)shapes->count;
        array_add(shapes->told, shapes->count, shapes->capacity, NULL);
    }
    shapes->told[*last] = told_of(args);
    return row;
}

void shapes_free(struct shapes *shapes)
{
    for (size_t i = 0; i < shapes->count; i++) yyjson_doc_free(shapes->told[i]);
    free(shapes->told);
    free(shapes->row);
    numbers_free(&shapes->last);
    *shapes = (struct shapes){0};
}

bool metadata_is_ours(yyjson_val *metadata)
{
    const char *tool = yyjson_get_str(yyjson_obj_get(metadata, "tool"));
    return tool && !strncmp(tool, "custream ", 9);
}
