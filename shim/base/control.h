/*
 * What `custream ctl` and a process under custream agree on: an abstract unix socket (SOCK_SEQPACKET), one packet for the request, one for the answer.
 *
 * A request is a word (control.def) and, for `policy`, a blank and JSON. The answer is one line, "ok ..." or "error ...". To `about` and `record` it is "ok" and fields,
 * "name=value" with tabs between (CS_CONTROL_FIELDS). After `record` the connection stays: calls are recorded until the client sends `end`, which is answered
 * like `about` once all is in the file, or goes away. The socket's name has the process's id as the
 * process itself knows it, and which pid namespace that is, since abstract names belong to the network, which containers may share.
 */
#ifndef CS_BASE_CONTROL_H
#define CS_BASE_CONTROL_H

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "shim/base/compiler.h"

enum { CS_CONTROL_REQUEST = 128 << 10, CS_CONTROL_ANSWER = 8 << 10 }; /* bytes at most */

/* FIELD(name, printf's format). full: the trace takes no more; events_end: so many bytes of the file never change; now: ns of the wall clock, as the trace has it; parts: how many stay;
 * device, inode: which file stands at `trace`, that may have another name by now, or be in mounts of the process's own; base: its baseTimeNanoseconds. */
#define CS_CONTROL_FIELDS(FIELD) \
    FIELD(pid, "%d") FIELD(rank, "%d") FIELD(recording, "%d") FIELD(full, "%d") FIELD(recorded, "%llu") FIELD(lost, "%llu") FIELD(works, "%llu") FIELD(streams, "%u") \
    FIELD(events_end, "%llu") FIELD(now, "%llu") FIELD(parts, "%u") FIELD(program, "%s") FIELD(gpu, "%s") FIELD(why_not, "%s") FIELD(trace, "%s") \
    FIELD(device, "%llu") FIELD(inode, "%llu") FIELD(base, "%llu")

/* `namespace` as readlink gives it for /proc/PID/ns/pid, "" where that can't be told. */
static inline socklen_t cs_control_address(struct sockaddr_un *address, int pid, const char *namespace_)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "custream/%.64s/%d", namespace_, pid);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

#endif
