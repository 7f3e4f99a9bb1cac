/*
 * What a call is besides its kind: the column `how` of the call table, as bits. Asked of cs_call_info (calls.h).
 */
#ifndef CS_CALLS_HOW_H
#define CS_CALLS_HOW_H

/* Which way a copy goes, where the call itself says it; as CUPTI numbers it (CUpti_ActivityMemcpyKind). */
enum cs_way {
    CS_WAY_ANY, CS_WAY_HtoD, CS_WAY_DtoH, CS_WAY_HtoA, CS_WAY_AtoH, CS_WAY_AtoA, CS_WAY_AtoD, CS_WAY_DtoA, CS_WAY_DtoD, CS_WAY_HtoH, CS_WAY_PEER, CS_WAY_COUNT
};

enum cs_how {
    CS_HOW_WAY = 15,               /* of a copy: enum cs_way */
    CS_HOW_BLOCKS = 1 << 4,        /* of a copy: it may wait for itself, as the driver API's page on synchronisation says of its kind of memory */
    CS_HOW_PITCHED = 1 << 5,       /* of a set: rows with gaps between them */
    CS_HOW_LAUNCHES = 1 << 6,      /* of a graph: it runs */
    CS_HOW_UPDATES = 1 << 7,       /* likewise: its executable is changed */
    CS_HOW_RECORDS = 1 << 8,       /* of an event */
    CS_HOW_BEGINS = 1 << 9,        /* of a capture */
    CS_HOW_ENDS = 1 << 10,         /* likewise */
    CS_HOW_WIDE = 1 << 11,         /* it concerns a whole context */
    CS_HOW_PREFETCHES = 1 << 12,   /* it touches nothing that another operation depends on */
    CS_HOW_CREATES = 1 << 13,      /* a stream */
    CS_HOW_GREEN = 1 << 14,        /* it does so in a green context */
    CS_HOW_WAITS = 1 << 15,        /* of a memory operation: the stream may wait for a value; of what frees: the host, for work that may use the memory */
};

#endif
