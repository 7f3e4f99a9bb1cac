/* Objects: their memory, references, and finding them by handle. */
#include "shim/api/object.h"

#include <stdlib.h>
#include <string.h>

enum { KINDS = 3, BLOCK = 64, BUCKETS = 1 << 12, CACHED = 256 };

struct cs_lock api_lock = CS_LOCK_INIT(CS_RANK_API, "api");

static const enum api_mark marks[KINDS] = {API_STREAM, API_EVENT, API_GRAPH};

/* By kind; all guarded by the lock. Memory that was freed goes to the end of the line, so that a stale reference meets a freed object, not a new one. */
static struct kind {
    size_t size; /* known from the first on */
    struct api_object *free_first, *free_last;
    size_t free_count;
    struct api_object *first, *last; /* all that are listed, by id */
    cs_u64 ever[API_DEVICES + 1], alive[API_DEVICES + 1][API_SORTS]; /* by device, those without one at the end */
} kinds[KINDS];
static struct api_object *buckets[BUCKETS];
static cs_u64 last_id;

static struct kind *kind_of(enum api_mark mark)
{
    for (int i = 0; i < KINDS; i++)
        if (marks[i] == mark) return &kinds[i];
    return NULL;
}

static void put_free(struct kind *kind, struct api_object *object)
{
    object->next = NULL;
    if (kind->free_last) kind->free_last->next = object;
    else kind->free_first = object;
    kind->free_last = object;
    kind->free_count++;
}

/* A block of objects, never given back: what somebody still points at stays readable. */
static void grow(struct kind *kind)
{
    size_t size = (kind->size + CS_CACHE_LINE - 1) & ~(size_t)(CS_CACHE_LINE - 1);
    char *block = aligned_alloc(CS_CACHE_LINE, BLOCK * size);
    for (int i = 0; block && i < BLOCK; i++) {
        struct api_object *object = (struct api_object *)(block + (size_t)i * size);
        memset(object, 0, kind->size);
        cs_store(&object->mark, API_FREE);
        put_free(kind, object);
    }
}

void *api_object_new(enum api_mark mark, size_t size, api_object_end *end)
{
    struct kind *kind = kind_of(mark);
    cs_lock_take(&api_lock);
    kind->size = size;
    if (kind->free_count <= CACHED) grow(kind);
    struct api_object *object = kind->free_first;
    if (object) {
        kind->free_first = object->next;
        if (!kind->free_first) kind->free_last = NULL;
        kind->free_count--;
        memset(object, 0, kind->size);
        object->references = 1;
        object->id = ++last_id;
        object->end = end;
        cs_store_rel(&object->mark, mark);
    }
    cs_lock_drop(&api_lock);
    return object;
}

void api_object_free(void *at)
{
    struct api_object *object = at;
    struct kind *kind = kind_of((enum api_mark)cs_load(&object->mark));
    cs_lock_take(&api_lock);
    cs_store_rel(&object->mark, API_FREE);
    put_free(kind, object);
    cs_lock_drop(&api_lock);
}

/* --- lists --- */

static struct api_object **bucket_of(const void *handle) { return &buckets[((uintptr_t)handle ^ (uintptr_t)handle >> 17) * 0xff51afd7ed558ccdu >> 52]; }
static size_t place_of(int device) { return device >= 0 && device < API_DEVICES ? (size_t)device : API_DEVICES; }

static void put_handle(struct api_object *object, void *handle)
{
    object->handle = handle;
    if (handle) object->next_of_handle = *bucket_of(handle), *bucket_of(handle) = object;
}

/* With the lock held. */
static struct api_object *find(enum api_mark mark, void *handle)
{
    struct api_object *object = handle ? *bucket_of(handle) : NULL;
    while (object && (object->handle != handle || cs_load(&object->mark) != (cs_u32)mark || cs_load(&object->closed))) object = object->next_of_handle;
    if (object) object->references++;
    return object;
}

static void link_to(struct kind *kind, struct api_object *object)
{
    struct api_object *after = kind->last;
    while (after && after->id > object->id) after = after->previous; /* made at the same time on another thread */
    object->previous = after;
    object->next = after ? after->next : kind->first;
    *(after ? &after->next : &kind->first) = object;
    *(object->next ? &object->next->previous : &kind->last) = object;
    object->linked = true;
}

static void unlink_from(struct kind *kind, struct api_object *object)
{
    *(object->previous ? &object->previous->next : &kind->first) = object->next;
    *(object->next ? &object->next->previous : &kind->last) = object->previous;
    object->linked = false;
}

static void count(struct kind *kind, struct api_object *object)
{
    object->counted = object->device;
    kind->ever[place_of(object->counted)]++;
    kind->alive[place_of(object->counted)][object->sort]++;
}

static void list(struct api_object *object, void *handle)
{
    struct kind *kind = kind_of((enum api_mark)cs_load(&object->mark));
    put_handle(object, handle);
    link_to(kind, object);
    object->listed = true;
    count(kind, object);
}

void api_object_list(struct api_object *object, void *handle)
{
    cs_lock_take(&api_lock);
    list(object, handle);
    cs_lock_drop(&api_lock);
}

void *api_object_list_once(struct api_object *object, void *handle)
{
    cs_lock_take(&api_lock);
    struct api_object *other = find((enum api_mark)cs_load(&object->mark), handle);
    if (!other) list(object, handle);
    cs_lock_drop(&api_lock);
    return other;
}

void api_object_has_handle(struct api_object *object, void *handle)
{
    cs_lock_take(&api_lock);
    if (object->listed && !object->handle) {
        struct kind *kind = kind_of((enum api_mark)cs_load(&object->mark));
        put_handle(object, handle);
        kind->alive[place_of(object->counted)][object->sort]--;
        kind->ever[place_of(object->counted)]--;
        count(kind, object);
    }
    cs_lock_drop(&api_lock);
}

