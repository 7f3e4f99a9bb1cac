#include "shim/object/names.h"

#include <string.h>

#include "shim/base/lock.h"
#include "shim/base/memory.h"

enum { NAMES_MAX = 1 << 16, CHUNK = 1 << 18, TEXT_MAX = 4096 };

static struct cs_lock lock = CS_LOCK_INIT(CS_RANK_NAMES, "names");

/* Both arrays are written under the lock; text_of is read without it (a number is given out after its text is in place). */
static const char *_Atomic *_Atomic text_of;
static cs_u32 *hashed; /* open addressing, name numbers */
static cs_u32 count = 1;
static char *chunk;
static size_t chunk_left;

static cs_u64 hash_of(const char *text)
{
    cs_u64 h = 0xcbf29ce484222325u;
    while (*text) h = (h ^ (unsigned char)*text++) * 0x100000001b3u;
    return h ^ h >> 29;
}

static bool ready(void)
{
    if (!cs_load(&text_of)) cs_store_rel(&text_of, cs_memory_map(NAMES_MAX * sizeof *text_of));
    if (!hashed) hashed = cs_memory_map(2 * NAMES_MAX * sizeof *hashed);
    return cs_load(&text_of) && hashed;
}

static const char *keep(const char *text, size_t n)
{
    if (chunk_left < n + 1) {
        chunk = cs_memory_map(CHUNK);
        chunk_left = chunk ? CHUNK : 0;
        if (!chunk) return NULL;
    }
    char *at = memcpy(chunk, text, n);
    at[n] = 0;
    chunk += n + 1;
    chunk_left -= n + 1;
    return at;
}

static cs_name add_locked(const char *text)
{
    char cut[TEXT_MAX];
    size_t n = strnlen(text, TEXT_MAX - 1);
    memcpy(cut, text, n);
    cut[n] = 0;
    if (!ready()) return 0;
    cs_u64 i = hash_of(cut) % (2 * NAMES_MAX);
    for (; hashed[i]; i = (i + 1) % (2 * NAMES_MAX))
        if (!strcmp(cs_load(&text_of[hashed[i]]), cut)) return hashed[i];
    if (count == 1) cs_store_rel(&text_of[count], "(more names than custream keeps)"), count++;
    if (count == NAMES_MAX) return 1;
    const char *kept = keep(cut, n);
    if (!kept) return 1;
    cs_store_rel(&text_of[count], kept);
    hashed[i] = count;
    return count++;
}

cs_name cs_name_add(const char *text)
{
    if (!text || !*text) return 0;
    cs_lock_take(&lock);
    cs_name name = add_locked(text);
    cs_lock_drop(&lock);
    return name;
}

const char *cs_name_text(cs_name name)
{
    const char *_Atomic *texts = cs_load_acq(&text_of);
    const char *text = texts && name < NAMES_MAX ? cs_load_acq(&texts[name]) : NULL;
    return text ? text : "";
}

void cs_names_before_fork(void) { cs_lock_take(&lock); }
void cs_names_after_fork(void) { cs_lock_drop(&lock); }
