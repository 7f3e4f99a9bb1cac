/* What section_tables() is made of, and how its parts call threads and streams. */
#ifndef CS_REPORT_SECTION_PARTS_H
#define CS_REPORT_SECTION_PARTS_H

#include "tools/custream/report/section.h"

void section_host(struct report *report, const struct analysis *of);    /* "host_waits" */
void section_streams(struct report *report, const struct analysis *of); /* "streams" */
void section_work(struct report *report, const struct analysis *of);    /* "kernels", "copies", "graphs" */
void section_calls(struct report *report, const struct analysis *of);   /* "calls" */
void section_ranges(struct report *report, const struct analysis *of);  /* "ranges" */
void section_steps(struct report *report, const struct analysis *of);   /* "steps" */

/* As the timeline shows it; its number where it has no name. */
const char *stream_label(struct report *report, const struct run *run, uint32_t stream);
/* Its name; with its number where it is not the only one of that name. */
const char *thread_label(struct report *report, const struct run *run, uint32_t thread);

#endif
