/*
 * One line on stderr, for what the owner of the process must know.
 *
 * Each line is "custream: level: text". Safe from any thread, also from a signal handler and while the loader runs: a buffer on the stack and
 * one write(2), no stdio, no lock, no allocation. errno is kept. Never called on a recorded call's fast path.
 *
 * stderr is the file that descriptor 2 was when the library was loaded, by device and inode. Where it is another one by now (a daemon's data file), or takes
 * nothing, the line is dropped. A pipe that nobody reads makes no SIGPIPE.
 */
#ifndef CS_BASE_LOG_H
#define CS_BASE_LOG_H

#include "shim/base/compiler.h"

enum cs_log_level { CS_LOG_ERROR, CS_LOG_WARN, CS_LOG_INFO, CS_LOG_DEBUG };

/* Lines above this level are not written. Set once when the options are read; CS_LOG_WARN before. */
void cs_log_set_level(enum cs_log_level level);
void cs_log(enum cs_log_level level, const char *format, ...) CS_PRINTF(2, 3);

/* A line of a report that somebody asked for: "custream: SUBJECT: text", where warnings are written. */
void cs_log_report(const char *subject, const char *format, ...) CS_PRINTF(2, 3);

/* At most one line from each place in the code. */
#define cs_log_once(level, ...)                                                                                                                      \
    do {                                                                                                                                             \
        static _Atomic bool said_;                                                                                                                   \
        if (!atomic_exchange(&said_, true)) cs_log(level, __VA_ARGS__);                                                                              \
    } while (0)

/* Whether stderr was a terminal when it was last looked at; which is done by the latter, on a thread that has the program's descriptors. */
bool cs_log_is_terminal(void);
void cs_log_look_for_terminal(void);

/* Takes the file that descriptor 2 is now for stderr. */
void cs_log_remember(void);

/* From now on the calling thread has no stderr (base/apart.h): its lines are left for others. */
void cs_log_apart(void);

/* Prints what was left. Any thread that has the program's descriptors. */
void cs_log_relay(void);

/* Waits until what was left is printed, a moment at most. */
void cs_log_settle(void);

/* Called when a line has been left, on the thread that left it. NULL: nobody. */
extern void (*cs_log_left)(void);

void cs_log_after_fork_in_child(void);

#endif
