/*
 * Conditions of `--fail-if`: "METRIC RELATION VALUE", as "idle_host > 20%", or "finding CS101". Where two reports are compared, a value with a sign is how much
 * the metric differs from the earlier one: "gpu_busy > +5%" of that one's value, "wall > +10ms" more.
 */
#ifndef CS_REPORT_FAIL_IF_H
#define CS_REPORT_FAIL_IF_H

#include "tools/custream/model/table.h"

enum { CONDITION_MAX = 512 }; /* bytes of a message */

struct condition {
    const char *text;   /* as it was given; must outlive the condition */
    char name[32];      /* of the metric or finding */
    bool finding;
    bool change;        /* the value has a sign */
    int relation;       /* a row of the table of relations */
    double value;
    enum unit unit;     /* of the value: a share may be held against a time; of a change, SHARE is of the earlier value */
};

/* False: what is wrong, and what is allowed, in one line. `compares`: a value may have a sign. */
bool condition_read(struct condition *condition, const char *text, bool compares, char error[CONDITION_MAX]);

/*
 * Whether it holds of a report, and why, in one line. It holds too where the metric is not known: what could not be measured has not been shown to be good.
 * `before` is the earlier report, NULL: there is none. A finding that this one has too is no reason.
 */
bool condition_holds(const struct condition *condition, const struct report *before, const struct report *report, char reason[CONDITION_MAX]);

struct conditions {
    struct condition *rows;
    size_t count, capacity;
};

/* Both return a status, and say in `command`'s name what is wrong, or what holds. */
int conditions_add(struct conditions *conditions, const char *command, const char *text, bool compares);
int conditions_judge(const struct conditions *conditions, const char *command, const struct report *before, const struct report *report);
void conditions_free(struct conditions *conditions);

#endif
