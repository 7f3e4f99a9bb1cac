/* Memory of the report's own tables. */
#ifndef CS_MODEL_ROOM_H
#define CS_MODEL_ROOM_H

#include <stdlib.h>

#include "tools/custream/command.h"

/* An array of zeros, the caller's to free; out_of_memory() where there is none. */
static inline void *room_for(size_t count, size_t size)
{
    void *room = calloc(count ? count : 1, size);
    if (!room) out_of_memory();
    return room;
}

#endif
