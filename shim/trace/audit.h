/*
 * The audit of the default stream (CUSTREAM_DEFAULT_STREAM=audit): what would per-thread default streams change in this program?
 *
 * Work on the legacy default stream waits for what was enqueued before on all blocking streams of its context, and they wait for it. Per-thread
 * default streams drop those waits. The audit changes nothing: it reads the records of the rings, on the writer's thread, and tells which of these
 * waits nothing else in the program stands for (docs/audit.md).
 *
 *     audit_site.c     on the application's threads: where in the program each call is made, as a record of its own before the call's
 *     audit.c          records become steps, in the order of time over all threads
 *     audit_read.c     what a record says: what it does, to which memory, on which stream
 *     audit_lane.c     streams, and where default streams would go
 *     audit_model.c    what orders what, as it is and as it would be
 *     audit_event.c    what events stand for
 *     audit_pair.c     pairs of operations whose order would be lost
 *     audit_wait.c     how long one stood waiting for the other, and the timeline's slices
 *     audit_report.c   the trailer and the lines at the process's end
 */
#ifndef CS_TRACE_AUDIT_H
#define CS_TRACE_AUDIT_H

#include "shim/object/stream.h"
#include "shim/trace/record.h"

/* Whether there is one. Any thread, once the options have been read. */
bool cs_audit_on(void);

/* Where in the program the call is made whose record comes next in this thread's ring, in which context, and whether it names the legacy stream by its
 * own handle. On the thread itself, right before the call's record; where the ring has no room nothing is told, and nothing counts as lost. Keeps
 * errno. */
void cs_audit_site(struct cs_thread *thread, const void *return_address, bool names_legacy);

/* --- the writer's --- */

void cs_audit_begin(void); /* a new process's trace */

/* A record of a ring, once each, in its thread's order: a place, a call (`work`: the id of its struct cs_op, 0 none), calls that were lost. */
void cs_audit_place(struct cs_thread *thread, const struct cs_record *record);
void cs_audit_call(struct cs_thread *thread, const struct cs_record *record, struct cs_stream *stream, cs_u64 work, cs_u64 begin_ns);
void cs_audit_lost(struct cs_thread *thread, cs_u64 count);

void cs_audit_round_begins(void); /* before the rings are read */
void cs_audit_round(void);        /* they have been, and what came of GPU times is written */
bool cs_audit_works(void); /* there is memory for it */
void cs_audit_end(void);   /* nothing comes any more: the rest, and the lines on stderr */

/* ,"defaultStreamAudit":{...} for the trailer, in at most so many bytes (1 KiB at least); nothing where there is no audit. */
char *cs_audit_put(char *at, size_t room);

#endif
