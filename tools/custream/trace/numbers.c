#include "tools/custream/trace/numbers.h"

#include "tools/custream/command.h"

static void grow(struct numbers *numbers)
{
    struct numbers larger = {
        .mask = numbers->slots ? numbers->mask * 2 + 1 : 63, .count = numbers->count};
    if (!(larger.slots = calloc(larger.mask + 1, sizeof *larger.slots))) out_of_memory();
    for (size_t i = 0; numbers->slots && i <= numbers->mask; i++)
        if (numbers->slots[i].used)
            *number_slot(&larger, numbers->slots[i].key) = numbers->slots[i];
    free(numbers->slots);
    *numbers = larger;
}

uint32_t *numbers_at(struct numbers *numbers, uint64_t key, uint32_t fresh)
{
    if (!numbers->slots || numbers->count > numbers->mask / 2) grow(numbers);
    struct number_slot *slot = number_slot(numbers, key);
    if (!slot->used) {
        *slot = (struct number_slot){key, fresh, 1};
        numbers->count++;
    }
    return &slot->value;
}

void numbers_free(struct numbers *numbers)
{
    free(numbers->slots);
    *numbers = (struct numbers){0};
}
