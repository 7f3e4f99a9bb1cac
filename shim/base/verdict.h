/*
 * What a trace holds, and what it lacks, in words: for the closing line and for `custream check`. The words stand here alone.
 *
 * No allocation, any thread. Each function appends to `text` and returns the new length. What does not fit is cut.
 */
#ifndef CS_BASE_VERDICT_H
#define CS_BASE_VERDICT_H

#include "shim/base/compiler.h"
#include "shim/base/no_room.h"

struct cs_verdict {
    cs_u64 calls, operations;      /* driver calls, and pieces of GPU work: in all parts */
    cs_u64 lost_calls, lost_work;  /* likewise; those of not_written are among them */
    bool complete;                 /* the file has everything up to the end of its process */
    const char *ended;             /* why the file ended before the process; NULL: it did not */
    const char *ended_by;          /* what ended the process before the file was complete, "SIGTERM"; NULL: nothing did, or nobody knows */
    bool all_calls;                /* recovered, with all calls that had returned: from the rings of the process */
    bool recovered;                /* the file ended inside an event; `custream recover` or the watcher has given it an end */
    cs_u64 calls_not_written, work_not_written; /* of a file that ended */
    const char *no_memory_for;     /* a list with ", " between; NULL: there was memory */
    const char *cause;             /* why it is incomplete, if nothing above says it; NULL: not known */
    bool no_gpu_times;
    cs_u64 sample;                 /* one in so many calls was timed; 0: all were, or none */
    cs_u64 untimed;                /* launches without a kernel, and work without a start or an end */
    cs_u64 without_call;           /* pieces of work without the call that made them: it was lost, or forgotten */
    cs_u64 no_room[CS_NO_ROOM_KINDS]; /* what is not there since a table was full */
    const char *gpu_cause;         /* why GPU times are missing, all or some; NULL: none are, or nobody wanted any */
};

/* As snprintf. */
size_t cs_verdict_put(char *text, size_t size, size_t n, const char *format, ...) CS_PRINTF(4, 5);

/* There is work without its call, or a table was full: the last words say how much is missing. */
bool cs_verdict_has_gaps(const struct cs_verdict *v);

/* "ok", or why the file does not have all of it. */
size_t cs_verdict_state(char *text, size_t size, size_t n, const struct cs_verdict *v);

/* "lost records 7, lost GPU work 3, no GPU times: CAUSE": the first always, the others where there is something to say. */
size_t cs_verdict_losses(char *text, size_t size, size_t n, const struct cs_verdict *v);

/* "163 calls, 58 GPU operations, nothing lost" */
size_t cs_verdict_sentence(char *text, size_t size, size_t n, const struct cs_verdict *v);

/* A file's name as a shell takes it. */
size_t cs_verdict_file(char *text, size_t size, size_t n, const char *path);

/* "Next: custream report FILE; custream open FILE": two commands, as they are typed. */
size_t cs_verdict_advice(char *text, size_t size, size_t n, const char *path);

/* The file's name as somebody in `folder` types it. */
const char *cs_path_from(const char *path, const char *folder);

#endif
