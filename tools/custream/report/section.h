/* The sections of a report: each reads the run and adds its tables. */
#ifndef CS_REPORT_SECTION_H
#define CS_REPORT_SECTION_H

#include "tools/custream/model/idle.h"
#include "tools/custream/model/overlap.h"
#include "tools/custream/model/table.h"

/* Why a table is empty that needs all work: "Absent: ..."; NULL where all work has times, or none. */
const char *sample_note(struct report *report, const struct run *run);

/* Column "whole" of a file of another tool. */
#define WHOLE_NOT_SAID "the file does not say"

/* All that was found out of a run; sections only read it. */
struct analysis {
    const struct run *run;
    const struct hold *holds;   /* by work */
    const struct idles *idles;
    const struct overlap *overlap;
};

void section_run(struct report *report, const struct analysis *of);      /* "run", "devices" */
void section_idle(struct report *report, const struct analysis *of);     /* "idle", "idle_host" */
void section_overlap(struct report *report, const struct analysis *of);  /* "serialized" */
void section_tables(struct report *report, const struct analysis *of);   /* "host_waits", "streams", "kernels", "copies", "graphs", "calls", "ranges", "steps" */
void section_running(struct report *report, const struct analysis *of);  /* "running", "running_streams", "running_threads" */
void section_findings(struct report *report, const struct analysis *of); /* "findings" */

#endif
