#define _GNU_SOURCE
#include "shim/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shim/base/log.h"

static const char *_Atomic refused[8];

void cs_refused(const char *lost)
{
    for (unsigned i = 0; i < CS_COUNT(refused); i++) {
        const char *other = NULL;
        if (atomic_compare_exchange_strong(&refused[i], &other, lost)) break;
        if (other == lost) return;
    }
    cs_log(CS_LOG_ERROR, "the system has no memory, or no thread, for %s", lost);
}

const char *cs_refused_nth(unsigned n) { return n < CS_COUNT(refused) ? cs_load_acq(&refused[n]) : NULL; }

size_t cs_memory_page(void) { return (size_t)getauxval(AT_PAGESZ); }
static size_t pages_of(size_t bytes) { return (bytes + cs_memory_page() - 1) & ~(cs_memory_page() - 1); }

/* The linker's: what CS_TABLE has put there. One of no mode, for programs that have no other. */
extern CS_HIDDEN const struct cs_table __start_cs_tables[], __stop_cs_tables[];
static char *nothing;
CS_TABLE(KINDS, nothing, 0);

/* How much the process has of what two limits count: addresses, and memory of its own that can be written. 0: not known. */
static void mapped(cs_u64 *addresses, cs_u64 *data)
{
    char text[128] = "";
    unsigned long long all = 0, own = 0;
    const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && pread(fd, text, sizeof text - 1, 0) > 0) sscanf(text, "%llu %*u %*u %*u %*u %llu", &all, &own);
    if (fd >= 0) close(fd);
    *addresses = all * cs_memory_page(), *data = own * cs_memory_page();
}

/* Tables of ours count under a limit (ulimit -v, -d) though they are hardly touched: what is left is the program's, which would be refused memory that it has had
 * without us. So we take a quarter of what limits leave; that many bytes. */
static cs_u64 share_of_limits(void)
{
    enum { TIMES = 4 };
    cs_u64 has[2], share = UINT64_MAX;
    struct rlimit limit[2] = {{RLIM_INFINITY, RLIM_INFINITY}, {RLIM_INFINITY, RLIM_INFINITY}};
    getrlimit(RLIMIT_AS, &limit[0]), getrlimit(RLIMIT_DATA, &limit[1]);
    if (limit[0].rlim_cur == RLIM_INFINITY && limit[1].rlim_cur == RLIM_INFINITY) return share;
    mapped(&has[0], &has[1]);
    for (int i = 0; i < 2; i++) {
        if (limit[i].rlim_cur == RLIM_INFINITY) continue;
        const cs_u64 left = limit[i].rlim_cur > has[i] ? (limit[i].rlim_cur - has[i]) / TIMES : 0;
        if (left < share) share = left;
    }
    return share;
}

enum { LARGE_PAGE = 2 << 20 };
static char *large_page_of(char *at) { return (char *)((uintptr_t)at & ~(uintptr_t)(LARGE_PAGE - 1)); }

/* What has filled two MiB of a table fills more, and a page fault for each 4 KiB of what launches go through takes a tenth of the writer's time. */
static void large_behind_the_first(char *table, size_t bytes)
{
    int saved = errno;
    char *const from = large_page_of(table + 2 * LARGE_PAGE - 1), *const to = large_page_of(table + bytes);
    if (from < to) madvise(from, (size_t)(to - from), MADV_HUGEPAGE);
    errno = saved;
}

/* As of when tables were last made. Later a filter of system calls may end a process that asks for its limits. */
static _Atomic cs_u64 share_for_more;

bool cs_tables_make(enum cs_tables of, const char *lost)
{
    static bool made[CS_TABLES_KINDS];
    size_t bytes = 0;
    if (made[of]) return true;
    const cs_u64 share = share_of_limits();
    for (const struct cs_table *t = __start_cs_tables; t < __stop_cs_tables; t++) bytes += t->of == of ? pages_of(t->bytes) : 0;
    if (share < bytes) return cs_refused(lost), false;
    char *at = cs_memory_map(bytes, lost);
    if (!at) return false;
    cs_store(&share_for_more, share - bytes);
    cs_memory_not_inherited(at, bytes);
    for (const struct cs_table *t = __start_cs_tables; t < __stop_cs_tables; t++) {
        if (t->of != of) continue;
        memcpy(t->pointer, &at, sizeof at);
        if (of == CS_TABLES_TRACE) large_behind_the_first(at, t->bytes); /* the audit's are sparse: a stream's rows lie far apart */
        at += pages_of(t->bytes);
    }
    return made[of] = true;
}

