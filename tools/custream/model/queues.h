/* The operations of each stream in the order of their calls, and how far each stream is known to have got. */
#ifndef CS_MODEL_QUEUES_H
#define CS_MODEL_QUEUES_H

#include "tools/custream/model/run.h"

struct queues {
    const struct run *run;
    bool several;             /* contexts: which one a call was for is not known */
    struct groups operations; /* calls by stream */
    uint32_t *done;           /* by stream: so many of its operations have ended */
    uint32_t *place;          /* by call: among its stream's operations */
    uint32_t *record;         /* by call: of a wait, the call that recorded its event; NONE: there is none */
    uint32_t *domain;         /* by stream (domains.h) */
    uint32_t *legacy;         /* by domain: the legacy default stream; NONE */
    struct queue_step { uint32_t stream, until; } *steps; /* to be taken */
    size_t step_count, step_capacity;
};

void queues_make(struct queues *queues, const struct run *run);
void queues_free(struct queues *queues);

static inline uint32_t queue_length(const struct queues *q, uint32_t stream) { return q->operations.begins[stream + 1] - q->operations.begins[stream]; }
static inline uint32_t queue_call(const struct queues *q, uint32_t stream, uint32_t n) { return q->operations.members[q->operations.begins[stream] + n]; }
static inline bool queue_is_open(const struct queues *q, uint32_t stream) { return q->done[stream] < queue_length(q, stream); }
static inline uint32_t queue_head(const struct queues *q, uint32_t stream) { return queue_call(q, stream, q->done[stream]); }
static inline bool queue_has_ended(const struct queues *q, uint32_t call) { return q->place[call] < q->done[q->run->calls[call].stream]; }

/* The stream, from `from` on, that holds the head of `stream` because of the legacy default stream; NONE. */
uint32_t queue_legacy(const struct queues *q, uint32_t stream, uint32_t from);

/* A stream that would hold it likewise if both are of one context, which is not known of one of them; NONE. */
uint32_t queue_legacy_perhaps(const struct queues *q, uint32_t stream);

#endif
