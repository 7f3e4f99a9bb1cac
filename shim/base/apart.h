/*
 * Threads of ours that live apart from the program's descriptors.
 *
 * A file of ours that had a number in the program could be closed with all others, and its number be given to a file of the program's between our look and our
 * write. So a thread that keeps files open has a table of descriptors of its own. It has no standard streams: what it logs is printed by others (base/log.h).
 * Whatever thread it made would share its table. So it makes none, and calls nothing of CUDA, of CUPTI or of a plug-in, which might: the aide does that
 * (base/aide.h).
 */
#ifndef CS_BASE_APART_H
#define CS_BASE_APART_H

#include "shim/base/compiler.h"

/* Gives the calling thread, one of ours, a table of descriptors of its own with nothing in it, so that no pipe, socket or lock of the program's is kept open. It
 * keeps the root and the folder of this moment too, where that can be had. False with errno set: the system allows neither close_range nor unshare, the
 * thread shares the program's table, and must open nothing. */
bool cs_apart(void);

/* The same open file under a number that is none of the standard streams', where there is one. Takes -1 too. */
int cs_apart_keep(int fd);

#endif
