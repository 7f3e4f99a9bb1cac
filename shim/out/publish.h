/*
 * A small file that others read whenever they like: each time it is replaced as a whole, so nobody ever sees half of it. The writer thread's alone.
 *
 * The name is claimed by the rules of base/claim.h, and is one process's: it holds a lock on the file that stands there. Another one that was given the same
 * name gets "-PID" before the extension. What is new is written beside it and renamed, in the folder that was opened when the name was claimed. A file that has
 * come to the name meanwhile is not replaced: the name is claimed anew.
 */
#ifndef CS_OUT_PUBLISH_H
#define CS_OUT_PUBLISH_H

#include "shim/base/compiler.h"

/* The file has this text from now on. False after one line that says why not, and the next time only if it is for another reason. */
bool cs_publish(const char *variable, const char *pattern, const char *text, size_t size);

/* It is no longer there, if it is ours; what comes next claims the name anew. */
void cs_publish_end(void);
void cs_publish_forget(void); /* in the child of a fork: the file is the parent's */

#endif
