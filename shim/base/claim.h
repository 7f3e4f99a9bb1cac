/*
 * Whose file it is: opens the file for a trace, or for metrics, and spoils no file of others.
 *
 * A trace takes a file that is new, empty or an earlier trace of custream's; with CS_CLAIM_FORCE any regular file. Metrics take one that is new, empty or
 * has earlier metrics (CS_CLAIM_METRICS). The open file is examined, not its
 * name. So nothing can change between the answer and what follows from it. Nothing is truncated here.
 *
 * Symbolic links are followed one by one. In a folder where others can make files (/tmp, or another user's) somebody may have planted the name. So no
 * link is followed there, and a file is not taken if it has other names, or if it is somebody else's (unless it is the folder owner's).
 * The kernel's protected_symlinks, protected_hardlinks and protected_regular do the same where they are on.
 *
 * Links among the folders of a path are followed as ever. Wherever they lead, these rules hold in the last folder, which stays open meanwhile.
 *
 * Any thread; nothing is kept. The library and the command both ask here.
 */
#ifndef CS_BASE_CLAIM_H
#define CS_BASE_CLAIM_H

#include <limits.h>

#include "shim/base/compiler.h"

enum { CS_CLAIM_FORCE = 1, CS_CLAIM_OLD = 2 /* only a file that is there: none is made */, CS_CLAIM_METRICS = 4 };
enum { CS_CLAIM_HEAD = 4096 };
#define CS_METRICS_BEGIN "# custream metrics" /* how each file of metrics begins */

/* How a trace begins, and the number of its format: docs/trace.md says when that is raised. In Perfetto's own format the frame of a packet is before it. */
#define CS_TRACE_FORMAT 2
#define CS_TRACE_BEGIN(format) "{\"schemaVersion\":" format CS_TRACE_BEGIN_BEHIND
#define CS_TRACE_BEGIN_BEHIND  ",\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":"
#define CS_TRACE_BEGIN_NOW     CS_TRACE_BEGIN("2")
enum { CS_TRACE_BEGIN_MOST = 9 + sizeof CS_TRACE_BEGIN("") - 1 };

/* Whether a text begins so, with a number of up to 9 digits: a trace of any format. */
bool cs_trace_begins(const char *text, size_t length);

/* open() for a file that is to be made: its user's alone, whatever the umask leaves of that. The files of rings and of parts are made so too. */
int cs_make_file(int folder, const char *name, int flags);

struct cs_inflate; /* base/unpack.h; NULL where there is no zlib: then a compressed trace is not recognised */

struct cs_claim {
    int fd;              /* for reading and writing, close-on-exec; -1: not taken */
    const char *refusal; /* not taken: why, a static text; NULL: errno tells */
    bool made;           /* it was not there before */
    bool ours;           /* an earlier trace, or earlier metrics; of a trace then also: */
    cs_u32 part;         /* which part of one it is, 0 if it is no part */
    char head[CS_CLAIM_HEAD]; /* the first bytes, unpacked, with a NUL behind them */
    char path[PATH_MAX]; /* where links led to */
};

/* Opens the file, or tells why it is not for a trace. */
bool cs_claim(struct cs_claim *claim, const char *path, unsigned how, const struct cs_inflate *zlib);

/* Whether the path still leads to the open file: others may have taken it away since. */
bool cs_claim_stands(const struct cs_claim *claim);

/* It is not wanted after all: closes it, and removes it if we made it and it is empty. errno stays. */
void cs_claim_drop(struct cs_claim *claim);

#endif
