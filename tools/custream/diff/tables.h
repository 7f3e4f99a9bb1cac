/* Puts the result of a comparison into tables of a report. */
#ifndef CS_DIFF_TABLES_H
#define CS_DIFF_TABLES_H

#include "tools/custream/diff/compare.h"
#include "tools/custream/report/report.h"

/* Grows if readers of the JSON have to change. New tables and columns do not raise it. */
enum { DIFF_VERSION = 1 };

/* Adds the tables "runs", "devices", "changed", "follows", "perhaps", "findings" and "metrics". */
void diff_tables(struct report *report, const struct comparison *of);

/* Printers for a report that diff_tables() filled. */
printer print_diff_text, print_diff_json;

#endif
