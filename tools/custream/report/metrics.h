/* One number for each question that a condition may ask: the table "metrics", made from the report's other tables. */
#ifndef CS_REPORT_METRICS_H
#define CS_REPORT_METRICS_H

#include "tools/custream/report/section.h"

/* The last table of the report, once the others are made. */
void metrics_make(struct report *report, const struct analysis *of);

/* False: there is no such metric. Shares are of the time from the first to the last work of each device. */
bool metric_find(const char *key, enum unit *unit);
/* Their keys, with ", " between them. */
void metric_keys(char *keys, size_t size);
/* NAN: not known of this run. */
double metric_value(const struct report *report, const char *key);

#endif
