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
#ifndef CS_AUDIT_AUDIT_H
#define CS_AUDIT_AUDIT_H

#include "shim/object/thread.h"

/* Whether there is one. Any thread, once the options have been read. */
bool cs_audit_on(void);

/* Where in the program the call is made whose record comes next in this thread's ring, in which context, and whether it names the legacy stream by its
 * own handle. On the thread itself, right before the call's record; where the ring has no room nothing is told, and nothing counts as lost. Keeps
 * errno. */
void cs_audit_site(struct cs_thread *thread, const void *return_address, bool names_legacy);

/* From now on it is told what it reads on the writer's thread (trace/listener.h), if there is one. Once, before the writer starts. */
void cs_audit_listen(void);

#endif
