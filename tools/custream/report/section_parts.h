/* What section_tables() is made of. */
#ifndef CS_REPORT_SECTION_PARTS_H
#define CS_REPORT_SECTION_PARTS_H

#include "tools/custream/report/section.h"

void section_host(struct report *report, const struct analysis *of);    /* "host_waits" */
void section_streams(struct report *report, const struct analysis *of); /* "streams" */
void section_work(struct report *report, const struct analysis *of);    /* "kernels", "copies", "graphs" */
void section_calls(struct report *report, const struct analysis *of);   /* "calls" */
void section_ranges(struct report *report, const struct analysis *of);  /* "ranges" */
void section_steps(struct report *report, const struct analysis *of);   /* "steps" */

#endif
