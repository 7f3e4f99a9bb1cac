/*
 * The control thread, "custream-ctl": answers `custream ctl` (CUSTREAM_CTL), and opens and closes windows of time.
 *
 * It is apart from the program's descriptors (base/apart.h), so that its sockets have no number in the program and no child inherits them. What it has to say it
 * answers. It blocks in poll alone, holds no lock there, and ends with the process.
 */
#ifndef CS_PROCESS_CTL_H
#define CS_PROCESS_CTL_H

#include "shim/base/compiler.h"

/* Starts it where it is wanted and not there. Any application thread, after the writer; keeps errno. */
void cs_ctl_start(void);
void cs_ctl_after_fork_in_child(void);

/* One request, to be answered in one line. `words` ends with 0. The control thread's. HOLDS: calls are recorded until cs_ctl_end_record, whose answer goes to
 * the same client; ENDS: nobody holds any longer (`off`). */
enum cs_ctl_then { CS_CTL_DONE, CS_CTL_HOLDS, CS_CTL_ENDS };
enum cs_ctl_then cs_ctl_answer(char *words, char *answer, size_t room);
void cs_ctl_end_record(char *answer, size_t room);

#endif
