/*
 * Ranges and marks that the program makes, into its threads' rings.
 *
 * Each thread that pushes a range has a stack of its open ones, also before CUDA is met and the thread has a ring: what is open when recording starts is
 * recorded then. No lock and no allocation but for the stack, once a thread. Not recorded are what a thread does inside a driver call of ours, and
 * everything before the first CUDA call of the process and after its end. errno is kept.
 */
#ifndef CS_WRAP_ANNOTATE_H
#define CS_WRAP_ANNOTATE_H

#include "shim/trace/annotation.h"

bool cs_annotate_init(void); /* before all others. Any thread, any number of times */

/* The 0-based level, among the thread's open ranges of that domain, of the range that begins or ends; negative: there is none. */
int cs_annotate_push(const struct cs_annotation *what);
int cs_annotate_pop(cs_name domain);

void cs_annotate_mark(const struct cs_annotation *what);

/* Ranges that begin and end on any thread. Ids are not 0 and not used twice. */
cs_u64 cs_annotate_start(const struct cs_annotation *what);
void cs_annotate_end(cs_u64 id);

/* The thread's state, if the thread may record now; if it may say something of objects, which are kept also while nothing is recorded. NULL otherwise. */
struct cs_thread *cs_annotate_thread(void);
struct cs_thread *cs_annotate_watched(void);

/* What the shim itself tells of the thread: it begins to record; it is all that a fork has left. */
void cs_annotate_thread_starts(struct cs_thread *thread);
void cs_annotate_window_opened(cs_u64 ticks); /* calls are recorded again, from then on; on whatever thread that came about */
void cs_annotate_after_fork_in_child(void);

#endif
