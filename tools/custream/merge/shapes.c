#include "tools/custream/merge/shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"

static const char *const facts[] = {"grid", "block", "registers per thread", "shared memory", "local memory per thread"};
enum { FACTS = sizeof facts / sizeof *facts };

/* A kernel's row. */
struct telling {
    struct piece category, name, pid, args;
    struct piece facts[FACTS];
};

static void take_member(void *of, struct piece name, struct piece value)
{
    struct telling *t = of;
    if (piece_named(name, "cat")) t->category = value;
    else if (piece_named(name, "name")) t->name = value;
    else if (piece_named(name, "pid")) t->pid = value;
    else if (piece_named(name, "args")) t->args = value;
}

static void take_fact(void *of, struct piece name, struct piece value)
{
    struct telling *t = of;
    for (int i = 0; i < FACTS; i++)
        if (piece_named(name, facts[i])) t->facts[i] = value;
}

static char *told(const struct telling *t)
{
    size_t length = 0;
    for (int i = 0; i < FACTS; i++) length += strlen(facts[i]) + t->facts[i].length + 4;
    char *text = malloc(length + 1), *at = text;
    if (!text) out_of_memory();
    for (int i = 0; i < FACTS; i++) {
        if (!t->facts[i].at) continue;
        at += sprintf(at, "%s\"%s\":", at > text ? "," : "", facts[i]);
        at = (char *)memcpy(at, t->facts[i].at, t->facts[i].length) + t->facts[i].length;
    }
    *at = 0;
    return text;
}

static void remember(struct shapes *shapes, uint32_t *last, char *text)
{
    if (*last && !strcmp(shapes->texts[*last - 1], text)) {
        free(text);
        return;
    }
    if (*last) {
        free(shapes->texts[*last - 1]);
    } else {
        shapes->texts = array_room(shapes->texts, shapes->text_count, &shapes->text_capacity, sizeof *shapes->texts);
        *last = (uint32_t)++shapes->text_count;
    }
    shapes->texts[*last - 1] = text;
}

void shapes_tell(struct shapes *shapes, const char **text, size_t *length)
{
    struct telling t = {0};
    members_each(*text, take_member, &t);
    if (!piece_is(t.category, "kernel") || !t.args.at || *t.args.at != '{') return;
    members_each(t.args.at, take_fact, &t);
    uint32_t *last = numbers_at(&shapes->last, piece_hash(piece_hash(5, t.pid), t.name), 0);
    if (t.facts[0].at) return remember(shapes, last, told(&t));
    if (!*last) return;
    const char *fill = shapes->texts[*last - 1];
    const size_t before = (size_t)(t.args.at + 1 - *text), filled = strlen(fill), behind = *length - before;
    const bool comma = t.args.at[1] != '}';
    while (*length + filled + 2 > shapes->row_capacity) shapes->row = array_room(shapes->row, shapes->row_capacity, &shapes->row_capacity, 1);
    memcpy(shapes->row, *text, before);
    memcpy(shapes->row + before, fill, filled);
    if (comma) shapes->row[before + filled] = ',';
    memcpy(shapes->row + before + filled + comma, *text + before, behind);
    *length += filled + comma;
    shapes->row[*length] = 0;
    *text = shapes->row;
}

void shapes_free(struct shapes *shapes)
{
    for (size_t i = 0; i < shapes->text_count; i++) free(shapes->texts[i]);
    free(shapes->texts);
    free(shapes->row);
    numbers_free(&shapes->last);
    *shapes = (struct shapes){0};
}

bool shapes_are_left_out(const char *metadata)
{
    static const char *const tool[] = {"tool", NULL};
    const struct piece piece = *metadata == '{' ? member_at(metadata, tool) : (struct piece){0};
    return piece.length > 9 && !memcmp(piece.at, "\"custream ", 10);
}
