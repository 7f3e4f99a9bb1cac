/*
 * The frame of the file: header before the events, trailer behind them, and the sums that the trailer tells. The writer thread's alone.
 */
#ifndef CS_TRACE_TOTALS_H
#define CS_TRACE_TOTALS_H

#include "shim/calls/how.h"
#include "shim/gpu/work.h"
#include "shim/out/output.h"

/* Calls by what they do; and those that the host waits in, by what they wait for. */
enum cs_summed_call { CS_SUMMED_LAUNCH, CS_SUMMED_COPY, CS_SUMMED_SET, CS_SUMMED_GRAPH, CS_SUMMED_CALLS };
enum cs_blocking_call { CS_BLOCKED_BY_STREAM, CS_BLOCKED_BY_EVENT, CS_BLOCKED_BY_CONTEXT, CS_BLOCKED_BY_COPY, CS_BLOCKING_CALLS };

/* What is summed up over parts, and taken back where it is not written after all. Nothing but counts. */
struct cs_sums {
    cs_u64 recorded;       /* calls and annotations that stand in the file, or are gathered for it */
    cs_u64 calls;          /* those of them that the program made of the driver */
    cs_u64 lost;           /* calls that the file's cs_loss slices tell of */
    struct cs_call_sums {  /* of the calls, what metrics tell (metrics.h) */
        cs_u64 made[CS_SUMMED_CALLS];                                  /* that succeeded */
        cs_u64 on_default[2];                                          /* of those that put work on a GPU: on legacy, on per-thread default streams */
        cs_u64 copies[CS_WAY_COUNT], bytes[CS_WAY_COUNT];              /* by direction, where the call says it */
        cs_u64 blocked_ns[CS_BLOCKING_CALLS];
    } call;
    struct cs_gpu_totals {
        cs_u64 count[CS_GPU_KINDS]; /* slices of work, by kind */
        cs_u64 unmatched;           /* shown without the call that made it */
        cs_u64 no_times;            /* came without a start or an end */
        cs_u64 lost;                /* that the backend dropped */
        cs_u64 missed;              /* launches whose kernels have not come, though something behind them on their streams has */
    } gpu;
};

/* All of one file: a part has sums of its own. */
extern struct cs_totals {
    struct cs_sums sum;
    cs_u64 muted;          /* calls that a rule leaves out */
    cs_u64 arrows_between_parts; /* which would have begun in an earlier part */
    cs_u64 begin_ns, end_ns; /* of what was gathered since the last good flush */
    bool part_ends;        /* the trailer being made is the last one of a part that another follows */
} cs_totals;

void cs_totals_reset(void);
void cs_totals_gathered(cs_u64 begin_ns, cs_u64 end_ns); /* what the next flush brings into the file reaches from here to there, and further */
struct cs_verdict;
void cs_totals_verdict(struct cs_verdict *verdict, char *room, size_t size); /* of all parts, once the file has ended; the list of `no_memory_for` goes into `room` */
/* What the file says, all parts together, as of the last flush. Any thread. */
struct cs_totals_told {
    cs_u64 recorded, lost, works; /* works: pieces of GPU work that are shown */
};
struct cs_totals_told cs_totals_told(void);

/* Of all parts, as they are now; what the file had no more room for is lost too. */
struct cs_sums cs_totals_of_all(void);

/* For which the file has no more room: it is full. Calls and annotations; and pieces of GPU work. */
void cs_totals_cut(cs_u64 calls, cs_u64 begin_ns, cs_u64 end_ns);
void cs_totals_cut_work(cs_u64 works, cs_u64 begin_ns, cs_u64 end_ns);

/* Parts (trace/rotate.h). A new one begins with sums of its own; it can be undone while nothing has come to it. */
void cs_totals_part_begin(void);
void cs_totals_part_undo(void);
cs_u64 cs_totals_before(void); /* what the part before it recorded */
void cs_totals_came_after_all(bool untimed); /* some work that an earlier part counted: as without times, or as a launch without a kernel */

/* What stands above adds to the trailer, in at most so many bytes; NULL: nothing. Set before the writer starts. */
extern char *(*cs_totals_add)(char *at, size_t room);

char *cs_totals_header(char *at);
extern const struct cs_output_teller cs_totals_teller; /* for the file: the trailer, and what becomes of the sums */

#endif
