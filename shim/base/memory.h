/*
 * Memory of the shim's own, from mmap: never from the application's malloc, which may be replaced, instrumented or in use by the caller.
 * Pages are zero and take no memory before they are touched. All ring memory comes from here.
 */
#ifndef CS_BASE_MEMORY_H
#define CS_BASE_MEMORY_H

#include "shim/base/compiler.h"

/* NULL where the system has none; errno is kept. `lost` is what is not there then, with what comes of it: the owner of the process is told once, and so
 * is who reads the trace. A constant. */
void *cs_memory_map(size_t bytes, const char *lost);
void *cs_memory_map_aligned(size_t bytes, const char *lost); /* from a multiple of 2 MiB on */
size_t cs_memory_page(void); /* the system's, of 4 KiB or more. It takes what begins within one for a mistake, and what ends within one for the whole page */

/* The system refuses more than memory: the same for a thread, or for the end of one. */
void cs_refused(const char *lost);
const char *cs_refused_nth(unsigned n); /* what has been refused so far, from 0 on; NULL behind the last */

/*
 * Tables of a fixed size that a mode works with: declared where they are used, made as one before the mode begins, never given back. So nobody who uses
 * one asks whether it is there. Where there is no memory for all of them there is none of the mode.
 */
enum cs_tables { CS_TABLES_TRACE, CS_TABLES_AUDIT, CS_TABLES_METRICS, CS_TABLES_KINDS };
struct cs_table {
    enum cs_tables of;
    void *pointer; /* to the pointer */
    size_t bytes;
} __attribute__((aligned(32))); /* as compilers align what is that large: the linker lays them side by side */
#define CS_TABLE(of, table, count) CS_TABLE_AT(of, table, table, count)
#define CS_TABLE_AT(of, name, table, count)                                                                                                          \
    static const struct cs_table name##_table __attribute__((section("cs_tables"), used)) = {CS_TABLES_##of, &(table), (count) * sizeof *(table)}

/* Makes those of a mode unless they are there. One thread at a time; in the child of a fork they are there and read as zero, or where the system cannot do
 * that, with what the parent had in them. */
bool cs_tables_make(enum cs_tables of, const char *lost);

/* Memory for a table that grows: not inherited, and of large pages as tables are. NULL also where limits leave too little for the program. */
void *cs_memory_map_more(size_t bytes, const char *lost);

void cs_memory_populate(void *at, size_t bytes); /* has the pages made now, by the calling thread, so that no other meets a page fault on them */
void cs_memory_populate_large(void *at, size_t bytes); /* the same with large pages, if the system has them */
void *cs_memory_map_file(int fd, size_t bytes);  /* shared, and closed: touching it is SIGSEGV until it is reserved, and a program that locks all it has locks none of it; NULL */
bool cs_memory_reserve(void *at, size_t bytes);  /* of such memory: it is open, and there. False: touching it may be a signal */
bool cs_memory_replace(void *at, size_t bytes);  /* by memory of the process's own, which reads as zero */
void cs_memory_not_inherited(void *at, size_t bytes);  /* zero in the child of a fork, where the system can do that: a fork copies none of it */
bool cs_memory_wiped_in_child(void *at, size_t bytes); /* whole pages of static data: zero in the child of a fork. Nobody writes them meanwhile */
void cs_memory_unmap(void *at, size_t bytes);
void cs_memory_free(void *at, size_t bytes);     /* of a file's memory: the file's pages go too, and it is closed again */
void cs_memory_forget(void *at, size_t bytes); /* reads as zero again; the whole pages of it are given back */

#endif
