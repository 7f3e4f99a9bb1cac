/* Event objects. */
#ifndef CS_API_EVENT_H
#define CS_API_EVENT_H

#include "shim/api/stream.h"

struct custream_event_s {
    struct api_object object;
    _Atomic(CUevent) handle; /* NULL: lazy, and not made yet */
    _Atomic cs_u64 link;     /* as of a stream */
    struct api_home home;    /* of those that are made here */
    unsigned flags;
    bool owned, external, lazy, once, imported, flags_known;
    _Atomic bool recorded;
    _Atomic cs_u64 captured, captured_on; /* the capture that it was last recorded in, as far as is known, and the stream object's id; 0: in none */
    void (*release)(void *);
    void *owner;
};

#define USABLE_EVENT(event) TRY(api_event_usable(event))
status api_event_usable(custream_event_t event);
status api_event_record(custream_event_t event, custream_t stream, unsigned flags);
status api_event_wait(custream_event_t event, custream_t stream, unsigned flags);
/* An event in the stream's own context, where alone it can be recorded on it. */
status api_event_in(custream_t stream, const custream_event_options_t *options, custream_event_t *event);
/* What a stream that is none of CUDA's default ones records when another waits for it. Referenced for the caller. */
status api_event_cached(custream_t stream, custream_event_t *event);

#endif
