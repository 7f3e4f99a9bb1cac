/*
 * The closing line: what the trace holds and lacks, and how to open it, on stderr as the process ends.
 *
 * It is printed under `custream run`, and otherwise where stderr is a terminal. CUSTREAM_QUIET drops it. The watcher of the run prints it, if there is one,
 * since that knows of all processes of the run (base/watch.h).
 */
#ifndef CS_TRACE_CLOSING_H
#define CS_TRACE_CLOSING_H

#include "shim/base/compiler.h"

/* The writer thread's: it begins, and has descriptors of its own; the file may have got a name; all that was recorded is in the file; the file has ended, or
 * there was none. */
void cs_closing_begin(void);
void cs_closing_file(void);
bool cs_closing_flushed(void); /* true: for an exec */
void cs_closing_prepare(bool has_file);

/* The calling thread is about to have the process become another program: the next flush is for that. Or it has not: the next flush says so. */
void cs_closing_exec(void);
void cs_closing_stays(void);

/* Once, on a thread that has the program's descriptors, after that. Safe in a signal handler. */
void cs_closing_say(void);

/* Whether what belongs beside that line is the library's to say: it is wanted, and no watcher says it. After cs_closing_say. */
bool cs_closing_speaks(void);

void cs_closing_after_fork_in_child(void);

#endif
