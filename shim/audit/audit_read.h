/*
 * What a record says, as the audit sees it: steps of the model.
 */
#ifndef CS_AUDIT_AUDIT_READ_H
#define CS_AUDIT_AUDIT_READ_H

#include "shim/object/stream.h"
#include "shim/audit/audit_model.h"
#include "shim/trace/record.h"

void cs_audit_read_begin(void);

/* The steps of a call: none, one, or two for a copy that returns when it is done. Their op has what the record says; its work is the caller's to
 * fill. */
int cs_audit_read(const struct cs_thread *thread, const struct cs_record *record, const struct cs_stream *stream, struct cs_audit_step step[2]);

#endif
