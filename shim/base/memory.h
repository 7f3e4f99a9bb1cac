/*
 * Memory of the shim's own, from mmap: never from the application's malloc, which may be replaced, instrumented or in use by the caller.
 * Pages are zero and take no memory before they are touched. All ring memory comes from here.
 */
#ifndef CS_BASE_MEMORY_H
#define CS_BASE_MEMORY_H

#include "shim/base/compiler.h"

void *cs_memory_map(size_t bytes); /* NULL where the system has none; errno is kept */
void cs_memory_unmap(void *at, size_t bytes);
void cs_memory_populate(void *at, size_t bytes); /* has the pages made now, by the calling thread, so that no other meets a page fault on them */
void cs_memory_forget(void *at, size_t bytes); /* gives the pages back; they read as zero again */

#endif