static bool opened(void *at, size_t bytes) { return !mprotect(at, bytes, PROT_READ | PROT_WRITE); }

/* Closed: the system makes no page of it. What we ask for is large, and little of it is touched. So it is not locked, though the program may have said so of all
 * that comes (mlockall), and no core has it: a core would have every page of a memfd, and the system would make them all to write them. */
static void *closed(int flags, int fd, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_NONE, flags | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED) return NULL;
    munlock(at, bytes), madvise(at, bytes, MADV_DONTDUMP);
    return at;
}

void *cs_memory_map(size_t bytes, const char *lost)
{
    int saved = errno;
    void *at = closed(MAP_PRIVATE | MAP_ANONYMOUS, -1, bytes);
    if (at && !opened(at, bytes)) munmap(at, bytes), at = NULL;
    errno = saved;
    if (at) return at;
    cs_refused(lost);
    return NULL;
}

void *cs_memory_map_aligned(size_t bytes, const char *lost)
{
    int saved = errno;
    char *all = cs_memory_map(bytes + LARGE_PAGE, lost), *at = NULL;
    if (all) {
        at = large_page_of(all + LARGE_PAGE - 1);
        if (at > all) munmap(all, (size_t)(at - all));
        munmap(at + bytes, (size_t)(all + LARGE_PAGE - at));
    }
    errno = saved;
    return at;
}

void *cs_memory_map_file(int fd, size_t bytes)
{
    int saved = errno;
    void *at = closed(MAP_SHARED, fd, bytes);
    errno = saved;
    return at;
}

void *cs_memory_map_more(size_t bytes, const char *lost)
{
    if (cs_load(&share_for_more) < bytes) return cs_refused(lost), NULL;
    char *at = cs_memory_map(bytes, lost);
    if (at) cs_memory_not_inherited(at, bytes), large_behind_the_first(at, bytes);
    return at;
}

bool cs_memory_replace(void *at, size_t bytes)
{
    int saved = errno;
    const bool done = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == at;
    if (done) madvise(at, bytes, MADV_DONTDUMP);
    errno = saved;
    return done;
}

void cs_memory_not_inherited(void *at, size_t bytes)
{
    int saved = errno;
    if (at) madvise(at, bytes, MADV_WIPEONFORK);
    errno = saved;
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; an older kernel refuses, and pages are made as they are touched */
#endif

bool cs_memory_reserve(void *at, size_t bytes)
{
    int saved = errno;
    const bool done = opened(at, bytes) && !madvise(at, bytes, MADV_POPULATE_WRITE);
    errno = saved;
    return done;
}

void cs_memory_populate(void *at, size_t bytes)
{
    int saved = errno;
    if (at) madvise(at, bytes, MADV_POPULATE_WRITE);
    errno = saved;
}

void cs_memory_populate_large(void *at, size_t bytes)
{
    int saved = errno;
    madvise(at, bytes, MADV_HUGEPAGE);
    errno = saved;
    cs_memory_populate(at, bytes);
}

bool cs_memory_wiped_in_child(void *at, size_t bytes)
{
    int saved = errno;
    if (((uintptr_t)at | bytes) & (cs_memory_page() - 1)) return false;
    void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool done = copy != MAP_FAILED && !madvise(copy, bytes, MADV_WIPEONFORK);
    if (done) memcpy(copy, at, bytes), done = mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at;
    if (!done && copy != MAP_FAILED) munmap(copy, bytes);
    errno = saved;
    return done;
}

void cs_memory_unmap(void *at, size_t bytes)
{
    int saved = errno;
    munmap(at, bytes);
    errno = saved;
}

void cs_memory_free(void *at, size_t bytes)
{
    int saved = errno;
    munlock(at, bytes); /* of memory that is locked the system takes no page back */
    madvise(at, bytes, MADV_REMOVE);
    mprotect(at, bytes, PROT_NONE);
    errno = saved;
}

void cs_memory_forget(void *at, size_t bytes)
{
    if (!at) return;
    int saved = errno;
    char *const end = (char *)at + bytes, *first = (char *)pages_of((uintptr_t)at), *last = (char *)((uintptr_t)end & ~(cs_memory_page() - 1));
    if (first >= last) first = last = end;
    memset(at, 0, (size_t)(first - (char *)at));
    if (first < last && madvise(first, (size_t)(last - first), MADV_DONTNEED)) { /* it is locked */
        munlock(first, (size_t)(last - first));
        if (madvise(first, (size_t)(last - first), MADV_DONTNEED)) memset(first, 0, (size_t)(last - first));
    }
    memset(last, 0, (size_t)(end - last));
    errno = saved;
}
