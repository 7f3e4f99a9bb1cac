/*
 * What `custream run` and the processes that it starts agree on: how a process tells the watcher of the run about its trace.
 *
 * The watcher (tools/custream/watch/) listens on an abstract unix socket (SOCK_SEQPACKET). A process that has begun to use CUDA connects once, and the
 * connection ends with it. Each packet is a word, then a blank and a text where there is one:
 *
 *   hello          a process uses CUDA; "hello quiet": it wants no line
 *   file DEVICE INODE PATH
 *                  its trace goes there; another one takes the place of the one before
 *   rings          with the packet comes the process's memfd of rings (base/rings.h)
 *   exec           all is in the file, and the process may become another program now
 *   stays          it has not become one
 *   end            the file is complete; the process waits for the answer before it ends
 *   spoke          no answer came in time: the process says itself what there is to say, unless "wait" has come by now
 *   speaks         it says it. Of a process that ends without this word, and was to speak, the watcher says it
 *
 * Answers to `end`: "wait", for another answer, before the watcher says anything; "done", since all is said; "speak", since the process is to say it: it has
 * sent `spoke`, or it lives on behind the run's end. Each side sends its own word, "spoke" or "wait", and then looks for the other's. So at least one of the
 * two sees that both would speak, and the watcher decides.
 */
#ifndef CS_BASE_WATCH_H
#define CS_BASE_WATCH_H

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "shim/base/compiler.h"

/* Set by `custream run` for the processes of its run: the socket's name, "-" where there is no watcher. No option: nobody sets it by hand. */
#define CS_WATCH_VARIABLE "CUSTREAM_RUN"
enum { CS_WATCH_PACKET = PATH_MAX + 64 };

/* The words of control.def: cs_tell_end is "end", cs_reply_wait is "wait". */
#define TELL(name, text) static const char cs_tell_##name[] = text;
#define REPLY(name, text) static const char cs_reply_##name[] = text;
#include "shim/base/control.def"

/* What is said of a rule that was used for no stream: its place, its conditions. The library or the watcher says it. */
#define CS_UNUSED_RULE "rules[%d] was used for no stream (%s)"

/* The line at the end of a run under per-thread default streams. Whether another run asked the audit is not known. */
#define CS_NOT_AUDITED                                                                                                                               \
    "the audit was not asked in this run; CUSTREAM_DEFAULT_STREAM=audit asks it, in a run of its own. PyTorch training is not safe: autograd's "      \
    "thread relies on the legacy stream"

static inline socklen_t cs_watch_address(struct sockaddr_un *address, const char *name)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "custream-run/%.64s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* The library's side. Reads the variable, once, on a thread of the program. Whether the process is one of a `custream run`: any thread. */
void cs_watch_read(void);
bool cs_watch_is_run(void);

/* The writer thread's, which has descriptors of its own: the connection is one of them. */
void cs_watch_hello(bool quiet);
void cs_watch_file(const char *path, cs_u64 device, cs_u64 inode); /* nothing where it is the file that was told last */
bool cs_watch_listens(void); /* there is a watcher, and it has been told hello */
void cs_watch_rings(int memfd); /* nothing for -1 */
void cs_watch_exec(void);
void cs_watch_stays(void);
bool cs_watch_end(void); /* true: the watcher says what there is to say. Waits two seconds at most for the first answer, and seven more for the second */

void cs_watch_after_fork_in_child(void); /* the connection is the parent's */

#endif
