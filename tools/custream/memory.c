#include "tools/custream/command.h"

#include <stdio.h>
#include <stdlib.h>

void out_of_memory(void)
{
    fputs("custream: out of memory\n", stderr);
    exit(STATUS_UNUSABLE);
}

void *array_room(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) return array;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    void *moved = reallocarray(array, wanted, size);
    if (!moved) out_of_memory();
    *capacity = wanted;
    return moved;
}

void *array_zeros(size_t count, size_t size)
{
    void *room = calloc(count ? count : 1, size);
    if (!room) out_of_memory();
    return room;
}
