#include "tools/custream/open/open.h"

#include "tools/custream/command.h"
#include "tools/custream/lanes.h"
#include "tools/custream/trace/row.h"

enum { NO_LANE = UINT32_MAX };

static struct busy_lane *lane_at(struct busy *busy, int64_t pid, int64_t tid)
{
    uint32_t *at = numbers_at(&busy->index, (uint64_t)pid << 32 | (uint32_t)tid, NO_LANE);
    if (*at == NO_LANE) {
        *at = (uint32_t)busy->count;
        array_add(busy->lanes, busy->count, busy->capacity, (struct busy_lane){0});
    }
    return &busy->lanes[*at];
}

/* Names a stream's lane. A host thread may get an entry too: without work it is never listed. */
static void name_lane(struct busy *busy, const struct trace_row *row, int64_t pid)
{
    const uint32_t tid = (uint32_t)row_number(row, KEY_TID, 0);
    if (lane_is_streams_own(tid, row_has(row, KEY_CS_STREAM)))
        lane_at(busy, pid, lane_stream(tid, row_has(row, KEY_CS_STREAM)))->name =
            row_word(row, KEY_META_NAME);
}

/* Takes GPU work and names of lanes. Only GPU work has args.stream, in other tools' traces too. */
static void take_row(void *of, const struct trace_row *row)
{
    struct busy *busy = of;
    const char *ph = text_of(&busy->texts, row_word(row, KEY_PH));
    if (!row_has(row, KEY_PID)) return;
    const int64_t pid = row_number(row, KEY_PID, 0);
    if (*ph == 'X' && row_has(row, KEY_STREAM)) {
        const int64_t lasted = row_number(row, KEY_DUR, 0), at = row_number(row, KEY_TS, 0);
        if (at < busy->begin) busy->begin = at;
        if (at + lasted > busy->end) busy->end = at + lasted;
        if (lasted > 0) lane_at(busy, pid, row_number(row, KEY_STREAM, 0))->busy += (double)lasted;
    } else if (*ph == 'M' && !strcmp(text_of(&busy->texts, row_word(row, KEY_NAME)), "thread_name"))
        name_lane(busy, row, pid);
}

static void take_fact(void *of, const struct trace_fact *fact)
{
    struct busy *busy = of;
    if (!strcmp(fact->path, "metadata.tool"))
        busy->ours = !strncmp(text_of(&busy->texts, fact->value), "custream ", 9);
}

void busy_init(struct busy *busy)
{
    *busy = (struct busy){0};
    texts_init(&busy->texts);
}

bool busy_read(struct busy *busy, const char *path, char error[256])
{
    const struct trace_sink sink = {.of = busy, .row = take_row, .fact = take_fact};
    busy->ours = false;
    busy->begin = INT64_MAX, busy->end = INT64_MIN;
    const enum trace_end end = trace_read(path, &busy->texts, &sink, error);
    numbers_free(&busy->index);
    busy->index = (struct numbers){0};
    busy->cut |= end == TRACE_CUT;
    return end != TRACE_UNREADABLE;
}

static int busier_first(const void *a, const void *b)
{
    const struct busy_lane *x = a, *y = b;
    if (x->busy != y->busy) return x->busy < y->busy ? 1 : -1;
    return x->name < y->name ? -1 : x->name > y->name;
}

size_t busy_names(struct busy *busy, const char **names, size_t most)
{
    size_t count = 0;
    if (busy->count) qsort(busy->lanes, busy->count, sizeof *busy->lanes, busier_first);
    for (size_t i = 0; i < busy->count && count < most && busy->lanes[i].busy > 0; i++) {
        const char *name = text_of(&busy->texts, busy->lanes[i].name);
        bool known = !*name;
        for (size_t n = 0; n < count && !known; n++) known = names[n] == name;
        if (!known) names[count++] = name;
    }
    return count;
}

void busy_free(struct busy *busy)
{
    numbers_free(&busy->index);
    texts_free(&busy->texts);
    free(busy->lanes);
}
