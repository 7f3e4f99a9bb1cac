#include "tools/custream/trace/numbers.h"

#include "tools/custream/command.h"

static struct number_slot *slot_of(const struct numbers *numbers, uint64_t key)
{
    /* Fibonacci hashing: the upper half of the product depends on all bits of the key. */
    uint64_t h = key * 0x9e3779b97f4a7c15;
    for (size_t i = h >> 32 ^ h;; i++) {
        struct number_slot *slot = &numbers->slots[i & numbers->mask];
        if (!slot->used || slot->key == key) return slot;
    }
}

static void grow(struct numbers *numbers)
{
    struct numbers larger = {
        .mask = numbers->slots ? numbers->mask * 2 + 1 : 63, .count = numbers->count};
    if (!(larger.slots = calloc(larger.mask + 1, sizeof *larger.slots))) out_of_memory();
    for (size_t i = 0; numbers->slots && i <= numbers->mask; i++)
        if (numbers->slots[i].used) *slot_of(&larger, numbers->slots[i].key) = numbers->slots[i];
    free(numbers->slots);
    *numbers = larger;
}

uint32_t *numbers_at(struct numbers *numbers, uint64_t key, uint32_t fresh)
{
    if (!numbers->slots || numbers->count > numbers->mask / 2) grow(numbers);
    struct number_slot *slot = slot_of(numbers, key);
    if (!slot->used) {
        *slot = (struct number_slot){key, fresh, 1};
        numbers->count++;
    }
    return &slot->value;
}

uint32_t numbers_get(const struct numbers *numbers, uint64_t key, uint32_t otherwise)
{
    if (!numbers->slots) return otherwise;
    const struct number_slot *slot = slot_of(numbers, key);
    return slot->used ? slot->value : otherwise;
}

void numbers_free(struct numbers *numbers)
{
    free(numbers->slots);
    *numbers = (struct numbers){0};
}
