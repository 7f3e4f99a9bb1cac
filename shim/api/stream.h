/* Stream objects. */
#ifndef CS_API_STREAM_H
#define CS_API_STREAM_H

#include "shim/api/captured.h"

enum api_stream_kind { API_OWNED, API_WRAPPED, API_POOLED, API_LEGACY, API_PER_THREAD, API_DEVICE_DEFAULT, API_STREAM_KINDS };

struct custream_s {
    struct api_object object;
    enum api_stream_kind kind;
    CUstream handle;
    struct api_home home; /* of those that are made here; else nowhere: asked for */
    _Atomic unsigned flags; /* where they are known: they cannot be asked for in a capture */
    _Atomic bool flags_known;
    int priority, requested;
    int passed;          /* the priority that CUDA was asked for: a policy's answer to the same again is the same */
    _Atomic cs_u64 link; /* what the preload library knows it as; 0: nothing so far */
    void (*release)(void *);
    void *owner;
    _Atomic(custream_event_t) cached;
    struct api_capture capture;
    char *name;             /* the lock's */
    custream_t next_joined; /* in a list of those that are to end later */
    cs_u64 joined_in;       /* the capture, of one that was joined in it */
};

#define USABLE_STREAM(stream) TRY(api_stream_usable(stream))
status api_stream_usable(custream_t stream); /* and what it stands for lives, as far as is known */
bool api_stream_has_ended(custream_t stream);  /* as far as the preload library knows */
cs_u64 api_stream_link(custream_t stream);     /* looked for again where there was none */
bool api_stream_is_default(custream_t stream); /* whose context and device are those that are current */
/* For default streams: a context must be current. _ready: of a usable one, and the driver is there. */
status api_stream_enter(custream_t stream);
status api_stream_ready(custream_t stream);
#define READY_STREAM(stream) TRY(api_stream_ready(stream))
status api_enter_of(custream_t stream, struct api_scope *scope); /* the stream's own context; of a default stream any */
status api_stream_new(custream_t *out, enum api_stream_kind kind, CUstream handle, int device);

void api_postponed_end(void);

/* Streams that were joined in a capture end once it is over, since CUDA would mind before. This looks which ones; not under a lock. */
void api_joined_end(void);
bool api_joined_in(cs_u64 capture, const struct api_home *home); /* is there one? 0, or NULL: any */
void api_joined_keep(custream_t stream, cs_u64 capture);         /* takes the caller's reference */

#endif
