/* How many streams of a device had work that was enqueued and not done, at any time. */
#ifndef CS_MODEL_QUEUED_H
#define CS_MODEL_QUEUED_H

#include "tools/custream/model/order.h"

struct queued {
    int64_t *begins, *ends; /* of the times in which a stream had work, each in order */
    size_t count;
    bool made;
};

/* `queued` is zeros before the first question, and is made then. Ends the process where there is no memory. */
size_t queued_streams(struct queued *queued, const struct run *run, const struct hold *holds, uint32_t device, int64_t at);
void queued_free(struct queued *queued);

#endif
