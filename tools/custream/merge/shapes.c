#include "tools/custream/merge/shapes.h"

#include <yyjson.h>

#include "tools/custream/command.h"
#include "tools/custream/trace/row.h"
#include "tools/custream/trace/value.h"

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
