/* What a comparison says, as tables of a report. */
#ifndef CS_DIFF_TABLES_H
#define CS_DIFF_TABLES_H

#include "tools/custream/diff/compare.h"
#include "tools/custream/report/report.h"

/* Raised when a reader of the JSON would have to change. New tables and columns are no change. */
enum { DIFF_VERSION = 1 };

/* "runs", "devices", "changed", "follows", "perhaps", "findings", "metrics". */
void diff_tables(struct report *report, const struct comparison *of);

/* Of a report by diff_tables(). */
printer print_diff_text, print_diff_json;

#endif
