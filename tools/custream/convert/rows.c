#include "tools/custream/convert/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"
#include "tools/custream/convert/packets.h"
#include "tools/custream/merge/shapes.h"

struct conversion {
    void (*put)(void *of, const char *bytes, size_t n);
    void *of;
    struct packets *packets; /* NULL: JSON is written */
    char *head, *tail;       /* members before the rows, and behind them, as text */
    size_t head_length, tail_length, head_room, tail_room;
    uint64_t base;
    unsigned long long events; /* rows that have come */
    bool has_rows, is_first;
    bool whole, is_ours;
    struct shapes shapes;
};

#define put_literal(c, literal) (c)->put((c)->of, literal, sizeof(literal) - 1)

static void append(char **text, size_t *length, size_t *size, const char *piece, size_t n)
{
    while (*length + n >= *size) *text = array_room(*text, *size, size, 1);
    memcpy(*text + *length, piece, n);
    *length += n;
    (*text)[*length] = 0;
}

/* Where lines end in a header, and the blanks in "rank": 0, are as the library has them: other tools look for that, and so does who asks whose file it is. */
static void head_add(struct conversion *c, const char *piece, size_t n) { append(&c->head, &c->head_length, &c->head_room, piece, n); }

static void head_member(struct conversion *c, const char *name, const char *value, size_t length)
{
    const bool info = !strcmp(name, "distributedInfo"), line = info || !strcmp(name, "metadata");
    bool quoted = false;
    head_add(c, c->head_length ? "," : "{", 1);
    if (line) head_add(c, "\n", 1);
    head_add(c, "\"", 1);
    head_add(c, name, strlen(name));
    head_add(c, "\": ", info ? 3 : 2);
    if (!info) head_add(c, value, length);
    for (size_t i = 0; info && i < length; i++) {
        head_add(c, value + i, 1);
        quoted ^= value[i] == '"' && (!i || value[i - 1] != '\\');
        if (!quoted && strchr(":,", value[i])) head_add(c, " ", 1);
    }
}

/* Rows begin: all that stands before them is known. */
static void rows_begin(struct conversion *c)
{
    c->has_rows = true;
    head_add(c, c->head_length ? ",\n" : "{", c->head_length ? 2 : 1);
    if (c->packets) {
        packets_head(c->packets, c->head, c->head_length, c->base);
        return;
    }
    c->put(c->of, c->head, c->head_length);
    put_literal(c, "\"traceEvents\":[\n");
}

static bool row(void *of, const char *text, size_t length, char error[256])
{
    struct conversion *c = of;
    char why[256];
    if (!c->has_rows) rows_begin(c);
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

static bool member(void *of, const char *name, const char *value, size_t length, char error[256])
{
    struct conversion *c = of;
    (void)error;
    if (!strcmp(name, "metadata")) c->is_ours = shapes_are_left_out(value);
    if (!strcmp(name, "baseTimeNanoseconds")) c->base = strtoull(value, NULL, 10);
    if (!c->has_rows) {
        head_member(c, name, value, length);
        return true;
    }
    append(&c->tail, &c->tail_length, &c->tail_room, c->tail_length ? ",\n\"" : ",\"", c->tail_length ? 3 : 2);
    append(&c->tail, &c->tail_length, &c->tail_room, name, strlen(name));
    append(&c->tail, &c->tail_length, &c->tail_room, "\":", 2);
    append(&c->tail, &c->tail_length, &c->tail_room, value, length);
    return true;
}

static void rows_end(struct conversion *c)
{
    if (!c->has_rows) rows_begin(c);
    append(&c->tail, &c->tail_length, &c->tail_room, "}\n", 2);
    if (!c->packets) {
        put_literal(c, "\n]");
        c->put(c->of, c->tail, c->tail_length);
        return;
    }
    char *text = malloc(c->tail_length + 2);
    if (!text) out_of_memory();
    *text = ']';
    memcpy(text + 1, c->tail, c->tail_length + 1);
    packets_tail(c->packets, text, c->tail_length + 1);
    free(text);
}

enum source_end rows_convert(const char *from, unsigned how, void (*put)(void *of, const char *bytes, size_t n), void *of, char error[256])
{
    struct conversion c = {.put = put, .of = of, .is_first = true, .whole = how & ROWS_WHOLE};
    const struct source_sink sink = {&c, row, member};
    if (how & ROWS_PACKETS) c.packets = packets_new(put, of);
    const enum source_end end = source_read(from, &sink, error);
    if (end != SOURCE_BROKEN) rows_end(&c);
    if (c.packets) packets_free(c.packets);
    shapes_free(&c.shapes);
    free(c.head);
    free(c.tail);
    return end;
}
