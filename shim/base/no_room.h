/*
 * Losses by tables that were full. The trailer has a count of each, and what is said of the trace has words for it (base/verdict.h).
 *
 * Counts are the process's, all parts of its trace together. Any thread, no lock. Where a table is full, the answer is "not known", never another one.
 */
#ifndef CS_BASE_NO_ROOM_H
#define CS_BASE_NO_ROOM_H

#include "shim/base/compiler.h"

enum cs_no_room_for {
#define CS_NO_ROOM(constant, name, one, several) CS_NO_ROOM_FOR_##constant,
#include "shim/base/no_room.def"
#undef CS_NO_ROOM
    CS_NO_ROOM_KINDS
};

extern const struct cs_no_room_info {
    const char *name, *one, *several;
} cs_no_room_info[CS_NO_ROOM_KINDS];

void cs_no_room(enum cs_no_room_for what, cs_u64 count);
cs_u64 cs_no_room_count(enum cs_no_room_for what);
void cs_no_room_after_fork_in_child(void);

#endif
