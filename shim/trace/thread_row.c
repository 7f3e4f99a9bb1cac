#include "shim/trace/thread_row.h"

#include "shim/base/memory.h"

enum { ROWS = CS_THREADS + 1 };
struct cs_thread_row *cs_thread_rows;
CS_TABLE(TRACE, cs_thread_rows, ROWS);

void cs_thread_rows_begin(void) { cs_memory_forget(cs_thread_rows, ROWS * sizeof *cs_thread_rows); }

void cs_thread_row_empty(const struct cs_thread *thread)
{
    struct cs_thread_row *row = cs_thread_row(thread);
    *row = (struct cs_thread_row){.open = row->open};
}
