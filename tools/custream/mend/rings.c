#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/owner.h"
#include "shim/base/rings.h"
#include "shim/base/rings_lock.h"
#include "shim/calls/record.h"
#include "tools/custream/mend/inside.h"
#include "tools/custream/trace/ends.h"
#include "tools/custream/trace/gz.h"

/* --- where the rings are --- */

#define WHY_NOT(why, ...) (snprintf((why)->text, sizeof (why)->text, __VA_ARGS__), false)

/* Reads from the trace's head where the rings are. False: the head names no file of rings; `why`
 * says why, if the head says anything of rings. The head may be anybody's text, so no other file is
 * opened. */
static bool path_in_head(
    const struct trace_head *head, char path[CS_RINGS_PATH], struct rings_why *why)
{
    const char *text = head->rings, *slash = strrchr(text, '/');
    if (!*text) return false;
    if (*text == '/' && !strncmp(slash + 1, CS_RINGS_NAME, sizeof CS_RINGS_NAME - 1) &&
        strlen(text) < CS_RINGS_PATH)
        return strcpy(path, text);
    if (!strncmp(text, "not kept", 8)) return WHY_NOT(why, "%.200s", text);
    if (!strcmp(text, "memfd")) return WHY_NOT(why, "they were in a memfd, which the watcher had");
    return WHY_NOT(why, "%.200s: cannot be found by that name", text);
}

/* Opens the file of rings. The file must belong to this user, or to the user for whom root asks,
 * and its process must be dead. */
