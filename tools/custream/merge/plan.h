/* custream merge, inside: what plan.c finds out of the files before anything is written. */
#ifndef CS_MERGE_PLAN_H
#define CS_MERGE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/custream/merge/clocks.h"
#include "tools/custream/merge/out.h"
#include "tools/custream/merge/row.h"

/* Ids of arrows count up in these ranges (shim/trace/gpu.h); the last is for other tools. */
enum { ID_RANGES = 6 };

/* What has a pid in a file: the process itself, or a GPU. */
enum { GROUP_TEXT = 40 };
struct group {
    uint64_t key;                          /* value_hash() of its pid */
    char pid[GROUP_TEXT], tid[GROUP_TEXT]; /* as JSON; tid: of its first row */
    char *name, *labels;                   /* as JSON; NULL: the file has none */
    bool gpu, has_number;
    uint64_t number;  /* its pid */
    uint32_t ordinal; /* of a GPU */
    uint32_t merged;  /* pid in the merged trace */
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
    const char *path;  /* where it is read */
    const char *shown; /* what it is called */
    uint64_t device, inode;
    bool cut, ours, has_base, has_error, has_rank, has_totals, complete;
    int64_t base, first, last; /* first, last: of its times; first > last: it has none */
    const char *range;         /* a name that is looked for; NULL: none is */
    uint64_t skip_to;          /* json.h; 0: nothing is */
    int64_t range_from,
        range_until; /* of the newest range of that name; until < from: there is none */
    uint64_t error_ns, part, pid, rows;
    unsigned format; /* 0: it says none */
    uint64_t rank, world;
    struct yyjson_doc *kept[KEPTS];
    struct group *groups;
    size_t group_count, group_capacity;
    uint64_t ids[ID_RANGES]; /* one more than the highest, in each range */
    size_t process;
    size_t given; /* its place among the files that were given */
};

/* Why a file is left out; "": it is not. */
struct refusal {
    char why[300];
};

/* One file, or the parts of one process. */
struct process {
    size_t order; /* of its first file on the command line */
    int64_t base, first;
    uint64_t rank, pid, error_ns;
    uint64_t ids[ID_RANGES];   /* what is added */
    int64_t shift;             /* what is added to times */
    const struct clock *clock; /* and how far its clock is ahead is taken off; NULL: nothing is */
    char label[128];
    bool has_error;
    bool twin; /* another has the same label */
};

struct plan {
    struct file *files;       /* in the order in which they are written */
    size_t file_count, given; /* given: with those that are left out */
    struct process *processes;
    size_t process_count;
    bool align_start, ranked;
    struct clocks clocks; /* none: the wall clock serves */
    int64_t base;         /* of the merged trace */
    int64_t begin;        /* its first time */
    int64_t window[2];
    bool windowed;
    bool wall; /* the window is given by the wall clock; plan_make makes it one from `begin` on */
    bool
        alone; /* and is one process's: the result is a trace like the file's, cut. Its pids stay */
    uint64_t skip_to;  /* of a range: calls and work before this byte of the file are not its own */
    const char *range; /* the window is its newest range and the GPU work of that; NULL */
    bool idle;         /* once the rows were written: no call was made in it */
    char **shown;      /* what the files are called; NULL: by their paths */
    struct refusal *refusals; /* of each file that is given, which is left out then; NULL: nothing
                                 is merged then */
};

/* Reads all files and says how they fit together; false: the complaint was printed. */
bool plan_make(struct plan *plan, char **paths, size_t count);
void plan_free(struct plan *plan);

/* The time in the merged trace of one in a file of the process. Later ones are not earlier. */
int64_t time_merged(const struct process *process, int64_t ts);

const struct group *group_of(const struct file *file, struct yyjson_val *pid);
/* What stands below one of its members, by a JSON pointer; NULL: nothing. */
struct yyjson_val *kept_at(const struct file *file, enum kept kept, const char *path);
int id_range(uint64_t id);
/* The id in the merged trace; false: it fits no more. */
bool id_merged(const struct process *process, uint64_t id, uint64_t *merged);

/* header.c: what stands before the rows of files, and behind them. */
void header_put(struct rope *to, const struct plan *plan);
void trailer_put(struct rope *to, const struct plan *plan);
/* rows.c; false: the complaint was printed. */
bool rows_write(struct out *out, struct plan *plan);

/* merge.c, for other commands: traces cut to a time of the wall clock. `shown`: what the files are
 * called; `begin_ns`: of their first event. False: the complaint was printed, or all were refused.
 */
bool merge_between(const char *to, char **files, char **shown, size_t count, int64_t from_ns,
    int64_t until_ns, int64_t *begin_ns, struct refusal *refusals);

#endif
