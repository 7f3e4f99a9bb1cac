#include "tools/custream/trace/texts.h"

#include "tools/custream/command.h"

enum { BLOCK = 64 * 1024 };

/* Hashes eight bytes at a time, as names are long. The constants are those of MurmurHash64A (public
 * domain). */
static uint64_t hash(const char *at, size_t length)
{
    uint64_t h = length * 0xc6a4a7935bd1e995, word;
    for (; length >= 8; at += 8, length -= 8) {
        memcpy(&word, at, 8);
        word *= 0xc6a4a7935bd1e995;
        word ^= word >> 47;
        h = (h ^ word) * 0xc6a4a7935bd1e995;
    }
    h = (h ^ text_few(at, length)) * 0xc6a4a7935bd1e995;
    return h ^ h >> 47;
}

static uint32_t *slot_of(const struct texts *texts, const char *at, size_t length)
{
    for (uint32_t i = (uint32_t)hash(at, length);; i++) {
        uint32_t *slot = &texts->slots[i & texts->slot_mask];
        if (!*slot) return slot;
        const char *kept = texts->by_number[*slot];
        if (text_kept_length(kept) == length && !memcmp(kept, at, length)) return slot;
    }
}

static void slots_make(struct texts *texts, uint32_t count)
{
    free(texts->slots);
    texts->slots = calloc(count, sizeof *texts->slots);
    if (!texts->slots) out_of_memory();
    texts->slot_mask = count - 1;
    for (uint32_t n = 1; n < texts->count; n++)
        *slot_of(texts, texts->by_number[n], text_kept_length(texts->by_number[n])) = n;
}

static char *room(struct texts *texts, size_t bytes)
{
    if (bytes > texts->block_left) {
        const size_t size = bytes > BLOCK ? bytes : BLOCK;
        texts->blocks = array_room(
            texts->blocks, texts->block_count, &texts->block_capacity, sizeof *texts->blocks);
        if (!(texts->blocks[texts->block_count] = malloc(size))) out_of_memory();
        texts->block_count++;
        texts->block_next = texts->blocks[texts->block_count - 1];
        texts->block_left = size;
    }
    char *at = texts->block_next;
    texts->block_next += bytes;
    texts->block_left -= bytes;
    return at;
}

static const char *keep(struct texts *texts, const char *at, size_t length)
{
    const uint32_t said = (uint32_t)length;
    char *kept = room(texts, sizeof said + length + 1) + sizeof said;
    memcpy(kept - sizeof said, &said, sizeof said);
    memcpy(kept, at, length);
    kept[length] = 0;
    return kept;
}

void texts_init(struct texts *texts)
{
    *texts = (struct texts){0};
    size_t capacity = 0;
    texts->by_number = array_room(NULL, 0, &capacity, sizeof *texts->by_number);
    texts->capacity = (uint32_t)capacity;
    texts->by_number[0] = "";
    texts->count = 1;
    slots_make(texts, 1024);
}

text text_number(struct texts *texts, const char *at, size_t length)
{
    uint32_t *slot = slot_of(texts, at, length);
    if (*slot) return *slot;
    if (texts->count > texts->slot_mask / 2) {
        slots_make(texts, (texts->slot_mask + 1) * 2);
        slot = slot_of(texts, at, length);
    }
    size_t capacity = texts->capacity;
    texts->by_number =
        array_room(texts->by_number, texts->count, &capacity, sizeof *texts->by_number);
    texts->capacity = (uint32_t)capacity;
    texts->by_number[texts->count] = keep(texts, at, length);
    return *slot = texts->count++;
}

text text_find(const struct texts *texts, const char *word)
{
    return *slot_of(texts, word, strlen(word));
}

void texts_free(struct texts *texts)
{
    for (size_t i = 0; i < texts->block_count; i++) free(texts->blocks[i]);
    free(texts->blocks);
    free(texts->by_number);
    free(texts->slots);
    *texts = (struct texts){0};
}
