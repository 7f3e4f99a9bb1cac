#define _GNU_SOURCE
#include "shim/base/owner.h"
#include "shim/base/rings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/apart.h"
#include "shim/base/claim.h"
#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/memory.h"
#include "shim/base/options.h"
#include "shim/base/rings_lock.h"
#include "shim/base/watch.h"

/* SHARE: of what is free, for all processes of the user together, and of an address space that is limited. PART: of what others have left of that, for one; or
 * half of it, where that is less than LITTLE. MEMFD: a memfd counts for no file system. LOOKED_AT: files that others left, by each process. NAMES_READ: names
 * in the folder, in which anybody may make any number. */
enum { SHARE = 10, SHARE_OF_SPACE = 16, PART = 8, NAMES_STEP = 64 << 10, DAY_S = 24 * 60 * 60, TMPFS = 0x01021994, LOOKED_AT = 64, NAMES_READ = 1 << 14 };
/* A process that finds the file of a dead one says so in its mode, and when in its time. Its own process cannot say when it was last alive: a store through the
 * mapping changes the time of a file only at a page's first fault. */
#define FOUND_DEAD S_ISVTX
static const cs_u64 MEMFD = 1u << 30, LITTLE = 4 << 20;

CS_READ_MOSTLY struct cs_rings *_Atomic cs_rings;
static struct cs_rings *_Atomic mapped; /* and stays so, when nothing more is kept */
static size_t mapped_bytes;
static char where[CS_RINGS_PATH + 64] = "not kept: nothing was recorded";
static char path[CS_RINGS_PATH]; /* of the file; "": it has none, or has gone */
static int fd = -1;              /* the writer's */
static cs_u64 names_reserved;
static size_t buffer_there;
static bool tried, allowed, crowded; /* crowded: the folder has more names than are read */

const char *cs_rings_where(void) { return where; }
void cs_rings_allow(void) { allowed = true; }
int cs_rings_memfd(void) { return cs_load(&cs_rings) && !*path ? fd : -1; }

bool cs_rings_has(const void *at)
{
    const char *from = (const char *)cs_load(&mapped);
    return from && (const char *)at >= from && (const char *)at < from + mapped_bytes;
}

static bool not_kept(const char *why)
{
    snprintf(where, sizeof where, "not kept: %s", why);
    return false;
}

/* --- a place for it --- */

static bool is_same(const struct stat *a, const struct stat *b) { return a->st_dev == b->st_dev && a->st_ino == b->st_ino; }

/* Containers and chroots may share the folder, and not their files: a number for what names mean here. */
static cs_u64 names_mean(void)
{
    struct stat mounts, root;
    if (stat("/proc/self/ns/mnt", &mounts) || stat("/", &root)) return 0;
    return ((cs_u64)mounts.st_ino * 31 + root.st_dev) * 31 + root.st_ino;
}

/* Whether the trace of a dead process's rings is whole, or gone, or written over, or another's, so that nobody asks for them. */
static bool serves_nobody(int file, const struct stat *about)
{
    static struct cs_rings head; /* the writer's alone */
    const size_t size = offsetof(struct cs_rings, streams);
    struct stat trace;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (about->st_mode & FOUND_DEAD && now.tv_sec - about->st_mtim.tv_sec > DAY_S) return true;
    if (pread(file, &head, size, 0) != (ssize_t)size || memcmp(head.magic, CS_RINGS_MAGIC, sizeof CS_RINGS_MAGIC)) return false;
    if (strncmp(head.made_by, CS_RINGS_MADE_BY, sizeof head.made_by)) return false;
    const struct cs_rings_trace *last = &head.trace[cs_rings_entry(cs_load(&head.word))];
    if (last->ended && !last->inode) return true; /* its process has ended them, and was not allowed to remove them: it had become another user's */
    if (!head.names_mean || head.names_mean != names_mean()) return false;
    head.path[sizeof head.path - 1] = 0;
    if (stat(head.path, &trace)) return errno == ENOENT;
    if (trace.st_dev == last->device && trace.st_ino == last->inode) return (cs_u64)trace.st_size < last->end;
    return trace.st_dev != last->next_device || trace.st_ino != last->next_inode || (cs_u64)trace.st_size < last->next_end;
}

