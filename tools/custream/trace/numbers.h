/* A map from 64-bit keys to 32-bit values, with open addressing. No key is ever removed. */
#ifndef CS_REPORT_NUMBERS_H
#define CS_REPORT_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

struct numbers {
    struct number_slot {
        uint64_t key;
        uint32_t value, used;
    } *slots;
    size_t mask, count; /* mask + 1 slots, or none */
};

/* Returns the slot of the key, or the empty slot where it would stand. */
static inline struct number_slot *number_slot(const struct numbers *numbers, uint64_t key)
{
    /* Fibonacci hashing: the upper half of the product depends on all bits of the key. */
    uint64_t h = key * 0x9e3779b97f4a7c15;
    for (size_t i = h >> 32 ^ h;; i++) {
        struct number_slot *slot = &numbers->slots[i & numbers->mask];
        if (!slot->used || slot->key == key) return slot;
    }
}

/* Returns the place of the key's value, valid until the next call. A new key's value is `fresh`. */
uint32_t *numbers_at(struct numbers *numbers, uint64_t key, uint32_t fresh);
/* Returns the key's value; `otherwise`: the key is not in the map. */
static inline uint32_t numbers_get(const struct numbers *numbers, uint64_t key, uint32_t otherwise)
{
    if (!numbers->slots) return otherwise;
    const struct number_slot *slot = number_slot(numbers, key);
    return slot->used ? slot->value : otherwise;
}
void numbers_free(struct numbers *numbers);

#endif
