#include "shim/object/names.h"

#include <string.h>

#include "shim/base/lock.h"
#include "shim/base/memory.h"
#include "shim/base/rings.h"

enum { NAMES_MAX = 1 << 16, GUESTS_MAX = NAMES_MAX / 4 * 3, SLOTS = 2 * NAMES_MAX, CHUNK = 1 << 18, TEXT_MAX = 4096 };

static struct cs_lock lock = CS_LOCK_INIT(CS_RANK_NAMES, "names");

/* Written under the lock, read without it: a number is seen in `hashed`, or given out, after its text is in place. It comes with the first name, since most processes
 * that the library is loaded into never call CUDA. NULL: there is none. */
CS_READ_MOSTLY static struct table {
    const char *_Atomic text_of[NAMES_MAX];
    _Atomic cs_u32 hashed[SLOTS]; /* open addressing, name numbers */
} *_Atomic table;
static _Atomic cs_u32 count = 1;
static char *chunk;
static size_t chunk_left;

static cs_u64 hash_of(const char *text, size_t n)
{
    cs_u64 h = n, word;
    for (; n >= sizeof word; text += sizeof word, n -= sizeof word) {
        memcpy(&word, text, sizeof word);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, text, n);
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

/* A text as it is kept. Of one that is too long it is in two pieces: so it is looked up, and never put together on the program's stack. */
enum { MARK = 20 }; /* "#0123456789abcdef..." */
struct text {
    const char *at;
    size_t n;
    char mark[MARK + 1]; /* behind that; "": nothing was cut */
};

static const char *keep(const struct text *text)
{
    const size_t n = text->n + strlen(text->mark) + 1;
    if (chunk_left < n) {
        chunk = cs_memory_map(CHUNK, "names");
        chunk_left = chunk ? CHUNK : 0;
        if (!chunk) return NULL;
    }
    char *at = memcpy(chunk, text->at, text->n);
    strcpy(at + text->n, text->mark);
    chunk += n;
    chunk_left -= n;
    return at;
}

/* The number of a text that is kept, else 0; *slot is where it stands, or where it would. Without the lock a text that is being added may be missed. */
static cs_name find(const struct text *text, cs_u64 hash, cs_u64 *slot)
{
    const struct table *t = cs_load_acq(&table);
    if (CS_UNLIKELY(!t)) return 0;
    for (cs_u64 i = hash % SLOTS;; i = (i + 1) % SLOTS) {
        cs_name name = cs_load_acq(&t->hashed[i]);
        *slot = i;
        if (!name) return 0;
        const char *kept = cs_load(&t->text_of[name]);
        if (!strncmp(kept, text->at, text->n) && !strcmp(kept + text->n, text->mark)) return name;
    }
}

static cs_name add_locked(const struct text *text, cs_u64 hash, cs_u32 max)
{
    cs_u64 slot = 0;
    if (!cs_load(&table)) cs_store_rel(&table, cs_memory_map(sizeof(struct table), "names"));
    struct table *const t = cs_load(&table);
    if (!t) return 0;
    cs_name name = find(text, hash, &slot);
    if (name) return name;
    if (cs_load(&count) == 1) cs_store_rel(&t->text_of[1], "(more names than custream keeps)"), cs_store(&count, 2);
    name = cs_load(&count);
    const char *kept = name < max ? keep(text) : NULL;
    if (!kept) return 1;
    cs_store_rel(&count, name + 1); /* first: a fork may cut this short, and the child gives out no number twice */
    cs_store_rel(&t->text_of[name], kept);
    cs_rings_name(name, kept, strlen(kept));
    cs_store_rel(&t->hashed[slot], name);
    return name;
}

void cs_name_mark(char *end, const void *whole, size_t bytes)
{
    char mark[] = "#0123456789abcdef...";
    _Static_assert(sizeof mark == MARK + 1, "its length");
    const cs_u64 hash = hash_of(whole, bytes);
    for (int i = 0; i < 16; i++) mark[1 + i] = "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
    memcpy(end - (sizeof mark - 1), mark, sizeof mark - 1);
}

size_t cs_name_cut(char *to, size_t room, const char *text, size_t length)
{
    const size_t dots = 3, kept = room - 1;
    if (!room) return 0;
    if (length < room) {
        memcpy(to, text, length);
        to[length] = 0;
        return length;
    }
    memcpy(to, text, kept);
    if (room >= 64) cs_name_mark(to + kept, text, length);
    else if (kept >= dots) memset(to + kept - dots, '.', dots);
    to[kept] = 0;
    return kept;
}

static cs_name add(const char *given, cs_u32 max)
{
    if (!given || !*given) return 0;
    struct text whole = {.at = given, .n = strlen(given)};
    const struct text *const text = &whole;
    cs_u64 hash = hash_of(given, whole.n), slot;
    if (whole.n >= TEXT_MAX) {
        cs_name_mark(whole.mark + MARK, given, whole.n);
        whole.n = TEXT_MAX - 1 - MARK;
    }
    cs_name name = find(text, hash, &slot);
    if (name) return name;
    if (cs_load_acq(&count) >= max) return 1;
    if (cs_lock_interrupted(&lock)) return 0;
    cs_lock_take(&lock);
    name = add_locked(text, hash, max);
    cs_lock_drop(&lock);
    return name;
}

cs_name cs_name_add(const char *text) { return add(text, NAMES_MAX); }
cs_name cs_name_add_guest(const char *text) { return add(text, GUESTS_MAX); }

const char *cs_name_text(cs_name name)
{
    const struct table *t = cs_load_acq(&table);
    const char *text = t && name < NAMES_MAX ? cs_load_acq(&t->text_of[name]) : NULL;
    return text ? text : "";
}

void cs_names_keep(void)
{
    cs_lock_take(&lock);
    for (cs_name name = 1; name < cs_load(&count); name++) cs_rings_name(name, cs_name_text(name), strlen(cs_name_text(name)));
    cs_lock_drop(&lock);
}

void cs_names_after_fork_in_child(void)
{
    cs_lock_forget(&lock);
    chunk_left = 0; /* what is there may be half-written */
}
