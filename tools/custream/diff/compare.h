/* Two sides of one or more runs each, row by row, and whether the difference counts. Nothing of a
 * run is needed once it was added. */
#ifndef CS_DIFF_COMPARE_H
#define CS_DIFF_COMPARE_H

#include "tools/custream/report/report.h"
#include "tools/custream/trace/numbers.h"

enum side { BEFORE, AFTER, SIDES };
extern const char *const side_name[SIDES];

/* Where a difference is told. */
enum list {
    LIST_CHANGED, /* what the GPU's time is made of: work by name, idle time by cause */
    LIST_HOST,    /* parts of the idle time that is the host's */
    LIST_FOLLOWS, /* the same time, seen otherwise */
    LIST_FINDINGS,
    LIST_METRICS,
};

/* A table that is compared. One row of subjects[] each. */
struct subject {
    const char *table, *what; /* what: one of its rows, in a word */
    enum list list;
    bool steady;               /* times on the GPU alone */
    const char *label;         /* the column that people read; NULL: those that name the row */
    const char *value, *times; /* its columns */
    bool mean;                 /* `value` is the mean of `times` */
    bool gpu;                  /* its rows tell of GPU work */
};
extern const struct subject subjects[];
extern const size_t subject_count;

/* Numbers of a side, one a run that has it. The side's other runs count as 0. */
struct numbers_of_runs {
    double *values; /* in order of size, once comparison_end() has sorted them */
    size_t count, capacity;
};

/* A row of the reports, of one key. */
struct entry {
    const struct subject *subject;
    double device;                                 /* NAN: it belongs to none */
    text label;                                    /* texts of comparison->texts */
    text title, evidence, remedy, page, id, place; /* of a finding */
    text unit;                                     /* of a metric */
    struct {
        struct numbers_of_runs values;
        double total, times; /* over all runs */
    } sides[SIDES];
    double now, now_times; /* in the run that is being added */
    bool is_now;
};

/* One run, as the table "runs" shows it. */
struct ran {
    enum side side;
    unsigned files;
    text program, whole;
    double pid, wall; /* ns */
};

/* A GPU's spans, and how long it was busy in each run. */
struct device_times {
    double ordinal;
    text name;
    struct device_run {
        double span, busy;
    } *sides[SIDES]; /* one a run; comparison_end() sorts them */
    size_t counts[SIDES], capacities[SIDES];
};

struct comparison {
    struct texts texts;
    struct numbers index; /* entries by the text that is their key */
    struct entry *entries;
    size_t entry_count, entry_capacity;
    struct ran *runs;
    size_t run_count, run_capacity;
    struct device_times *devices;
    size_t device_count, device_capacity;
    struct report reports[SIDES]; /* by comparison_end(): what conditions read */
    unsigned side_runs[SIDES];
    bool no_times; /* a run's GPU work was not recorded */
    double span;   /* by comparison_end(): the longest of a GPU, or of a run without any */
};

void comparison_init(struct comparison *comparison);
void comparison_add(
    struct comparison *comparison, enum side side, struct made *made, unsigned files);
void comparison_free(struct comparison *comparison);

/* After the last run. */
void comparison_end(struct comparison *comparison);

/* The middle one of the side's runs, or the lower middle one. NAN: a run does not know it. */
double entry_value(const struct comparison *comparison, const struct entry *entry, enum side side);
double entry_lowest(const struct comparison *comparison, const struct entry *entry, enum side side);
double entry_highest(const struct entry *entry, enum side side);
double entry_change(const struct comparison *comparison,
    const struct entry *entry); /* of the value, from BEFORE to AFTER */
double entry_times(const struct comparison *comparison, const struct entry *entry,
    enum side side); /* the mean over the side's runs */
struct device_run device_middle(
    const struct comparison *comparison, const struct device_times *device, enum side side);

/* Whether a row differs by more than runs of one program do. docs/diff.md has the rule. */
enum verdict {
    VERDICT_SAME,
    VERDICT_PERHAPS, /* too few runs to tell */
    VERDICT_CHANGED,
};
enum verdict entry_verdict(const struct comparison *comparison, const struct entry *entry);

#endif
