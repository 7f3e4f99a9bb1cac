/*
 * The record of one call: 64 bytes, written once by the thread that made the call, read once by the writer thread.
 *
 * Numbers only; every text is a number of shim/object/names.h, every object a reference. What the four values mean is told by the call's
 * row in the table (cs_call_info). How one gets into a ring is trace/record.h's.
 */
#ifndef CS_MATCH_RECORD_H
#define CS_MATCH_RECORD_H

#include "shim/calls/record.h"
#include "shim/object/pool.h"

#endif
