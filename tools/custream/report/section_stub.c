/* Until the parts that it stands for are there. */
#include <stdlib.h>

#include "tools/custream/report/section.h"

const struct cause_info cause_info[CAUSES] = {
    {"host", "the host had not enqueued it"}, {"launch", "the launch's own way to the GPU"}, {"event", "a wait for an event"},
    {"legacy", "the legacy default stream"},  {"order", "work before it on its stream"},     {"host_function", "a host function before it"},
    {"memory_value", "a value in memory"},    {"graph_edge", "an edge inside its graph"},    {"copy_engine", "another copy in the same direction"},
    {"device_full", "the device was full"},   {"hardware_queue", "too few hardware queues"}, {"unknown", "not known"},
};
struct hold *order_make(const struct run *run)
{
    return calloc(run->work_count + 1, sizeof(struct hold));
}
void idles_make(struct idles *idles, const struct run *run, const struct hold *holds)
{
    (void)holds;
    *idles = (struct idles){.devices = calloc(run->device_count + 1, sizeof *idles->devices)};
}
void idles_free(struct idles *idles)
{
    free(idles->devices);
}
void section_run(struct report *report, const struct analysis *of)
{
    (void)report, (void)of;
}
void section_idle(struct report *report, const struct analysis *of)
{
    (void)report, (void)of;
}
void section_overlap(struct report *report, const struct analysis *of)
{
    (void)report, (void)of;
}
void section_tables(struct report *report, const struct analysis *of)
{
    (void)report, (void)of;
}
void section_findings(struct report *report, const struct analysis *of)
{
    (void)report, (void)of;
}
