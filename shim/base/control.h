/*
 * What `custream ctl` and a process under custream agree on: an abstract unix socket (SOCK_SEQPACKET), one packet for the request, one for the answer.
 *
 * A request is a word (control.def) and, for `policy`, a blank and JSON. The answer is one line, "ok ..." or "error ...". To `about` and `record` it is "ok" and
 * fields, "name=value" with tabs between. After `record` the connection stays: calls are recorded until the client sends `end`, which is answered
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

/* The words of control.def: cs_ask_about is "about", cs_answer_ok is "ok". */
#define REQUEST(word, argument, text) static const char cs_ask_##word[] = #word;
#define ANSWER(name, text) static const char cs_answer_##name[] = text;
#include "shim/base/control.def"

/* `namespace` as readlink gives it for /proc/PID/ns/pid, "" where that can't be told. */
static inline socklen_t cs_control_address(struct sockaddr_un *address, int pid, const char *namespace_)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "custream/%.64s/%d", namespace_, pid);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

#endif
