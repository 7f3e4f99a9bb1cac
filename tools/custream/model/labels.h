/* How a report calls streams and threads. */
#ifndef CS_MODEL_LABELS_H
#define CS_MODEL_LABELS_H

#include "tools/custream/model/run.h"
#include "tools/custream/model/table.h"

/* As the timeline shows it; "stream 13" where it has no name. */
const char *stream_label(struct report *report, const struct run *run, uint32_t stream);
/* Its name and the system's number: "python3 1191"; "thread 1191" where it has no name. */
const char *thread_label(struct report *report, const struct run *run, uint32_t thread);
/* A piece of work's name for a sentence: of a long one the middle is left out. Cells that are a name alone have all of it. */
const char *work_label(struct report *report, const struct run *run, const struct work *work);

#endif
