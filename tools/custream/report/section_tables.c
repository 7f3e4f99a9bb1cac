#include "tools/custream/report/section_parts.h"

void section_tables(struct report *report, const struct analysis *of)
{
    section_host(report, of);
    section_streams(report, of);
    section_work(report, of);
    section_calls(report, of);
    section_ranges(report, of);
    section_steps(report, of);
}
