/* custream merge, inside: what plan.c learns from the files before anything is written. */
#ifndef CS_MERGE_PLAN_H
#define CS_MERGE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/custream/merge/clocks.h"
#include "tools/custream/merge/out.h"
#include "tools/custream/merge/row.h"

/* Ids of arrows count up in ranges (shim/trace/gpu.h). An id that is a text becomes a number in the
 * last range. */
enum { ID_RANGES = 6 };

enum { GROUP_TEXT = 40 };
/* All rows of a file that have the same pid: the process itself, or a GPU. */
struct group {
    uint64_t key;                          /* value_hash() of its pid */
    char pid[GROUP_TEXT], tid[GROUP_TEXT]; /* as JSON; tid: of the group's first row */
    char *name, *labels;                   /* as JSON; NULL: the file has none */
    bool gpu, has_number;
    uint64_t number;  /* the pid, if has_number */
    uint32_t ordinal; /* the GPU's ordinal, if `gpu` */
    uint32_t merged;  /* the pid in the merged trace */
    bool first;       /* no group before it has this `merged` */
};

/* Members of a file that the merged trace keeps as they are. */
enum kept {
    KEPT_INFO,
    KEPT_METADATA,
    KEPT_TOTALS,
    KEPT_DEVICES,
    KEPT_AUDIT,
    KEPT_NEVER_DESTROYED,
    KEPTS
};
extern const char *const kept_names[KEPTS];

struct file {
    const char *path;  /* where the file is read */
    const char *shown; /* the file's name in messages and in the merged trace */
    uint64_t device, inode;
    bool cut, ours, has_base, has_error, has_rank, has_totals, complete;
    /* first, last: the lowest and the highest time; first > last: no row has a time */
    int64_t base, first, last;
    const char *range; /* the name of the range to look for; NULL: none */
    uint64_t skip_to;  /* the byte from which rows count (json.h); 0: all do */
    /* the times of the newest range of that name; until < from: the file has no such range */
    bool range_crosses; /* a range of that name is an async span */
    int64_t range_from, range_until;
    uint64_t error_ns, part, pid, rows;
    unsigned format; /* 0: the file names none */
    uint64_t rank, world;
    struct yyjson_doc *kept[KEPTS];
    struct group *groups;
    size_t group_count, group_capacity;
    /* for each range of ids (ID_RANGES): the file's highest id in it, counted from that range's
     * first id, + 1 */
    uint64_t ids[ID_RANGES];
    size_t process; /* the place in plan->processes */
    size_t given;   /* the place among the files that plan_make() was given */
};

/* The reason to leave a file out; "": the file stays. */
struct refusal {
    char why[300];
};

/* A process: one file, or several parts. */
struct process {
    size_t order; /* the place of the process's first file, as the files were given */
    int64_t base, first;
    uint64_t rank, pid, error_ns;
    uint64_t ids[ID_RANGES]; /* what to add to an id of each range */
    int64_t shift;           /* what to add to a time */
    /* clock_ahead() of this clock is subtracted from each time; NULL: nothing is */
    const struct clock *clock;
    char label[128];
    bool has_error;
    bool twin; /* another process has the same label */
};

struct plan {
    struct file *files;       /* in the order of the merged trace */
    size_t file_count, given; /* given: all files, with those that are left out */
    struct process *processes;
    size_t process_count;
    bool align_start, ranked;
    struct clocks clocks; /* for --clocks; empty: times go by the wall clock */
    int64_t base;         /* the merged trace's baseTimeNanoseconds */
    int64_t begin;        /* the merged trace's first time */
    int64_t window[2];    /* in ns from `begin` on, once plan_make() has returned */
    bool windowed;
    bool wall; /* the caller gives the window by the wall clock; plan_make() converts it */
    /* `wall` or `range` is set, and all files are custream's and of one process: pids stay */
    bool alone;
    uint64_t skip_to; /* with `range`: rows before this byte of the file are not the range's */
    /* the name of a range: the window is the file's newest range of that name, with its GPU work;
     * NULL: no range was asked for */
    const char *range;
    bool idle;    /* set by rows_write(): no call of CUDA was made in the range */
    char **shown; /* the files' names (struct file); NULL: their paths */
    /* for each given file: the reason if it is left out; NULL: one bad file ends the merge */
    struct refusal *refusals;
};

/* Reads all files and decides how they fit together. Returns false after a complaint. */
bool plan_make(struct plan *plan, char **paths, size_t count);
void plan_free(struct plan *plan);

/* Converts a time of the process's files to the merged trace's. The order of two times stays. */
int64_t time_merged(const struct process *process, int64_t ts);

/* Returns the group of that pid; NULL: the file has none. */
const struct group *group_of(const struct file *file, struct yyjson_val *pid);
/* Returns the value at a JSON pointer below a kept member of the file; NULL: there is no such
 * value. */
struct yyjson_val *kept_at(const struct file *file, enum kept kept, const char *path);
/* Converts an id to the merged trace's. Returns false if its range has no more room. */
bool id_merged(const struct process *process, uint64_t id, uint64_t *merged);

/* header.c: puts the text before the files' rows, and the text behind them. */
void header_put(struct rope *to, const struct plan *plan);
void trailer_put(struct rope *to, const struct plan *plan);
/* rows.c. Returns false after it has printed a complaint. */
bool rows_write(struct out *out, struct plan *plan);

/* merge.c, for other commands: merges traces and cuts them to a time of the wall clock. `shown`:
 * the files' names in messages; `begin_ns`: gets the wall-clock time of their first event. Returns
 * false after it has printed a complaint, or if all files were refused. */
bool merge_between(const char *to, char **files, char **shown, size_t count, int64_t from_ns,
    int64_t until_ns, int64_t *begin_ns, struct refusal *refusals);

#endif
