/*
 * A process of which only our threads are left.
 *
 * main may leave by pthread_exit. The C library then ends the process with its last thread; it counts ours, which never end, and the kernel finds none for a
 * SIGTERM, since ours block all signals. So we notice, and end it as the C library would have.
 */
#ifndef CS_BASE_OVER_H
#define CS_BASE_OVER_H

#include "shim/base/compiler.h"

/* Whether all threads of the program have ended. True only once it was so twice in a row. For one thread, every now and then. `apart`: that one has descriptors
 * of its own (base/apart.h). It keeps a file open, and opens others once main has left. Where it has none, nothing is opened. Source: /proc/self/task; false where
 * that can't be read. */
bool cs_process_is_over(bool apart);

/* The process's number in /proc, which may be another namespace's. 0: it can't be had. Safe in a signal handler. */
int cs_process_number(void);

/* What main has left with by then, as waitpid has it: 0 by pthread_exit, a status by the bare system call, a signal where a filter of the kernel's killed it. */
int cs_process_main_status(void);

void cs_over_after_fork_in_child(void);

#endif
