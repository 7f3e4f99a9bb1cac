/* What the run would take with one thing changed, as the user asks. */
#include "tools/custream/model/what_if.h"
#include "tools/custream/report/inside.h"

static const struct column columns[] = {
    {"change", "change", UNIT_TEXT, COLUMN_NAMES, 0},
    {"recorded_ns", "the run took", UNIT_NS, 0, 0},
    {"gain_low_ns", "gains", UNIT_NS, 0, 0},
    {"gain_high_ns", "at most", UNIT_NS, 0, 0},
    {"share", "share", UNIT_SHARE, 0, 0},
    {"replayed_ns", "replayed", UNIT_NS, 0, 0},
    {"unexplained_ns", "unexplained", UNIT_NS, 0, 0},
};

static bool row_put(struct table *table, const struct model *of, struct replay *replay,
    const char *command, const char *words)
{
    char error[512];
    struct what_if what;
    struct gain gain;
    const double scale = replay_scale(replay), recorded = scale * (double)replay_recorded(replay);
    bool good = what_if_read(&what, &of->run, words, error);
    if (!good) complain(command, "--what-if='%.100s': %s", words, error);
    else if (gain_of(&gain, replay, &what.change, what.split))
        TABLE_PUT(table, columns, CELL(words), CELL(recorded), CELL(gain.low), CELL(gain.high),
            CELL((double)gain.high / recorded), CELL(scale * (double)unchanged_length(replay)),
            CELL(scale * (double)replay_unexplained(replay)));
    what_if_free(&what);
    return good;
}

bool section_what_if(struct report *report, const struct model *of, const char *command,
    const char *const *changes, size_t count)
{
    struct replay *replay = replay_make(of);
    struct table *table =
        TABLE_NEW(report, "what_if", "What the run would take with a change", columns);
    bool good = true;
    table->none = "Absent: the run cannot be replayed, as GPU times or calls are missing";
    for (size_t i = 0; replay && good && i < count; i++)
        good = row_put(table, of, replay, command, changes[i]);
    replay_free(replay);
    return good;
}
