/*
 * What wraps calls, for the layer above: ranges and marks that the program makes go into its threads' rings.
 *
 * Each thread that pushes a range has a stack of its open ones, also before CUDA is met and the thread has a ring: what is open when recording starts is
 * recorded then. No lock and no allocation but for the stack, once a thread. Not recorded are what a thread does inside a driver call of ours, and
 * everything before the first CUDA call of the process and after its end. errno is kept.
 */
#ifndef CS_WRAP_WRAP_H
#define CS_WRAP_WRAP_H

#include "shim/trace/annotation.h"

bool cs_annotate_init(void); /* before all others. Any thread, any number of times */

/* The 0-based level, among the thread's open ranges of that domain, of the range that begins or ends; negative: there is none. */
int cs_annotate_push(const struct cs_annotation *what);
int cs_annotate_pop(cs_name domain);

void cs_annotate_mark(const struct cs_annotation *what);

#endif
