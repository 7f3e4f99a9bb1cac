/*
 * Handles: addresses of 16-byte slots in a range reserved once per kind.
 *
 * A handle is checked by its place in the range and by the slot being taken, so a stale or foreign
 * value is refused and never dereferenced. What a slot points to may outlive it: a destroyed stream
 * finishes its work without its handle.
 */
#include "tests/fakecuda/driver/fake.h"

#include <sys/mman.h>

struct slot {
    void *object; /* NULL: free */
    uint32_t next_free;
};

enum { SLOT_LIMIT = 1 << 22 };

void *fake_handle_new(struct fake_handles *handles, void *object)
{
    struct slot *slots;
    uint32_t index;

    if (!handles->base) {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        void *range = mmap(
            NULL, (size_t)SLOT_LIMIT * sizeof(struct slot), PROT_READ | PROT_WRITE, flags, -1, 0);
        if (range == MAP_FAILED) return NULL;
        handles->base = range;
        handles->used = 1; /* index 0 means none in `free` */
    }
    slots = (struct slot *)handles->base;
    if (handles->free) {
        index = handles->free;
        handles->free = slots[index].next_free;
    } else {
        if (handles->used == SLOT_LIMIT) return NULL;
        index = handles->used++;
    }
    slots[index].object = object;
    return &slots[index];
}

void *fake_handle_get(const struct fake_handles *handles, const void *handle)
{
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)handles->base;

    if (!handles->base || offset >= (uintptr_t)handles->used * sizeof(struct slot) ||
        offset % sizeof(struct slot))
        return NULL;
    return ((struct slot *)handles->base)[offset / sizeof(struct slot)].object;
}

void fake_handle_free(struct fake_handles *handles, void *handle)
{
    struct slot *slots = (struct slot *)handles->base;
    uint32_t index =
        (uint32_t)(((uintptr_t)handle - (uintptr_t)handles->base) / sizeof(struct slot));

    slots[index].object = NULL;
    slots[index].next_free = handles->free;
    handles->free = index;
}
