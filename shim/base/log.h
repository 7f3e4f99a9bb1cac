/*
 * One line on stderr, for what the owner of the process must know.
 *
 * Each line is "custream: level: text". Safe from any thread, also from a signal handler and while the loader runs: a buffer on the stack and
 * one write(2), no stdio, no lock, no allocation. errno is kept. Never called on a recorded call's fast path.
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

#endif
