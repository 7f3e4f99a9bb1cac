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
    array_add(texts->by_number, texts->count, texts->capacity, "");
}

static bool is_kept(const struct texts *texts, text number, const char *at, size_t length)
{
    const char *kept = texts->by_number[number];
    return text_kept_length(kept) == length && !memcmp(kept, at, length);
}

text text_number(struct texts *texts, const char *at, size_t length)
{
    for (uint64_t key = hash(at, length);; key++) {
        text *number = numbers_at(&texts->numbers, key, 0);
        if (*number && !is_kept(texts, *number, at, length)) continue;
        if (*number) return *number;
        *number = (text)texts->count;
        array_add(texts->by_number, texts->count, texts->capacity, keep(texts, at, length));
        return *number;
    }
}

text text_find(const struct texts *texts, const char *word)
{
    const size_t length = strlen(word);
    for (uint64_t key = hash(word, length);; key++) {
        const text number = numbers_get(&texts->numbers, key, 0);
        if (!number || is_kept(texts, number, word, length)) return number;
    }
}

void texts_free(struct texts *texts)
{
    for (size_t i = 0; i < texts->block_count; i++) free(texts->blocks[i]);
    free(texts->blocks);
    free(texts->by_number);
    numbers_free(&texts->numbers);
    *texts = (struct texts){0};
}
