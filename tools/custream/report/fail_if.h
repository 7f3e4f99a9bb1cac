/*
 * Conditions of `--fail-if`: "METRIC RELATION VALUE", as "idle_host > 20%", or "finding CS101". A value has no sign: with one, it is kept for how much two
 * reports differ.
 */
#ifndef CS_REPORT_FAIL_IF_H
#define CS_REPORT_FAIL_IF_H

#include "tools/custream/report/table.h"

enum { CONDITION_MAX = 512 }; /* bytes of a message */

struct condition {
    const char *text;   /* as it was given; must outlive the condition */
    char name[32];      /* of the metric or finding */
    bool finding;
    int relation;       /* a row of the table of relations */
    double value;
    enum unit unit;     /* of the value: a share may be held against a time */
};

/* False: what is wrong, and what is allowed, in one line. */
bool condition_read(struct condition *condition, const char *text, char error[CONDITION_MAX]);

/* Whether it holds of a report, and why, in one line. It holds too where the metric is not known: what could not be measured has not been shown to be good. */
bool condition_holds(const struct condition *condition, const struct report *report, char reason[CONDITION_MAX]);

#endif