static bool is_our_file(int folder, const char *name, const struct stat *about) { return S_ISREG(about->st_mode) && about->st_nlink == 1 && cs_name_is_ours(folder, name, about); }

/* Ours alone, and nobody's who lives: the lock on it ends with the process. */
static void remove_if_left_over(int folder, const char *name)
{
    struct stat about;
    const int file = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return;
    if (!fstat(file, &about) && is_our_file(folder, name, &about) && cs_rings_lock(file, true)) {
        if (serves_nobody(file, &about)) syscall(SYS_unlinkat, folder, name, 0);
        else if (!(about.st_mode & FOUND_DEAD) && !syscall(SYS_utimensat, file, NULL, NULL, 0)) (void)!fchmod(file, (about.st_mode & 0777) | FOUND_DEAD);
    }
    close(file);
}

/* The next one that is not our own, which is not even opened: its lock would go with any descriptor of it that this thread closes. `names`: so many may be read; less
 * than none are left where there were more. */
static const char *next_of(DIR *all, int *names)
{
    const char *slash = strrchr(path, '/');
    struct dirent *one = NULL;
    while ((*names)-- > 0 && (one = readdir(all)) && (strncmp(one->d_name, CS_RINGS_NAME, sizeof CS_RINGS_NAME - 1) || (slash && !strcmp(one->d_name, slash + 1)))) one = NULL;
    return one ? one->d_name : NULL;
}

/* The head of the trace has the file's path, for whoever stands elsewhere, and a program may change its folder. NULL: it is too long, or there is no current one. */
static const char *the_folder(void)
{
    static char folder[CS_RINGS_PATH];
    static _Atomic bool known; /* whole: a child of fork may see it half made */
    const char *given = cs_option_text(CS_OPTION_KEEP);
    if (cs_load_acq(&known)) return folder;
    if (!strcmp(given, "auto")) given = CS_RINGS_FOLDER;
    const size_t n = *given == '/' ? 0 : getcwd(folder, sizeof folder) ? strlen(folder) : sizeof folder;
    if (n >= sizeof folder || snprintf(folder + n, sizeof folder - n, n ? "/%s" : "%s", given) >= (int)(sizeof folder - n)) return NULL;
    cs_store_rel(&known, true);
    return folder;
}

/* Where many are left that others may still ask for, each process looks at some, twice, from places of its own on. */
static void remove_left_over(void)
{
    static cs_u32 times;
    const char *folder = the_folder(), *name;
    DIR *all = folder ? opendir(folder) : NULL;
    if (!all) return;
    cs_u32 there = 0, at = 0;
    int names = NAMES_READ;
    while (next_of(all, &names)) there++;
    if (names < 0) return crowded = true, (void)closedir(all);
    const cs_u32 first = there > LOOKED_AT ? ((cs_u32)getpid() * 2 + times++ % 2) * LOOKED_AT % there : 0;
    for (int round = 0; round < 2; round++) { /* from there on, and from the begin */
        rewinddir(all);
        names = NAMES_READ;
        for (cs_u32 i = 0; at < LOOKED_AT && (name = next_of(all, &names)); i++)
            if ((i >= first) == !round) remove_if_left_over(dirfd(all), name), at++;
    }
    closedir(all);
}

/* Of the user's other files: `taken`, bytes that they have now; `others`, bytes that they may grow to, as they are sparse. Those of the dead grow no more. False: not
 * all can be seen. */
