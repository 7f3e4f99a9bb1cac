/* Until the parts that it stands for are there. */
#include "tools/custream/report/section.h"

void section_run(struct report *report, const struct analysis *of) { (void)report, (void)of; }
void section_overlap(struct report *report, const struct analysis *of) { (void)report, (void)of; }
void section_tables(struct report *report, const struct analysis *of) { (void)report, (void)of; }
void section_findings(struct report *report, const struct analysis *of) { (void)report, (void)of; }
