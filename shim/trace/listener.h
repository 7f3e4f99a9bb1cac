/*
 * Who hears on the writer's thread what the timeline is made of: the audit, which stands above (audit/audit.h). One at most.
 *
 * Set before the writer starts, and constant then. All of its functions run on the writer's thread.
 */
#ifndef CS_TRACE_LISTENER_H
#define CS_TRACE_LISTENER_H

#include "shim/object/stream.h"
#include "shim/trace/record.h"

struct cs_listener {
    void (*begin)(void); /* a new process's trace */

    /* A record of a ring, once each, in its thread's order: a place, a call (`work`: the id of its struct cs_op, 0 none), calls that were lost. */
    void (*place)(struct cs_thread *thread, const struct cs_record *record);
    void (*call)(struct cs_thread *thread, const struct cs_record *record, struct cs_stream *stream, cs_u64 work, cs_u64 begin_ns);
    void (*lost)(struct cs_thread *thread, cs_u64 count);

    void (*thread_ends)(const struct cs_thread *thread); /* all of its records have been told of; its state is another's next */

    void (*round_begins)(void); /* before the rings are read */
    void (*round)(void);        /* they have been, and what came of GPU times is written */
    void (*end)(void);          /* nothing comes any more */

    char *(*put)(char *at, size_t room); /* what it adds to the trailer, in at most so many bytes (1 KiB at least) */
};
extern const struct cs_listener *cs_listener; /* NULL: nobody; timeline.c */

#define CS_TELL(what, ...)                                                                                                                           \
    do {                                                                                                                                             \
        if (CS_UNLIKELY(cs_listener)) cs_listener->what(__VA_ARGS__);                                                                                \
    } while (0)

#endif
