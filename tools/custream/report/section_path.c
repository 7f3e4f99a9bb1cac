/* The run's longest path, added up. The run gets shorter only if a stretch of this path does. */
#include "tools/custream/model/replay.h"
#include "tools/custream/report/inside.h"

static const struct column columns[] = {
    {"what", "what", UNIT_TEXT, COLUMN_NAMES, 0},
    {"name", "name", UNIT_TEXT, COLUMN_NAMES, 0},
    {"where", "where", UNIT_TEXT, COLUMN_NAMES, 0},
    {"path_ns", "on the path", UNIT_NS, 0, CELL_TOTAL},
    {"share", "share", UNIT_SHARE, 0, CELL_OWN},
    {"times", "times", UNIT_COUNT, 0, CELL_TIMES},
    {"longest_ns", "longest", UNIT_NS, 0, CELL_LONGEST},
};
enum { WHAT, NAME, WHERE, SHARE = 4 };

static const char *const part_word[PATH_PARTS] = {
    [PATH_CALL] = "call",
    [PATH_RETURN] = "after a wait",
    [PATH_OWN_CODE] = "own code before",
    [PATH_OUTSIDE] = "waited outside CUDA before",
    [PATH_UNKNOWN] = "not recorded before",
    [PATH_HOST_FUNCTION] = "host function",
    [PATH_LAUNCH] = "way to the GPU",
    [PATH_FULL] = "no room for",
};

static bool is_of_host(enum path_part part)
{
    return part == PATH_CALL || part == PATH_RETURN || part == PATH_OWN_CODE ||
           part == PATH_OUTSIDE || part == PATH_UNKNOWN;
}

struct path {
    const struct run *run;
    struct tallies rows;
};

/* Adds a stretch of the path to the row of its part, its name, and its stream or thread. */
static void step_add(void *of, enum path_part part, uint32_t subject, int64_t ns)
{
    struct path *path = of;
    const struct run *run = path->run;
    text name = 0;
    uint32_t where;
    if (is_of_host(part)) {
        name = run->calls[subject].name;
        where = run->calls[subject].thread;
    } else if (part == PATH_HOST_FUNCTION) where = run->callbacks[subject].stream;
    else {
        name = run->works[subject].name;
        where = run->works[subject].stream;
    }
    struct tally *tally = TALLY_OF(&path->rows, part, name, where);
    tally->sum[0] = part;
    tally->sum[1] = name;
    tally->sum[2] = where;
    tally->sum[3] = part == PATH_WORK ? run->works[subject].kind : 0;
    tally_add(tally, ns);
}

static void row_fill(
    struct report *report, const struct model *of, const struct tally *tally, struct cell *row)
{
    static const char *const kinds[WORK_KINDS] = {"kernel", "copy", "memset", "graph", "range"};
    const enum path_part part = (enum path_part)tally->sum[0];
    const uint32_t where = (uint32_t)tally->sum[2];
    const bool host = is_of_host(part);
    row[WHAT].text = part == PATH_WORK ? kinds[(int)tally->sum[3]] : part_word[part];
    row[NAME].text = text_in(&of->run, (text)tally->sum[1]);
    row[WHERE].text = where == NONE ? ""
                      : host        ? thread_label(report, &of->run, where)
                                    : stream_label(report, &of->run, where);
}

void section_critical_path(struct report *report, const struct model *of)
{
    struct replay *replay = replay_make(of);
    struct path path = {.run = &of->run};
    struct table *table =
        TABLE_NEW(report, "critical_path", "The longest path of the run", columns);
    table->none = "Absent: the run cannot be replayed, as GPU times or calls are missing";
    table->shown = 20;
    if (replay) replay_path(replay, step_add, &path);
    tallies_put(report, of, &path.rows, table, row_fill);
    const double all = table_sum(table, "path_ns");
    for (size_t row = 0; row < table->row_count; row++) {
        struct cell *cells = &table->cells[row * table->column_count];
        cells[SHARE].number = cells[3].number / all;
    }
    replay_free(replay);
}
