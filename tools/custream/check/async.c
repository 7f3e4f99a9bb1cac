/* Async spans: a b and an e of one category, name, id and process; a stream's life is one too. */
#include "tools/custream/check/check.h"
#include "tools/custream/command.h"

void async_add(struct check *check, struct async_end end)
{
    array_add(check->asyncs, check->async_count, check->async_capacity, end);
}

/* By span, then time, then b before e, then by line. */
static int async_compare(const void *left, const void *right)
{
    const struct async_end *a = left, *b = right;
    if (a->span != b->span) return a->span < b->span ? -1 : 1;
    if (a->ts != b->ts) return a->ts < b->ts ? -1 : 1;
    if (a->phase != b->phase) return a->phase < b->phase ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

void asyncs_judge(struct check *check, bool ended)
{
    if (!check->async_count) return;
    qsort(check->asyncs, check->async_count, sizeof *check->asyncs, async_compare);
    const struct async_end *open = NULL; /* the outermost begin that has no end yet */
    size_t depth = 0;
    for (size_t i = 0; i < check->async_count; i++) {
        const struct async_end *end = &check->asyncs[i],
                               *next = i + 1 < check->async_count ? end + 1 : NULL;
        if (end->phase == 'b' && !depth++) open = end;
        if (end->phase == 'e' && !depth)
            check_breach(check, end->line, 4,
                end->life ? "the end of a stream's life that has not begun"
                          : "e without a b before it in time that has its cat, name, id and pid");
        if (end->phase == 'e' && depth) depth--;
        if (next && next->span == end->span) continue;
        if (depth && ended)
            check_breach(check, open->line, 4,
                open->life ? "a stream's life without its end" : "b without its e");
        depth = 0;
    }
}
