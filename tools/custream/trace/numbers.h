/* Numbers by number: a map from 64 bits to an index. Open addressing; it only grows. */
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

/* The place of the key's value; a new one holds `fresh`. It holds until the next call. */
uint32_t *numbers_at(struct numbers *numbers, uint64_t key, uint32_t fresh);
/* Its value; `otherwise` if nobody has put one. */
uint32_t numbers_get(const struct numbers *numbers, uint64_t key, uint32_t otherwise);
void numbers_free(struct numbers *numbers);

#endif