/* With the lock held. One that a walk stands at leaves its kind's list when that goes on, unless nobody has a reference any more. */
static void unlist(struct api_object *object)
{
    struct kind *kind = kind_of((enum api_mark)cs_load(&object->mark));
    if (object->linked && (!object->walkers || !object->references)) unlink_from(kind, object);
    if (!object->listed) return;
    for (struct api_object **at = bucket_of(object->handle); object->handle && *at; at = &(*at)->next_of_handle) {
        if (*at != object) continue;
        *at = object->next_of_handle;
        break;
    }
    object->listed = false;
    kind->alive[place_of(object->counted)][object->sort]--;
}

void api_object_unlist(struct api_object *object)
{
    cs_lock_take(&api_lock);
    unlist(object);
    cs_lock_drop(&api_lock);
}

void *api_object_find(enum api_mark mark, void *handle)
{
    cs_lock_take(&api_lock);
    struct api_object *object = find(mark, handle);
    cs_lock_drop(&api_lock);
    return object;
}

void *api_object_of_id(enum api_mark mark, cs_u64 id)
{
    cs_lock_take(&api_lock);
    struct api_object *object = kind_of(mark)->first;
    while (object && object->id < id) object = object->next;
    if (object && (object->id > id || !object->listed || cs_load(&object->closed))) object = NULL;
    if (object) object->references++;
    cs_lock_drop(&api_lock);
    return object;
}

void api_object_counts(enum api_mark mark, int device, cs_u64 *alive, cs_u64 *ever)
{
    const struct kind *kind = kind_of(mark);
    *alive = *ever = 0;
    cs_lock_take(&api_lock);
    for (size_t i = 0; i <= API_DEVICES; i++) {
        if (device != -1 && i != place_of(device)) continue;
        for (int sort = 0; sort < API_SORTS; sort++) *alive += kind->alive[i][sort];
        *ever += kind->ever[i];
    }
    cs_lock_drop(&api_lock);
}

cs_u64 api_object_count(enum api_mark mark, int device, int sort)
{
    const struct kind *kind = kind_of(mark);
    cs_u64 alive = 0;
    cs_lock_take(&api_lock);
    for (size_t i = 0; i <= API_DEVICES; i++)
        if (device == -1 || i == place_of(device)) alive += kind->alive[i][sort];
    cs_lock_drop(&api_lock);
    return alive;
}

bool api_object_any(int device)
{
    cs_u64 alive = 0, ever;
    for (size_t i = 0; i < KINDS && !alive; i++) api_object_counts(marks[i], device, &alive, &ever);
    return alive;
}

/* --- walks --- */

void api_walk_begin(struct api_walk *walk, enum api_mark mark)
{
    *walk = (struct api_walk){.mark = mark};
    cs_lock_take(&api_lock);
    walk->until = last_id;
    cs_lock_drop(&api_lock);
}

/* With the lock held: where the walk goes on. From the beginning at its first step, and where the program has given back the walk's reference too. */
static struct api_object *leave(struct api_walk *walk)
{
    struct kind *kind = kind_of(walk->mark);
    struct api_object *object = walk->object;
    if (!object || !object->linked || object->id != walk->at) return kind->first;
    struct api_object *next = object->next;
    object->walkers--;
    if (!object->listed && !object->walkers) unlink_from(kind, object);
    return next;
}

void *api_walk_next(struct api_walk *walk)
{
    struct api_object *before = walk->object;
    cs_lock_take(&api_lock);
    struct api_object *object = leave(walk);
    while (object && (object->id <= walk->at || !object->listed || cs_load(&object->closed))) object = object->next;
    if (object && object->id > walk->until) object = NULL;
    if (object) object->references++, object->walkers++, walk->at = object->id;
    cs_lock_drop(&api_lock);
    walk->object = object;
    if (before) api_release(before, walk->mark);
    return object;
}

void api_walk_end(struct api_walk *walk)
{
    walk->until = 0;
    api_walk_next(walk);
}

/* --- references --- */

status api_object_check(const void *at, enum api_mark mark)
{
    const struct api_object *object = at;
    NEED(object);
    if ((uintptr_t)object < 4096 || (uintptr_t)object % _Alignof(struct api_object)) return CUSTREAM_INVALID_HANDLE; /* CU_STREAM_LEGACY and the like */
    return cs_load_acq(&object->mark) == (cs_u32)mark ? CUSTREAM_SUCCESS : CUSTREAM_INVALID_HANDLE;
}

status api_object_usable(const void *at, enum api_mark mark)
{
    const struct api_object *object = at;
    TRY(api_object_check(at, mark));
    return cs_load_acq(&object->closed) ? CUSTREAM_CLOSED : CUSTREAM_SUCCESS;
}

status api_retain(void *at, enum api_mark mark)
{
    struct api_object *object = at;
    TRY(api_object_check(at, mark));
    cs_lock_take(&api_lock);
    status result = object->references ? CUSTREAM_SUCCESS : CUSTREAM_INVALID_HANDLE;
    if (result == CUSTREAM_SUCCESS) object->references++;
    cs_lock_drop(&api_lock);
    return result;
}

status api_release(void *at, enum api_mark mark)
{
    struct api_object *object = at;
    TRY(api_object_check(at, mark));
    cs_lock_take(&api_lock);
    bool last = object->references && (!object->stays || object->references > 1) && !--object->references;
    if (last) unlist(object);
    cs_lock_drop(&api_lock);
    return last ? object->end(object) : CUSTREAM_SUCCESS;
}
