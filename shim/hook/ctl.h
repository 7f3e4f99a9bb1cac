/*
 * The control thread, "custream-ctl": answers `custream ctl` (CUSTREAM_CTL), and opens and closes windows of time.
 *
 * It has a table of descriptors of its own, so that its sockets have no number in the program: closing all descriptors does not touch them, children do not
 * inherit them, and no number of the program's is ever taken for one of them. Nor is a file of the program's kept open by it: its table is empty but for the
 * sockets. Two things follow. It has no standard error, so what it has to say it answers; and it starts no thread and calls nothing of CUDA, since
 * descriptors opened there would be unknown to all other threads. It blocks in poll alone, holds no lock there, and ends with the process.
 */
#ifndef CS_HOOK_CTL_H
#define CS_HOOK_CTL_H

#include "shim/base/compiler.h"

/* Starts it where it is wanted and not there. Any application thread, after the writer; keeps errno. */
void cs_ctl_start(void);
void cs_ctl_after_fork_in_child(void);

/* One request, to be answered in one line. `words` ends with 0. The control thread's. */
void cs_ctl_answer(char *words, char *answer, size_t room);

#endif
