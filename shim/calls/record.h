/*
 * What a record is: 64 bytes that describe one call. match/record.h says how they come and go. The command reads them in the file of rings (base/rings.h).
 */
#ifndef CS_CALLS_RECORD_H
#define CS_CALLS_RECORD_H

#include "shim/base/ring.h"
#include "shim/calls/calls.h"

struct cs_record {
    cs_u64 begin, end;  /* ticks around the driver's call */
    cs_u16 call;        /* enum cs_call; with CS_CALL_MUTED it is not to be shown, and stands here for the sake of its work's times */
    int16_t result;     /* CUresult */
    cs_u32 stream;      /* cs_ref: where the work went; 0 none or unknown */
    cs_u64 mark;        /* of a call that puts work on a GPU: struct cs_mark's number; else undefined */
    cs_u64 value[CS_VALUES];
};
enum { CS_CALL_MUTED = 1 << 15 };
_Static_assert((int)CS_CALL_COUNT < (int)CS_CALL_MUTED, "the bit is free");
_Static_assert(sizeof(struct cs_record) == CS_SLOT, "a record is one slot of the ring, one cache line");

#endif
