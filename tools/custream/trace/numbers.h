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

/* Returns the place of the key's value, valid until the next call. A new key's value is `fresh`. */
uint32_t *numbers_at(struct numbers *numbers, uint64_t key, uint32_t fresh);
/* Returns the key's value; `otherwise`: the key is not in the map. */
uint32_t numbers_get(const struct numbers *numbers, uint64_t key, uint32_t otherwise);
void numbers_free(struct numbers *numbers);

#endif
