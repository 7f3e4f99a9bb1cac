/*
 * What a record says, as the audit sees it: steps of the model.
 */
#ifndef CS_AUDIT_AUDIT_READ_H
#define CS_AUDIT_AUDIT_READ_H

#include "shim/object/stream.h"
#include "shim/audit/audit_model.h"
#include "shim/trace/record.h"

/* A query whose answer was "not ready". */
struct cs_audit_denied {
    cs_u64 what; /* the first of its values: an event */
    cs_u64 begin_ns;
    cs_ref stream;
    cs_u16 call;
};

/* What is kept of a thread besides (audit.c). */
struct cs_audit_thread {
    cs_u64 site;         /* where its next record's call was made (audit.h); 0 not told */
    bool site_legacy;    /* that call names the legacy stream by its own handle */
    cs_ref site_context; /* the context that was current then, or at an earlier call */
    struct cs_audit_denied denied; /* the last one that made a step, if the thread has made no other call since */
    cs_u64 quiet;        /* ticks: all calls that it began before are recorded, and their records read */
};

void cs_audit_read_begin(void);

/* The steps of a call: none, one, or two for a copy that returns when it is done. Their op has what the record says; its work is the caller's to
 * fill. */
int cs_audit_read(const struct cs_thread *thread, const struct cs_audit_thread *at, const struct cs_record *record, const struct cs_stream *stream,
                  struct cs_audit_step step[2]);

#endif
