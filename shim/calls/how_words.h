/* The words of the call table's column `how`, as its rows write them: for includers of calls.def that care about it. */
#ifndef CS_CALLS_HOW_WORDS_H
#define CS_CALLS_HOW_WORDS_H

#include "shim/calls/how.h"

enum {
    PLAIN = 0, HtoD = CS_WAY_HtoD, DtoH = CS_WAY_DtoH, HtoA = CS_WAY_HtoA, AtoH = CS_WAY_AtoH, AtoA = CS_WAY_AtoA, AtoD = CS_WAY_AtoD, DtoA = CS_WAY_DtoA,
    DtoD = CS_WAY_DtoD, PEER = CS_WAY_PEER, BLOCKS = CS_HOW_BLOCKS, PITCHED = CS_HOW_PITCHED, LAUNCHES = CS_HOW_LAUNCHES, UPDATES = CS_HOW_UPDATES,
    RECORDS = CS_HOW_RECORDS, BEGINS = CS_HOW_BEGINS, ENDS = CS_HOW_ENDS, WIDE = CS_HOW_WIDE, PREFETCHES = CS_HOW_PREFETCHES, CREATES = CS_HOW_CREATES,
    GREEN = CS_HOW_GREEN, WAITS = CS_HOW_WAITS
};

#endif