static bool take(struct rings *rings, int memfd, struct rings_why *why)
{
    struct stat about;
    rings->fd = memfd >= 0 ? fcntl(memfd, F_DUPFD_CLOEXEC, 0)
                           : open(rings->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (rings->fd < 0) {
        why->gone = errno == ENOENT;
        return WHY_NOT(why, "%.160s: %.60s", rings->path, strerror(errno));
    }
    if (fstat(rings->fd, &about) || !S_ISREG(about.st_mode) ||
        !cs_file_serves_us(rings->fd, about.st_uid))
        return WHY_NOT(why, "%.200s: is no file of this user's", rings->path);
    /* A process that begins has the lock for a moment, while it looks at the rings that dead
     * processes have left. */
    for (int tries = 50; memfd < 0 && !cs_rings_lock(rings->fd, false); tries--) {
        if (!tries) return WHY_NOT(why, "%.200s: its process lives", rings->path);
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
    return true;
}

/* --- whether the file is sound --- */

static bool is_laid_out(const struct cs_rings *head, uint64_t size)
{
    const uint64_t ring = head->ring_bytes, page = cs_rings_page(head), begin = cs_rings_head(page),
                   fixed = begin + CS_RINGS_BUFFER;
    if (page < CS_RINGS_PAGE || page > ring || page & (page - 1)) return false;
    const struct cs_rings_layout *layout = &head->layout;
    const uint32_t places[] = {layout->tid, layout->index, layout->comm, layout->lost,
        layout->lost_begin, layout->lost_end};
    for (size_t i = 0; i < CS_COUNT(places); i++)
        if (places[i] % sizeof(uint32_t) || places[i] < sizeof(struct cs_ring) ||
            places[i] > CS_RINGS_PAGE - 16)
            return false;
    return head->most <= CS_RINGS_THREADS && ring <= 1u << 30 && !(ring & (ring - 1)) &&
           head->buffer_at == begin && head->names_at == fixed &&
           head->threads_at == fixed + CS_RINGS_NAMES &&
           head->bytes == head->threads_at + head->most * (page + ring) && head->bytes <= size;
}

/* Finds the trace in the head of the rings, and the end of the trace's events. False: `why` says
 * why. If `why` is empty, the trace has all that was recorded. */
static bool find_end(struct rings *rings, const struct stat *trace, struct rings_why *why)
{
    const struct cs_rings_trace *now = &rings->head.trace[cs_rings_entry(rings->head.word)];
    const bool own = trace->st_dev == now->device && trace->st_ino == now->inode,
               next = trace->st_dev == now->next_device && trace->st_ino == now->next_inode;
    if (now->ended) return false;
    if (!own && !next) return WHY_NOT(why, "%.200s: is of another file at that name", rings->path);
    rings->end = (off_t)(own ? now->end : now->next_end);
    rings->used = own ? cs_rings_used(rings->head.word) : 0;
    if (rings->end >= 0 && rings->end <= trace->st_size && rings->used <= CS_RINGS_BUFFER)
        return true;
    return WHY_NOT(why, "%.200s: the trace is shorter than they say", rings->path);
}

static char *bytes_at(const struct rings *rings, uint64_t at, size_t size)
{
    char *bytes = calloc(size + 1, 1);
    if (!bytes) out_of_memory();
    if (size && pread(rings->fd, bytes, size, (off_t)at) != (ssize_t)size) return free(bytes), NULL;
    return bytes;
}

static bool load(struct rings *rings, int trace, uint64_t base, struct rings_why *why)
{
    struct stat own, about;
    if (fstat(rings->fd, &own) || fstat(trace, &about)) return false;
    /* if the file ends inside its head, the rest of rings->head stays zeros */
    const struct cs_rings *head = &rings->head;
    if (pread(rings->fd, &rings->head, sizeof rings->head, 0) < 0) return false;
    const bool is = !memcmp(head->magic, CS_RINGS_MAGIC, sizeof CS_RINGS_MAGIC);
    if (is && strncmp(head->made_by, CS_RINGS_MADE_BY, sizeof head->made_by))
        return WHY_NOT(why,
            "%.120s: was written by custream %.*s, and custream " CS_RINGS_MADE_BY
            " reads its own alone",
            rings->path, (int)sizeof head->made_by, head->made_by);
    if (!is || head->calls != CS_CALL_COUNT || head->base_ns != base ||
        !is_laid_out(head, (uint64_t)own.st_size))
        return WHY_NOT(why, "%.160s: is not the file of rings of this trace", rings->path);
    if (!find_end(rings, &about, why)) return false;
    rings->buffer = bytes_at(rings, rings->head.buffer_at, rings->used);
    const uint64_t texts = rings->head.names_end <= CS_RINGS_NAMES ? rings->head.names_end : 0;
    char *names = bytes_at(rings, rings->head.names_at, texts);
    if (names) record_texts_read(&rings->texts, names, texts);
    return rings->buffer;
}

struct rings *rings_open(int trace, int memfd, struct rings_why *why)
{
    struct trace_head head;
    struct rings *rings = array_zeros(1, sizeof *rings);
    rings->fd = -1;
    *why = (struct rings_why){0};
    if (trace_head(trace, &head) && (memfd >= 0 || path_in_head(&head, rings->path, why)) &&
        take(rings, memfd, why) && load(rings, trace, head.base, why))
        return rings;
    rings_close(rings);
    return NULL;
}

void rings_close(struct rings *rings)
{
    if (!rings) return;
    if (rings->fd >= 0) close(rings->fd);
    free_all(rings->texts.bytes, rings->texts.of, rings->buffer, rings->packed, rings);
}

void rings_remove(struct rings *rings)
{
    struct stat own, there;
    if (*rings->path && !fstat(rings->fd, &own) && !lstat(rings->path, &there) &&
        own.st_dev == there.st_dev && own.st_ino == there.st_ino)
        unlink(rings->path);
}

/* --- the buffer --- */

struct torn_more rings_more(struct rings *rings, int trace)
{
    char magic[2] = {0};
    if (pread(trace, magic, 2, 0) != 2 || memcmp(magic, GZ_MAGIC, 2) || !rings->used)
        return (struct torn_more){rings->end, rings->buffer, rings->used};
    free(rings->packed);
    const size_t length = gz_pack(rings->buffer, rings->used, 0, &rings->packed);
    return (struct torn_more){rings->end, rings->packed, length};
}

/* --- the rings --- */

/* The begin of a thread's page, where its state is. The bytes may be damaged. */
struct page {
    _Alignas(struct cs_ring) char bytes[CS_RINGS_PAGE];
};

static bool page_read(const struct rings *rings, unsigned thread, struct page *page, uint64_t *at)
{
    *at = rings->head.threads_at + thread * (cs_rings_page(&rings->head) + rings->head.ring_bytes);
    return pread(rings->fd, page->bytes, sizeof page->bytes, (off_t)*at) ==
           (ssize_t)sizeof page->bytes;
}

static uint64_t number_in(const struct page *page, uint32_t at, size_t size)
{
    uint64_t number = 0;
    memcpy(&number, page->bytes + at, size);
    return number;
}

/* Returns how many records of a thread were not written; `from`: the number of the first. The
 * writer may have written one record more than the thread's page says; then the head's hand_...
 * members say so. */
static uint64_t untold(const struct rings *rings, const struct page *page, uint64_t *from)
{
    const struct cs_ring *ring = (const struct cs_ring *)(const void *)page->bytes;
    const uint64_t head = ring->head, size = rings->head.ring_bytes / CS_SLOT;
    *from = ring->told;
    if (rings->head.hand_thread == number_in(page, rings->head.layout.index, 4) &&
        rings->head.hand_place == *from &&
        (uint32_t)rings->head.hand_told != cs_rings_told(rings->head.word))
        ++*from;
    return head > *from && head - *from <= size ? head - *from : 0;
}

static void thread_rows(
    struct rings *rings, const struct page *page, uint64_t at, struct record_lane *lane)
{
    uint64_t from, size = rings->head.ring_bytes / CS_SLOT;
    struct cs_record record;
    for (uint64_t n = untold(rings, page, &from), i = 0; i < n; i++) {
        const off_t place = (off_t)(at + cs_rings_page(&rings->head) + (from + i) % size * CS_SLOT);
        const bool good = pread(rings->fd, &record, sizeof record, place) == (ssize_t)sizeof record;
        if (good && record.call & CS_CALL_MUTED) continue; /* left out by a rule of the policy */
        if (good && (record.call == CS_CALL_SITE || record.call == CS_CALL_CLOCK)) continue;
        if (good && record_row(lane, &record)) rings->rows++;
        else rings->left_out++;
    }
}

void rings_rows(struct rings *rings, struct mend_to *to)
{
    struct page page;
    uint64_t at;
    const struct cs_rings_clock *clock = &rings->head.clock[rings->head.clock_now & 1];
    rings->rows = rings->left_out = 0;
    for (unsigned thread = 0; thread < rings->head.threads && thread < rings->head.most; thread++) {
        if (!page_read(rings, thread, &page, &at)) continue;
        const struct cs_rings_layout *layout = &rings->head.layout;
        const uint64_t lost = number_in(&page, layout->lost, 8);
        struct record_lane lane = {.to = to,
            .texts = &rings->texts,
            .streams = rings->head.streams,
            .pid = rings->head.shown_pid,
            .tid = (uint32_t)number_in(&page, layout->tid, 4),
            .ticks = clock->ticks,
            .ns = clock->ns,
            .rate = clock->rate};
        memcpy(lane.name, page.bytes + layout->comm, sizeof lane.name - 1);
        lane.filled = mend_lane_filled(to, lane.pid, lane.tid, &lane.named);
        thread_rows(rings, &page, at, &lane);
        if (lost && lost < (uint64_t)1 << 53 &&
            record_lost(&lane, lost, number_in(&page, layout->lost_begin, 8),
                number_in(&page, layout->lost_end, 8)))
            rings->rows++;
    }
}

bool rings_add(const struct rings *rings)
{
    struct page page;
    uint64_t at, from;
    if (rings->used) return true;
    for (unsigned thread = 0; thread < rings->head.threads && thread < rings->head.most; thread++)
        if (page_read(rings, thread, &page, &at) &&
            (untold(rings, &page, &from) || number_in(&page, rings->head.layout.lost, 8)))
            return true;
    return false;
}
