/* How long a run lasted before each device's first work, and which calls the host was in meanwhile. */
#ifndef CS_MODEL_BEFORE_H
#define CS_MODEL_BEFORE_H

#include "tools/custream/model/idle.h"

struct before {
    double ns;           /* from the first thing in the trace to the device's first work; NAN: there may be earlier work that is not in the trace */
    text call;           /* the one that took the most of it, on all threads together; 0: none was made */
    double times, call_ns;
    double no_call_ns;   /* in which no thread was in a call; NAN: calls are missing there */
};

struct before before_first_work(const struct run *run, const struct span *device);

#endif
