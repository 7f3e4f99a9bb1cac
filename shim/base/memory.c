#include "shim/base/memory.h"

#include <errno.h>
#include <sys/mman.h>

void *cs_memory_map(size_t bytes)
{
    int saved = errno;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    errno = saved;
    return at == MAP_FAILED ? NULL : at;
}

void cs_memory_unmap(void *at, size_t bytes)
{
    if (at) munmap(at, bytes);
}

void cs_memory_populate(void *at, size_t bytes)
{
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; an older kernel refuses, and pages are made as they are touched */
#endif
    int saved = errno;
    if (at) madvise(at, bytes, MADV_POPULATE_WRITE);
    errno = saved;
}

void cs_memory_forget(void *at, size_t bytes)
{
    int saved = errno;
    if (at) madvise(at, bytes, MADV_DONTNEED);
    errno = saved;
}
