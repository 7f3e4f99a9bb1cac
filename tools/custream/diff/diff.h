/* Compares two sides of one or more runs, row by row. A run may be freed once it was added. */
#ifndef CS_DIFF_H
#define CS_DIFF_H

#include "tools/custream/report/report.h"
#include "tools/custream/trace/numbers.h"

enum side { BEFORE, AFTER, SIDES };
extern const char *const side_name[SIDES];

/* The list of the output in which a difference stands. */
enum list {
    LIST_CHANGED, /* parts of the GPU's time: work by name, idle time by cause */
    LIST_HOST,    /* parts of the idle time that the host causes; shown beside that idle time */
    LIST_FOLLOWS, /* the same time divided otherwise: by stream, range, step, call */
    LIST_FINDINGS,
    LIST_METRICS,
};

/* A table of the report that is compared: one element of subjects[]. */
struct subject {
    const char *table, *what; /* what: the word for one of its rows */
    enum list list;
    /* its values are times on the GPU: a large change counts even if a side has few runs */
    bool steady;
    const char *label;         /* the column to show; NULL: all columns that name the row */
    const char *value, *times; /* the columns of the value and of how many times; NULL: none */
    bool mean;                 /* `value` is a mean over `times` */
    bool gpu;                  /* not compared if a run's GPU work was not recorded */
};
extern const struct subject subjects[];
extern const size_t subject_count;

/* A row's values on one side: a value for each run that has the row. The side's other runs count as
 * 0. */
struct numbers_of_runs {
    double *values; /* comparison_end() sorts them, the smallest first */
    size_t count, capacity;
};

/* All rows of the reports that have the same key (names_key()). */
struct entry {
    const struct subject *subject;
    double device; /* NAN: the row has no device */
    text label;    /* all members `text` are numbers of comparison->texts */
    text title, evidence, remedy, page, id, place; /* only for a finding */
    text unit;                                     /* only for a metric */
    struct {
        struct numbers_of_runs values;
        double total, times; /* sums over all runs of the side */
    } sides[SIDES];
    double now, now_times; /* sums in the run that is being added */
    bool is_now;           /* the run that is being added has the row */
};

/* A run, as the table "runs" shows it. */
struct ran {
    enum side side;
    unsigned files;
    text program, whole, host, gpu; /* gpu: the name of its first one */
    double pid, wall;               /* wall: ns */
};

/* A GPU's span and busy time in each run. */
struct device_times {
    double ordinal;
    text name;
    struct device_run {
        double span, busy;
    } *sides[SIDES]; /* one for each run; comparison_end() sorts them by span */
    size_t counts[SIDES], capacities[SIDES];
};

struct comparison {
    struct texts texts;
    struct numbers index; /* an entry's place in `entries`, by the number of its key's text */
    struct entry *entries;
    size_t entry_count, entry_capacity;
    struct ran *runs;
    size_t run_count, run_capacity;
    struct device_times *devices;
    size_t device_count, device_capacity;
    struct report reports[SIDES]; /* made by comparison_end(), for --fail-if */
    unsigned side_runs[SIDES];
    bool no_times; /* at least one run has no GPU work in its trace */
    /* set by comparison_end(): the longest median span of a GPU; without GPUs, the longest run */
    double span;
};

void comparison_init(struct comparison *comparison);
void comparison_add(
    struct comparison *comparison, enum side side, struct made *made, unsigned files);
void comparison_free(struct comparison *comparison);
static inline const char *comparison_text(const struct comparison *comparison, text number)
{
    return number ? text_of(&comparison->texts, number) : NULL;
}

/* To be called after the last run. */
void comparison_end(struct comparison *comparison);

/* A row's values on a side. `value`: the median over the side's runs (of an even number, the lower
 * of the two middle ones); NAN: not known in one of the runs. times: how often in a run, on
 * average. */
struct entry_side {
    double value, lowest, highest, times, mean;
};
struct entry_side entry_side(
    const struct comparison *comparison, const struct entry *entry, enum side side);
/* Returns by how much the value grows from BEFORE to AFTER. */
double entry_change(const struct comparison *comparison, const struct entry *entry);
/* Returns the side's run with the median span. */
struct device_run device_middle(
    const struct comparison *comparison, const struct device_times *device, enum side side);

/* Says whether a row differs by more than two runs of the same program do (rule: docs/diff.md). */
enum verdict {
    VERDICT_SAME,
    VERDICT_PERHAPS, /* too few runs to tell */
    VERDICT_CHANGED,
};
enum verdict entry_verdict(const struct comparison *comparison, const struct entry *entry);

/* --- names.c: keys for rows. A row has the same key in all runs of a program: threads and streams
 * go by name, streams of one name by a number in the order of their first work. --- */

enum { NAME_MAX_BYTES = 16384 }; /* the size of a key or label; longer ones are cut */

/* The streams of one run. */
struct names {
    struct texts texts;
    /* the name that a stream has in all runs, by its name in the report */
    struct numbers known_as;
};

/* Makes the names of the run's streams. `report`: the run's report, which keeps texts made here. */
void names_make(struct names *names, struct report *report, const struct run *run);
void names_free(struct names *names);

/* Makes the row's key, by which its row in another run is found. */
void names_key(
    const struct names *names, const struct table *table, size_t row, char out[NAME_MAX_BYTES]);
/* Makes the row's name for people: without the device, and without the numbers of threads. */
void names_label(const struct table *table, size_t row, char out[NAME_MAX_BYTES]);

/* --- tables.c, text.c: the result as tables of a report --- */

/* The version of the JSON. Grows if readers have to change; new tables and columns do not raise
 * it. */
enum { DIFF_VERSION = 1 };

/* Adds the tables "runs", "devices", "changed", "follows", "perhaps", "findings" and "metrics". */
void diff_tables(struct report *report, const struct comparison *of);

/* Printers for a report that diff_tables() filled. */
printer print_diff_text, print_diff_json;

#endif
