#include "tools/custream/convert/rows.h"

#include <yyjson.h>

#include "tools/custream/command.h"
#include "tools/custream/merge/row.h"

struct conversion {
    void (*put)(void *of, const char *bytes, size_t n);
    void *of;
    struct packets *packets; /* NULL: JSON is written */
    struct rope head, tail;  /* the members before the rows, and those behind them, as JSON */
    struct rope row;
    uint64_t base;
    unsigned long long events; /* how many rows have come */
    bool has_rows, whole, is_ours;
    struct shapes shapes;
};

/* Puts a member of the header with the line breaks and blanks that the library writes, since other
 * tools search for that text. */
static void head_member(struct rope *head, const char *name, yyjson_val *value)
{
    const bool info = !strcmp(name, "distributedInfo") && yyjson_is_obj(value);
    yyjson_val *key, *below;
    size_t i, count;
    rope_print(head, "%s%s\"%s\":%s", head->length ? "," : "{",
        info || !strcmp(name, "metadata") ? "\n" : "", name, info ? " {" : "");
    if (!info) return row_print(head, value);
    yyjson_obj_foreach(value, i, count, key, below) {
        if (i) rope_literal(head, ", ");
        row_print(head, key);
        rope_literal(head, ": ");
        row_print(head, below);
    }
    rope_literal(head, "}");
}

/* Writes the members that came before the first row, if that is not done yet. */
static void rows_begin(struct conversion *c)
{
    if (c->has_rows) return;
    c->has_rows = true;
    rope_print(&c->head, c->head.length ? ",\n" : "{");
    if (c->packets) return packets_head(c->packets, c->head.at, c->head.length, c->base);
    rope_print(&c->head, "\"traceEvents\":[\n");
    c->put(c->of, c->head.at, c->head.length);
}

bool conversion_put(struct conversion *c, yyjson_val *row, bool half, char error[256])
{
    char why[256];
    rows_begin(c);
    if (c->whole && c->is_ours) row = shapes_tell(&c->shapes, row);
    c->events++;
    if (c->packets) {
        const bool good = packets_row(c->packets, row, half, why);
        if (!good) snprintf(error, 256, "event %llu: %.220s", c->events, why);
        return good;
    }
    c->row.length = 0;
    if (c->events > 1) rope_literal(&c->row, ",\n");
    row_print(&c->row, row);
    c->put(c->of, c->row.at, c->row.length);
    return true;
}

bool conversion_row(void *of, struct json *json, char error[256])
{
    struct conversion *c = of;
    return conversion_put(c, json->value, json->has_half, error);
}

bool conversion_member(void *of, struct json *json, char error[256])
{
    struct conversion *c = of;
    (void)error;
    if (!strcmp(json->name, "metadata")) c->is_ours = metadata_is_ours(json->value);
    if (!strcmp(json->name, "baseTimeNanoseconds"))
        c->base = strtoull(yyjson_is_raw(json->value) ? yyjson_get_raw(json->value) : "", NULL, 10);
    if (!c->has_rows) return head_member(&c->head, json->name, json->value), true;
    rope_print(&c->tail, "%s\"%s\":", c->tail.length > 1 ? ",\n" : ",", json->name);
    row_print(&c->tail, json->value);
    return true;
}

struct conversion *conversion_new(
    unsigned how, void (*put)(void *of, const char *bytes, size_t n), void *of)
{
    struct conversion *c = array_zeros(1, sizeof *c);
    *c = (struct conversion){.put = put, .of = of, .whole = how & ROWS_WHOLE};
    if (how & ROWS_PACKETS) c->packets = packets_new(put, of);
    rope_literal(&c->tail, "]");
    return c;
}

void conversion_end(struct conversion *c, const struct rope *tail)
{
    rows_begin(c);
    rope_literal(&c->tail, "}\n");
    if (!tail) tail = &c->tail;
    if (c->packets) return packets_tail(c->packets, tail->at, tail->length);
    c->put(c->of, "\n", 1);
    c->put(c->of, tail->at, tail->length);
}

void conversion_free(struct conversion *c)
{
    if (c->packets) packets_free(c->packets);
    shapes_free(&c->shapes);
    free_all(c->head.at, c->tail.at, c->row.at, c);
}

enum json_step rows_convert(const char *from, unsigned how,
    void (*put)(void *of, const char *bytes, size_t n), void *of, char error[256])
{
    struct conversion *c = conversion_new(how, put, of);
    const enum json_step end =
        source_read(from, 0, &(struct source_sink){c, conversion_row, conversion_member}, error);
    if (end == JSON_CUT && how & ROWS_AS_CUT) rows_begin(c);
    else if (end != JSON_BROKEN) conversion_end(c, NULL);
    conversion_free(c);
    return end;
}
