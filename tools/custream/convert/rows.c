#include "tools/custream/convert/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"
#include "tools/custream/convert/packets.h"
#include "tools/custream/merge/shapes.h"
#include "tools/custream/trace/rope.h"

struct conversion {
    void (*put)(void *of, const char *bytes, size_t n);
    void *of;
    struct packets *packets; /* NULL: JSON is written */
    struct rope head, tail;  /* members before the rows, and behind them, as text */
    uint64_t base;
    unsigned long long events; /* rows that have come */
    bool has_rows, is_first;
    bool whole, is_ours;
    struct shapes shapes;
};

#define put_literal(c, literal) (c)->put((c)->of, literal, sizeof(literal) - 1)

/* Where lines end in a header, and the blanks in "rank": 0, are as the library has them: other tools look for that, and so does who asks whose file it is. */
static void head_member(struct conversion *c, const char *name, const char *value, size_t length)
{
    const bool info = !strcmp(name, "distributedInfo"), line = info || !strcmp(name, "metadata");
    bool quoted = false;
    rope_put(&c->head, c->head.length ? "," : "{", 1);
    if (line) rope_put(&c->head, "\n", 1);
    rope_put(&c->head, "\"", 1);
    rope_put(&c->head, name, strlen(name));
    rope_put(&c->head, "\": ", info ? 3 : 2);
    if (!info) rope_put(&c->head, value, length);
    for (size_t i = 0; info && i < length; i++) {
        rope_put(&c->head, value + i, 1);
        quoted ^= value[i] == '"' && (!i || value[i - 1] != '\\');
        if (!quoted && strchr(":,", value[i])) rope_put(&c->head, " ", 1);
    }
}

/* Rows begin: all that stands before them is known. */
static void rows_begin(struct conversion *c)
{
    if (c->has_rows) return;
    c->has_rows = true;
    rope_put(&c->head, c->head.length ? ",\n" : "{", c->head.length ? 2 : 1);
    if (c->packets) {
        packets_head(c->packets, c->head.at, c->head.length, c->base);
        return;
    }
    c->put(c->of, c->head.at, c->head.length);
    put_literal(c, "\"traceEvents\":[\n");
}

bool conversion_row(void *of, const char *text, size_t length, char error[256])
{
    struct conversion *c = of;
    char why[256];
    rows_begin(c);
    if (c->whole && c->is_ours) shapes_tell(&c->shapes, &text, &length);
    c->events++;
    if (!c->packets) {
        if (!c->is_first) put_literal(c, ",\n");
        c->is_first = false;
        c->put(c->of, text, length);
        return true;
    }
    if (!packets_row(c->packets, text, length, why)) {
        snprintf(error, 256, "event %llu: %.220s", c->events, why);
        return false;
    }
    return true;
}

bool conversion_member(void *of, const char *name, const char *value, size_t length, char error[256])
{
    struct conversion *c = of;
    (void)error;
    if (!strcmp(name, "metadata")) c->is_ours = shapes_are_left_out(value);
    if (!strcmp(name, "baseTimeNanoseconds")) c->base = strtoull(value, NULL, 10);
    if (!c->has_rows) {
        head_member(c, name, value, length);
        return true;
    }
    if (c->tail.length > 1) rope_literal(&c->tail, ",\n\"");
    else rope_literal(&c->tail, ",\"");
    rope_put(&c->tail, name, strlen(name));
    rope_literal(&c->tail, "\":");
    rope_put(&c->tail, value, length);
    return true;
}

struct conversion *conversion_new(unsigned how, void (*put)(void *of, const char *bytes, size_t n), void *of)
{
    struct conversion *c = calloc(1, sizeof *c);
    if (!c) out_of_memory();
    *c = (struct conversion){.put = put, .of = of, .is_first = true, .whole = how & ROWS_WHOLE};
    if (how & ROWS_PACKETS) c->packets = packets_new(put, of);
    rope_literal(&c->tail, "]");
    return c;
}

void conversion_end(struct conversion *c, const struct rope *tail)
{
    rows_begin(c);
    rope_literal(&c->tail, "}\n");
    if (!tail) tail = &c->tail;
    if (!c->packets) put_literal(c, "\n");
    if (c->packets) packets_tail(c->packets, tail->at, tail->length);
    else c->put(c->of, tail->at, tail->length);
}

void conversion_free(struct conversion *c)
{
    if (c->packets) packets_free(c->packets);
    shapes_free(&c->shapes);
    free(c->head.at);
    free(c->tail.at);
    free(c);
}

enum source_end rows_convert(const char *from, unsigned how, void (*put)(void *of, const char *bytes, size_t n), void *of, char error[256])
{
    struct conversion *c = conversion_new(how, put, of);
    const enum source_end end = source_read(from, &(struct source_sink){c, conversion_row, conversion_member}, error);
    if (end == SOURCE_CUT && how & ROWS_AS_CUT) rows_begin(c);
    else if (end != SOURCE_BROKEN) conversion_end(c, NULL);
    conversion_free(c);
    return end;
}
