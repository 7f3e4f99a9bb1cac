/* A process that runs under custream, and how it is asked: the client's side of
 * shim/base/control.h. What goes wrong is a text in `error`. */
#ifndef CS_LIVE_PEER_H
#define CS_LIVE_PEER_H

#include "tools/custream/command.h"

#include "shim/base/control.h"

struct peer {
    int pid;     /* as this command knows it */
    int own_pid; /* as the process knows itself: in its pid namespace */
    char namespace_[64];
    int uid;    /* whose it is now */
    int fd;     /* the connection; -1: there is none */
    long until; /* by peer_clock_ms(); 0: 20 seconds for each question */
    char error[512];
};

/* A file, whatever its name is; zeros: that is not known. */
struct file_at {
    unsigned long long device, inode;
};

/* What a process says of itself; texts stand in `line`, as it sent them. */
struct about {
    int rank;             /* -1: it has none */
    bool recording, full; /* full: its file takes no more */
    unsigned long long recorded, lost, works, events_end, now, base, streams, parts;
    const char *program, *gpu, *why_not, *trace; /* trace "": there is no file */
    struct file_at file;
    char line[CS_CONTROL_ANSWER];
};

/* Of a thread's number, its process. */
bool peer_find(struct peer *peer, int pid);
/* Sends a request over a new connection. */
bool peer_ask(struct peer *peer, const char *request);
/* Asks all at once, none connected before. Who could not be asked has no connection afterwards. */
void peers_ask(struct peer *const *each, size_t count, const char *request);
/* The next answer without its newline. */
bool peer_hear(struct peer *peer, char answer[CS_CONTROL_ANSWER]);
/* The next answer is one to about, record or end. False: it is another, or there is none. */
bool peer_hear_about(struct peer *peer, struct about *about);
/* Time that has passed, also under libfaketime: whoever waits says how long, and since when. */
long peer_clock_ms(void);
void peer_clock_waited(long since, long ms);
/* What stands in /proc/PID/NAME, with two NULs behind it; how many bytes. */
size_t proc_read(int pid, const char *name, char *text, size_t room);
bool peer_is_stopped(int pid);
bool peer_has_shut_itself_in(
    int pid); /* it has seccomp filters that we have not, and answers nobody */
/* Which program it runs: another number once it has executed one, 0 where that is not known. */
unsigned long long peer_image(int pid);
bool peer_ended(int pid); /* it is no more, or is a zombie */
void peer_close(struct peer *peer);

/* Takes over an answer; false: it is none of these. */
bool about_read(struct about *about, const char *answer);

/* Calls `found` with each process of this user (root: of anybody) that listens in this network,
 * connected and not asked yet. How many there were no descriptors for. */
size_t peers_each(void (*found)(void *of, struct peer *peer), void *of);

#endif
