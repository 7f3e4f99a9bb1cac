/*
 * What each piece of GPU work had to wait for, from the order in which the host enqueued it: exact, since a stream's order, events and the legacy default stream
 * are rules of CUDA's ("Stream Synchronization Behavior", CUDA Runtime API; cuStreamWaitEvent, CUDA Driver API).
 */
#ifndef CS_MODEL_ORDER_H
#define CS_MODEL_ORDER_H

#include "tools/custream/model/run.h"

/* Why a device was idle, or work late. This is the one list of causes; cause_info has a row for each. */
enum cause {
    CAUSE_HOST,           /* the host had not enqueued it */
    CAUSE_LAUNCH,         /* it was enqueued, and nothing else held it: the launch's own way to the GPU */
    CAUSE_EVENT,          /* a wait for an event's record */
    CAUSE_LEGACY,         /* the legacy default stream, and nothing else */
    CAUSE_ORDER,          /* work before it on its own stream */
    CAUSE_HOST_FUNCTION,  /* a host function before it on its stream */
    CAUSE_MEMORY_VALUE,   /* cuStreamWaitValue: a value in memory */
    CAUSE_GRAPH_EDGE,     /* an edge inside its graph */
    CAUSE_COPY_ENGINE,    /* ready; another copy in the same direction ran */
    CAUSE_DEVICE_FULL,    /* ready; the kernels that ran filled the device */
    CAUSE_HARDWARE_QUEUE, /* ready; more streams had work than there are hardware queues */
    CAUSE_UNKNOWN,
    CAUSES
};
struct cause_info {
    const char *key, *title; /* "host", "the host had not enqueued it" */
};
extern const struct cause_info cause_info[CAUSES];

/* Queues between the host and a GPU: CUDA_DEVICE_MAX_CONNECTIONS where nobody sets it (CUDA C++ Programming Guide, "CUDA Environment Variables"). Of more streams,
 * some share a queue, and work waits behind another stream's. */
enum { HARDWARE_QUEUES = 8 };

/* After its last obstacle is gone, work begins within this: launches take 3 to 10 us, a wait between streams 2 to 5 (docs/report.md). */
enum { LATENCY_NS = 100 * 1000 };

/* Of one piece of work: when it could have begun at the earliest, and who held it until then. */
struct hold {
    int64_t enqueued; /* when its call began; the work's own begin where the call is not known */
    int64_t ready;    /* when all that it had to wait for on the GPU had ended; INT64_MIN: nothing */
    int64_t without_legacy; /* the same if the legacy default stream ordered nothing */
    uint32_t blocker; /* the work that ended at `ready`; NONE */
    uint32_t via;     /* the call that made it wait: cuStreamWaitEvent, cuLaunchHostFunc, ...; NONE */
    uint32_t record;  /* by CAUSE_EVENT: the call that recorded the event; NONE */
    enum cause cause; /* ORDER, EVENT, LEGACY, HOST_FUNCTION, MEMORY_VALUE, GRAPH_EDGE; UNKNOWN: nothing held it */
};

/* One a work, by index. Ends the process where there is no memory. */
struct hold *order_make(const struct run *run);

#endif