static bool spoken_for(const char *folder, cs_u64 *others, cs_u64 *taken)
{
    struct stat about;
    int names = NAMES_READ;
    const char *name;
    DIR *all = opendir(folder);
    for (*others = *taken = 0; all && (name = next_of(all, &names));) {
        if (fstatat(dirfd(all), name, &about, AT_SYMLINK_NOFOLLOW) || !is_our_file(dirfd(all), name, &about)) continue;
        const cs_u64 has = (cs_u64)about.st_blocks * 512;
        *taken += has;
        *others += about.st_mode & FOUND_DEAD ? has : (cs_u64)about.st_size;
    }
    if (all) closedir(all);
    crowded = names < 0;
    return all && !crowded;
}

static void unlink_own(void)
{
    struct stat own, there;
    if (*path && !fstat(fd, &own) && !lstat(path, &there) && is_same(&own, &there)) unlink(path);
    *path = 0;
}

static bool make_in(const char *folder)
{
    struct statfs about;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int n = snprintf(path, sizeof path, "%s/" CS_RINGS_NAME "%d-%llx", folder, (int)getpid(), (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec);
    if (n < 0 || (size_t)n >= sizeof path) return *path = 0, false;
    fd = cs_apart_keep(cs_make_file(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC));
    if (fd < 0) return *path = 0, false;
    const bool fits = strcmp(folder, CS_RINGS_FOLDER) || (!fstatfs(fd, &about) && about.f_type == TMPFS); /* on a disk only if that is asked for */
    if (fits && cs_rings_lock(fd, true)) return true;
    unlink_own();
    close(fd);
    return fd = -1, false;
}

static bool make_memfd(void)
{
    if (!cs_watch_listens()) return false;
    fd = cs_apart_keep((int)syscall(SYS_memfd_create, "custream-rings", 1 /* MFD_CLOEXEC */));
    return fd >= 0;
}

/* --- making it --- */

/* How many threads there is room for in so much; 0: none. */
static cs_u32 threads_in(cs_u64 room, cs_u64 ring_bytes)
{
    struct rlimit most;
    if (!getrlimit(RLIMIT_FSIZE, &most) && most.rlim_cur != RLIM_INFINITY && most.rlim_cur < room) room = most.rlim_cur; /* beyond it comes a signal */
    if (!getrlimit(RLIMIT_AS, &most) && most.rlim_cur != RLIM_INFINITY && most.rlim_cur / SHARE_OF_SPACE < room) room = most.rlim_cur / SHARE_OF_SPACE;
    const cs_u64 page = cs_memory_page(), fixed = cs_rings_head(page) + CS_RINGS_BUFFER + CS_RINGS_NAMES, one = page + ring_bytes;
    const cs_u64 threads = room > fixed ? (room - fixed) / one : 0;
    return threads < CS_RINGS_THREADS ? (cs_u32)threads : CS_RINGS_THREADS;
}

static cs_u64 bytes_for(cs_u32 threads, cs_u64 ring_bytes)
{
    const cs_u64 page = cs_memory_page();
    return cs_rings_head(page) + CS_RINGS_BUFFER + CS_RINGS_NAMES + threads * (page + ring_bytes);
}

static bool set_size(cs_u64 bytes) { return !ftruncate(fd, (off_t)bytes); }

static cs_u64 least(cs_u64 a, cs_u64 b) { return a < b ? a : b; }

/* How many threads there is room for beside the user's other processes; the file has that size then. A part of what is left, so that later ones have room too. Who
 * begins at the same moment is seen once both have their size: whoever has it last gives way. */
static cs_u32 threads_beside(const char *folder, cs_u64 ring_bytes)
{
    enum { TRIES = 4 };
    for (int i = 0; i < TRIES; i++) {
        struct statfs about;
        cs_u64 others, taken;
        if (!spoken_for(folder, &others, &taken) || fstatfs(fd, &about)) return 0;
        const cs_u64 all = ((cs_u64)about.f_bavail * (cs_u64)about.f_bsize + taken) / SHARE, room = all > others ? all - others : 0;
        const cs_u64 part = room / PART < LITTLE ? least(room / 2, LITTLE) : room / PART;
        const cs_u32 threads = threads_in(part, ring_bytes) ?: threads_in(room, ring_bytes) > 0;
        if (!threads || !set_size(bytes_for(threads, ring_bytes))) return 0;
        if (!spoken_for(folder, &others, &taken)) return 0;
        if (others + bytes_for(threads, ring_bytes) <= all) return threads;
        if (!set_size(0)) return 0;
    }
    return 0;
}

static bool map(const struct cs_rings_plan *plan, cs_u32 threads)
{
    const cs_u64 page = cs_memory_page(), head = cs_rings_head(page), bytes = bytes_for(threads, plan->ring_bytes);
    char *at = cs_memory_map_file(fd, bytes);
    if (!at) return false;
    cs_store(&mapped, (struct cs_rings *)(void *)at);
    mapped_bytes = bytes;
    if (!cs_memory_reserve(at, head + CS_RINGS_FIRST_BUFFER)) return false;
    buffer_there = CS_RINGS_FIRST_BUFFER;
    struct cs_rings *rings = (struct cs_rings *)(void *)at;
    rings->bytes = bytes;
    rings->base_ns = plan->base_ns;
    rings->pid = rings->shown_pid = (cs_u32)getpid();
    rings->most = threads;
    rings->calls = plan->calls;
    rings->names_mean = names_mean();
    rings->page = (cs_u32)page;
    rings->buffer_at = head;
    rings->names_at = head + CS_RINGS_BUFFER;
    rings->threads_at = rings->names_at + CS_RINGS_NAMES;
    rings->ring_bytes = plan->ring_bytes;
    rings->layout = plan->layout;
    snprintf(rings->made_by, sizeof rings->made_by, "%s", CS_RINGS_MADE_BY);
    atomic_thread_fence(memory_order_release);
    memcpy(rings->magic, CS_RINGS_MAGIC, sizeof CS_RINGS_MAGIC);
    return true;
}

static void unmake(void)
{
    if (cs_load(&mapped)) cs_memory_unmap(cs_load(&mapped), mapped_bytes);
    cs_store(&mapped, NULL);
    unlink_own();
    if (fd >= 0) close(fd);
    fd = -1;
}

/* True: it is there. Else what is left of the try is nothing. */
static bool try_in(const char *folder, const struct cs_rings_plan *plan)
{
    if (!make_in(folder)) return false;
    const cs_u32 threads = threads_beside(folder, plan->ring_bytes);
    return (threads && map(plan, threads)) || (unmake(), false);
}

static bool try_memfd(const struct cs_rings_plan *plan)
{
    if (!make_memfd()) return false;
    const cs_u32 threads = threads_in(MEMFD, plan->ring_bytes);
    return (threads && set_size(bytes_for(threads, plan->ring_bytes)) && map(plan, threads)) || (unmake(), false);
}

bool cs_rings_begin(const struct cs_rings_plan *plan)
{
    CS_KEEP_ERRNO;
    const char *given = cs_option_text(CS_OPTION_KEEP);
    const bool by_itself = !strcmp(given, "auto");
    crowded = false;
    if (tried) return cs_load(&cs_rings);
    tried = true;
    names_reserved = 0;
    if (!strcmp(given, "off")) return not_kept("CUSTREAM_KEEP=off");
    if (!allowed) return not_kept("the system cannot tell a child from its parent (MADV_WIPEONFORK)");
    const char *folder = the_folder();
    remove_left_over();
    if (folder && !crowded && try_in(folder, plan)) snprintf(where, sizeof where, "%s", path);
    else if (by_itself && try_memfd(plan)) strcpy(where, "memfd");
    else if (crowded) return not_kept(by_itself ? "/dev/shm has too many names" : "the folder of CUSTREAM_KEEP has too many names");
    else return not_kept(by_itself ? "/dev/shm has no room" : "the folder of CUSTREAM_KEEP has no room, cannot be read or written, or has too long a name");
    cs_store_rel(&cs_rings, cs_load(&mapped));
    return true;
}

void cs_rings_end(void)
{
    if (!cs_load(&cs_rings)) return;
    struct cs_rings_trace ended = {.ended = 1};
    cs_rings_flushed(&ended, 0);
    unlink_own();
    cs_store(&cs_rings, NULL); /* the buffer and the rings stay mapped */
}

bool cs_rings_after_fork_in_child(void)
{
    void *at = cs_load(&mapped);
    cs_store(&cs_rings, NULL);
    cs_store(&mapped, NULL);
    const bool own = !at || cs_memory_replace(at, mapped_bytes);
    fd = -1; /* a number in the table of the parent's writer */
    *path = 0;
    tried = false;
    strcpy(where, "not kept: nothing was recorded");
    if (!own) cs_refused("rings of its own in the child of a fork; its calls are not recorded");
    return own;
}

/* --- threads --- */

cs_u64 cs_rings_first(void) { return cs_memory_page() > CS_RINGS_FIRST ? cs_memory_page() : CS_RINGS_FIRST; }

void *cs_rings_thread(void)
{
    struct cs_rings *rings = cs_load_acq(&cs_rings);
    if (!rings || cs_load(&rings->threads) >= rings->most) return NULL;
    const cs_u32 number = cs_add(&rings->threads, 1);
    if (number >= rings->most) return NULL;
    char *page = (char *)rings + rings->threads_at + number * (rings->page + rings->ring_bytes);
    if (!cs_memory_reserve(page, rings->page + cs_rings_first())) return NULL;
    struct cs_ring *ring = (struct cs_ring *)(void *)page;
    ring->slots = (unsigned char (*)[CS_SLOT])(page + rings->page);
    ring->mask = rings->ring_bytes / CS_SLOT - 1;
    cs_store(&ring->limit, cs_rings_first() / CS_SLOT);
    return page;
}

/* So much at once: a page takes the system some microseconds. The thread is in a call, and what the writer does holds the lock of the address space. */
enum { STEP = (128 << 10) / CS_SLOT };

/* Both sides do this, each for what it has made: the further one stands. */
static void raise_limit(struct cs_ring *ring, cs_u64 to)
{
    const cs_u64 next = to < ring->mask + 1 ? to : 0;
    cs_u64 from = cs_load(&ring->limit);
    while (from && from < to && !atomic_compare_exchange_strong(&ring->limit, &from, next)) continue;
}

/* A handler of the program's may fork anywhere in here, and in the child the ring is zeros: so what it is, is read once. */
cs_u64 cs_ring_grow(struct cs_ring *ring)
{
    unsigned char(*const slots)[CS_SLOT] = ring->slots;
    const cs_u64 from = cs_load_acq(&ring->limit), size = ring->mask + 1, to = least(from + least(3 * from, STEP), size);
    if (!from || from > (cs_load(&ring->head) & ring->mask)) return from ?: size; /* the writer was here */
    if (cs_memory_reserve(slots + from, (to - from) * CS_SLOT)) raise_limit(ring, to);
    else if (cs_load(&ring->limit) == from) {
        ring->own = true;
        cs_memory_free(slots + from, (size - from) * CS_SLOT);
        if (!cs_memory_replace(slots + from, (size - from) * CS_SLOT)) return from;
        cs_rings_unkept();
        raise_limit(ring, size);
    }
    return cs_load_acq(&ring->limit) ?: size;
}

/* Of a file's memory: what a busy thread is given, or at least twice of what it has used. */
bool cs_ring_populate(struct cs_ring *ring)
{
    const cs_u64 size = ring->mask + 1, used = cs_load(&ring->head);
    cs_u64 to = CS_RINGS_STAYS / CS_SLOT, from;
    if (!cs_rings_has(ring->slots)) return cs_memory_populate(ring->slots, size * CS_SLOT), true;
    while (to < size && used >= to / 2) to *= 2;
    to = least(to, size);
    while ((from = cs_load(&ring->limit)) && from < to) {
        const cs_u64 next = least(from + STEP, to);
        if (!cs_memory_reserve(ring->slots + from, (next - from) * CS_SLOT)) return true; /* the thread will see */
        raise_limit(ring, next);
    }
    return !from;
}

void cs_rings_unkept(void)
{
    struct cs_rings *rings = cs_load_acq(&cs_rings);
    if (rings) cs_add(&rings->unkept, 1);
}

/* --- what rows need --- */

void cs_rings_stream(cs_u32 ref, cs_u32 lane, cs_u32 device)
{
    struct cs_rings *rings = cs_load_acq(&cs_rings);
    if (!rings) return;
    struct cs_rings_stream *stream = &rings->streams[ref % CS_RINGS_STREAMS];
    cs_store_rel(&stream->ref, 0);
    atomic_thread_fence(memory_order_release);
    stream->lane = lane;
    stream->device = device;
    cs_store_rel(&stream->ref, ref);
}

void cs_rings_name(cs_u32 name, const char *text, size_t length)
{
    struct cs_rings *rings = cs_load_acq(&cs_rings);
    if (!rings) return;
    const cs_u64 at = cs_load(&rings->names_end), end = (at + sizeof(struct cs_rings_name) + length + 1 + 7) & ~(cs_u64)7;
    if (end > CS_RINGS_NAMES) return;
    char *texts = (char *)rings + rings->names_at;
    while (names_reserved < end) {
        if (!cs_memory_reserve(texts + names_reserved, NAMES_STEP)) return;
        names_reserved += NAMES_STEP;
    }
    struct cs_rings_name *entry = (struct cs_rings_name *)(void *)(texts + at);
    entry->name = name;
    entry->length = (cs_u32)length;
    memcpy(entry->text, text, length);
    entry->text[length] = 0;
    cs_store_rel(&rings->names_end, end);
}

/* --- the writer's --- */

void cs_rings_clock(cs_u64 ticks, cs_u64 ns, double rate)
{
    struct cs_rings *rings = cs_load(&cs_rings);
    if (!rings) return;
    const cs_u32 now = cs_load(&rings->clock_now), next = !now;
    if (rings->clock[now].ticks == ticks && rings->clock[now].rate == rate) return;
    rings->clock[next] = (struct cs_rings_clock){ticks, ns, rate};
    cs_store_rel(&rings->clock_now, next);
}

void cs_rings_shown_pid(cs_u32 pid)
{
    struct cs_rings *rings = cs_load(&cs_rings);
    if (rings) rings->shown_pid = pid;
}

char *cs_rings_buffer(void)
{
    struct cs_rings *rings = cs_load(&cs_rings);
    return rings ? (char *)rings + rings->buffer_at : NULL;
}

/* A page takes the system some microseconds, and a short trace needs few of them. */
size_t cs_rings_buffer_grow(size_t to)
{
    const struct cs_rings *rings = cs_load(&mapped);
    size_t next = buffer_there;
    while (next < to) next *= 2;
    if (next > buffer_there && cs_memory_reserve((char *)rings + rings->buffer_at + buffer_there, next - buffer_there)) buffer_there = next;
    return buffer_there;
}

void cs_rings_flushed(const struct cs_rings_trace *trace, size_t used)
{
    struct cs_rings *rings = cs_load(&cs_rings);
    if (!rings) return;
    const cs_u64 word = cs_load(&rings->word);
    const unsigned next = !cs_rings_entry(word);
    rings->trace[next] = *trace;
    cs_store_rel(&rings->word, (cs_u64)next << 56 | (cs_u64)cs_rings_told(word) << 24 | used);
}

void cs_rings_path(const char *trace)
{
    struct cs_rings *rings = cs_load(&cs_rings);
    if (!rings) return;
    snprintf(rings->path, sizeof rings->path, "%s", trace);
    remove_left_over(); /* once more: those of the trace that was there are nobody's from here on */
}
