/* What CUDA says of a stream's capture. Asking changes nothing. */
#ifndef CS_API_CAPTURED_H
#define CS_API_CAPTURED_H

#include "shim/api/context.h"

/* The id: 0 unless the capture is active. */
status api_capture_info(CUstream stream, CUstreamCaptureStatus *now, cs_u64 *id);
cs_u64 api_capture_id(CUstream stream);
bool api_is_capturing(CUstream stream);
bool api_capture_met(void); /* false: nothing has been captured yet, as far as this library has met it */
/* Whether asking, or waiting, for the work's end would break a capture that goes on. Of the legacy stream: one of a blocking stream of the current context. */
bool api_stream_is_captured(CUstream stream);

/* A capture that was taken off its stream: its graph, and what the next node of it would depend on. */
struct api_paused {
    CUgraph graph;
    size_t count;
    CUgraphNode after[];
};

/* A capture that was begun, or taken over, here. Of the per-thread default stream there is one for each thread and context, the thread's alone. */
struct api_capture {
    _Atomic bool on;   /* also while it is paused */
    _Atomic cs_u64 id; /* CUDA's; 0: it was broken before that could be asked for */
    custream_capture_mode_t mode;
    _Atomic(struct api_paused *) paused;
    struct api_home home; /* of a thread's */
    struct api_capture *next;
};
void api_capture_drop(struct api_capture *capture); /* all that was to come of it */

#endif
