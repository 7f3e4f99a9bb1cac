#include "tools/custream/report/fail_if.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/report/findings.h"
#include "tools/custream/report/metrics.h"
#include "tools/custream/report/print.h"
#include "tools/custream/report/show.h"

enum { BELOW = 1, EQUAL = 2, ABOVE = 4 };
/* A longer sign stands before the one that it begins with. */
static const struct relation {
    const char *sign;
    int holds; /* for a metric that is so, held against the value */
} relations[] = {{">=", ABOVE | EQUAL}, {"<=", BELOW | EQUAL}, {"==", EQUAL}, {"!=", BELOW | ABOVE}, {">", ABOVE}, {"<", BELOW}};
enum { RELATIONS = sizeof relations / sizeof *relations };

/* The units that a value may have. */
static const struct suffix {
    const char *suffix;
    enum unit unit;
    double factor;
} suffixes[] = {{"%", UNIT_SHARE, 0.01}, {"ns", UNIT_NS, 1}, {"us", UNIT_NS, 1e3}, {"ms", UNIT_NS, 1e6}, {"s", UNIT_NS, 1e9}, {"", UNIT_COUNT, 1}};
enum { SUFFIXES = sizeof suffixes / sizeof *suffixes };

static const char *skip_blanks(const char *at)
{
    while (isspace((unsigned char)*at)) at++;
    return at;
}

/* A word of letters, digits and _ into condition->name, cut if it is too long to be one of ours. */
static const char *read_name(struct condition *condition, const char *at)
{
    size_t length = 0;
    at = skip_blanks(at);
    while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
    snprintf(condition->name, sizeof condition->name, "%.*s", (int)length, at);
    return skip_blanks(at + length);
}

static bool refuse(char error[CONDITION_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(char error[CONDITION_MAX], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, CONDITION_MAX, format, args);
    va_end(args);
    return false;
}

static bool read_finding(struct condition *condition, const char *at, char error[CONDITION_MAX])
{
    char ids[CONDITION_MAX / 2] = "";
    size_t n = 0;
    at = read_name(condition, at);
    condition->finding = true;
    for (size_t i = 0; i < rule_count; i++) {
        if (!*at && !strcmp(condition->name, rules[i].id)) return true;
        n += (size_t)snprintf(ids + n, n < sizeof ids ? sizeof ids - n : 0, "%s%s", i ? ", " : "", rules[i].id);
    }
    return refuse(error, "'finding' needs one of %s, and no more", ids);
}

/* The value and its unit, as far as the metric's unit allows it. */
static bool read_value(struct condition *condition, enum unit metric, const char *at, char error[CONDITION_MAX])
{
    static const char *const allowed[] = {[UNIT_COUNT] = "a count",
                                          [UNIT_NS] = "a time, as in 5ms (ns, us, ms, s)",
                                          [UNIT_SHARE] = "a share, as in 20% or 0.2, or a time, as in 5ms (ns, us, ms, s)"};
    char *end = NULL;
    if (*at == '+' || *at == '-') return refuse(error, "a value has no sign: a report compares nothing with an earlier one");
    condition->value = isdigit((unsigned char)*at) ? strtod(at, &end) : NAN;
    const char *suffix = end ? skip_blanks(end) : "?";
    for (int i = 0; i < SUFFIXES; i++) {
        if (strncmp(suffix, suffixes[i].suffix, strlen(suffixes[i].suffix)) || *skip_blanks(suffix + strlen(suffixes[i].suffix))) continue;
        condition->value *= suffixes[i].factor;
        condition->unit = suffixes[i].unit;
        if (metric == UNIT_SHARE && condition->unit == UNIT_COUNT && condition->value <= 1) condition->unit = UNIT_SHARE;
        if (condition->unit == metric || (metric == UNIT_SHARE && condition->unit == UNIT_NS)) return true;
    }
    return refuse(error, "'%s' needs %s", condition->name, allowed[metric]);
}

bool condition_read(struct condition *condition, const char *text, char error[CONDITION_MAX])
{
    *condition = (struct condition){.text = text};
    const char *at = read_name(condition, text);
    enum unit unit;
    if (!strcmp(condition->name, "finding")) return read_finding(condition, at, error);
    if (!metric_find(condition->name, &unit)) {
        char keys[CONDITION_MAX / 2 + 128];
        metric_keys(keys, sizeof keys);
        return refuse(error, "no metric '%s'; allowed: finding ID, %s", condition->name, keys);
    }
    while (condition->relation < RELATIONS && strncmp(at, relations[condition->relation].sign, strlen(relations[condition->relation].sign)))
        condition->relation++;
    if (condition->relation == RELATIONS) return refuse(error, "'%s' needs one of >, >=, <, <=, ==, != and a value", condition->name);
    return read_value(condition, unit, skip_blanks(at + strlen(relations[condition->relation].sign)), error);
}

static bool finding_holds(const struct condition *condition, const struct report *report, char reason[CONDITION_MAX])
{
    const struct table *findings = report_find(report, "findings");
    for (size_t row = 0; findings && row < findings->row_count; row++) {
        const struct finding finding = finding_at(report, row);
        if (strcmp(finding.id, condition->name)) continue;
        snprintf(reason, CONDITION_MAX, "%s%s%s", finding.title, *finding.cost ? ": " : "", finding.cost);
        return true;
    }
    return false;
}

bool condition_holds(const struct condition *condition, const struct report *report, char reason[CONDITION_MAX])
{
    char shown[SHOWN_MAX];
    enum unit unit;
    if (condition->finding) return finding_holds(condition, report, reason);
    double value = metric_value(report, condition->name);
    metric_find(condition->name, &unit);
    if (unit == UNIT_SHARE && condition->unit == UNIT_NS) value *= metric_value(report, "gpu_span_ns");
    if (isnan(value)) {
        snprintf(reason, CONDITION_MAX, "%s is not known of this run", condition->name);
        return true;
    }
    snprintf(reason, CONDITION_MAX, "%s is %s", condition->name, value_show(shown, condition->unit, value));
    return relations[condition->relation].holds & (value < condition->value ? BELOW : value > condition->value ? ABOVE : EQUAL);
}
