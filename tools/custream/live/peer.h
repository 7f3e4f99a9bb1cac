/* Asks processes under custream (base/control.h). A function that fails says why in `error`. */
#ifndef CS_LIVE_PEER_H
#define CS_LIVE_PEER_H

#include "tools/custream/command.h"

#include "shim/base/control.h"

struct peer {
    int pid;     /* the process's number, as this command sees it */
    int own_pid; /* the number in the process's own pid namespace */
    char namespace_[64];
    int uid;    /* the user whose files the process may open (its fsuid); -1: not known */
    int fd;     /* the connection; -1: there is none */
    long until; /* when waiting ends, by peer_clock_ms(); 0: 20 seconds after waiting began */
    char error[512];
};

/* The answer of a process about itself: the fields of control.def. A field that an older library
 * does not send is 0 or "". Texts point into `line`. rank: -1 if the process has none; trace: "" if
 * the process has no file. */
struct about {
#define INT(name) int name;
#define NUMBER(name) unsigned long long name;
#define TEXT(name) const char *name;
#include "shim/base/control.def"
    char line[CS_CONTROL_ANSWER];
};

/* Finds the process of this number; a thread's number finds its process. */
bool peer_find(struct peer *peer, int pid);
/* Sends a request, over a new connection if there is none. */
bool peer_ask(struct peer *peer, const char *request);
/* Sends a request to all, over new connections. A peer that cannot be asked has no connection
 * afterwards. */
void peers_ask(struct peer *const *each, size_t count, const char *request);
/* Returns the text behind the first word of an answer; NULL: it begins with another word. */
const char *answer_behind(const char *answer, const char *word);
/* Reads the next answer, without its newline. */
bool peer_hear(struct peer *peer, char answer[CS_CONTROL_ANSWER]);
/* Reads the next answer, to the request "about", "record" or "end". False: no answer came, or an
 * answer of another kind. */
bool peer_hear_about(struct peer *peer, struct about *about);
/* Returns a time in milliseconds. It is the kernel's, also under libfaketime, whose clock may
 * stand. */
long peer_clock_ms(void);
/* Reads /proc/PID/NAME and puts two NULs behind it. Returns how many bytes were read. */
size_t proc_read(int pid, const char *name, char *text, size_t room);
bool peer_is_stopped(int pid);
/* Whether the process has more seccomp filters than this command: then it may answer nobody. */
bool peer_has_shut_itself_in(int pid);
/* Returns a number for the program that the process runs, which changes at each exec; 0: not
 * known. */
unsigned long long peer_image(int pid);
bool peer_ended(int pid); /* whether the process is gone, or a zombie */
void peer_close(struct peer *peer);

/* Calls `found` with each process of this user (root: of anybody) that listens in this network,
 * connected and not asked yet. Returns how many were left out because no descriptor was free. */
size_t peers_each(void (*found)(void *of, struct peer *peer), void *of);

#endif
