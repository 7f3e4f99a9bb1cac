#include "shim/base/no_room.h"

const struct cs_no_room_info cs_no_room_info[CS_NO_ROOM_KINDS] = {
#define CS_NO_ROOM(constant, name, one, several) {#name, one, several},
#include "shim/base/no_room.def"
#undef CS_NO_ROOM
};

static _Atomic cs_u64 counts[CS_NO_ROOM_KINDS];

void cs_no_room(enum cs_no_room_for what, cs_u64 count) { cs_add(&counts[what], count); }
cs_u64 cs_no_room_count(enum cs_no_room_for what) { return cs_load(&counts[what]); }

void cs_no_room_after_fork_in_child(void)
{
    for (int i = 0; i < CS_NO_ROOM_KINDS; i++) cs_store(&counts[i], 0);
}
