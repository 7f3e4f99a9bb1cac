#include "tools/custream/report/inside.h"

#include <ctype.h>
#include <stdarg.h>

#include "shim/base/append.h"

struct condition {
    const char *text; /* the argument, which must outlive the condition */
    char name[80];    /* the metric's or finding's name */
    bool finding;
    bool change;  /* the value has a sign */
    int relation; /* the index in `relations` */
    double value;
    enum unit metric; /* the metric's unit */
    /* a share's value may be in ns; a change in SHARE is relative to the earlier value */
    enum unit unit;
};

enum { BELOW = 1, EQUAL = 2, ABOVE = 4 };
/* ">=" stands before ">": the first row whose sign the text begins with is taken. */
static const struct relation {
    const char *sign;
    int holds; /* the results of comparing metric and value for which the relation holds */
} relations[] = {{">=", ABOVE | EQUAL}, {"<=", BELOW | EQUAL}, {"==", EQUAL}, {"!=", BELOW | ABOVE},
    {">", ABOVE}, {"<", BELOW}};
enum { RELATIONS = sizeof relations / sizeof *relations };

/* The units that a value may have. */
static const struct suffix {
    const char *suffix;
    enum unit unit;
    double factor;
} suffixes[] = {{"%", UNIT_SHARE, 0.01}, {"ns", UNIT_NS, 1}, {"us", UNIT_NS, 1e3},
    {"ms", UNIT_NS, 1e6}, {"s", UNIT_NS, 1e9}, {"", UNIT_COUNT, 1}};
enum { SUFFIXES = sizeof suffixes / sizeof *suffixes };

static const char *skip_blanks(const char *at)
{
    while (isspace((unsigned char)*at)) at++;
    return at;
}

/* Reads a word of letters, digits and _ into condition->name. A long word is cut. */
static const char *read_name(struct condition *condition, const char *at)
{
    size_t length = 0;
    at = skip_blanks(at);
    while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
    if (at[length] == '(' && strchr(at, ')')) length = (size_t)(strchr(at, ')') - at) + 1;
    snprintf(condition->name, sizeof condition->name, "%.*s", (int)length, at);
    return skip_blanks(at + length);
}

static __attribute__((format(printf, 2, 3))) bool refuse(
    char error[CONDITION_MAX], const char *format, ...)
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
        n = cs_append(ids, sizeof ids, n, "%s%s", i ? ", " : "", rules[i].id);
    }
    return refuse(error, "'finding' needs one of %s, and no more", ids);
}

/* Reads a number and its unit into the condition; false: the text is no number with a known
 * unit. */
static bool read_number(struct condition *condition, const char *at)
{
    char *end = NULL;
    condition->value = isdigit((unsigned char)*at) ? strtod(at, &end) : NAN;
    const char *suffix = end ? skip_blanks(end) : "?";
    for (int i = 0; i < SUFFIXES; i++) {
        const size_t length = strlen(suffixes[i].suffix);
        if (strncmp(suffix, suffixes[i].suffix, length) || *skip_blanks(suffix + length)) continue;
        condition->value *= suffixes[i].factor;
        condition->unit = suffixes[i].unit;
        return true;
    }
    return false;
}

/* Reads the value, or the change, if the metric's unit allows it. */
static bool read_value(struct condition *condition, const char *at, char error[CONDITION_MAX])
{
    const enum unit metric = condition->metric;
    static const char *const allowed[][2] = {[UNIT_COUNT] = {"a count", "as in +5% or +100"},
        [UNIT_NS] = {"a time, as in 5ms (ns, us, ms, s)", "as in +5% or +10ms (ns, us, ms, s)"},
        [UNIT_SHARE] = {"a share, as in 20% or 0.2, or a time, as in 5ms (ns, us, ms, s)",
            "as in +5% or +10ms (ns, us, ms, s)"}};
    const bool share = metric == UNIT_SHARE, change = *at == '+' || *at == '-',
               read = read_number(condition, at + change);
    condition->change = change;
    if (*at == '-') condition->value = -condition->value;
    if (share && !change && condition->unit == UNIT_COUNT && condition->value <= 1)
        condition->unit = UNIT_SHARE;
    if (read &&
        (condition->unit == (share && change ? UNIT_NS : metric) ||
            (change && condition->unit == UNIT_SHARE) || (share && condition->unit == UNIT_NS)))
        return true;
    return refuse(error, change ? "a change of '%s' is a number with a unit, %s" : "'%s' needs %s",
        condition->name, allowed[metric][change]);
}

static bool condition_read(
    struct condition *condition, const char *text, bool compares, char error[CONDITION_MAX])
{
    *condition = (struct condition){.text = text};
    const char *at = read_name(condition, text);
    if (!strcmp(condition->name, "finding")) return read_finding(condition, at, error);
    /* The name may lack the ending "_ns" of its key, as "wall" does. */
    char with_ns[sizeof condition->name + 4];
    snprintf(with_ns, sizeof with_ns, "%s_ns", condition->name);
    if (!metric_find(condition->name, &condition->metric) &&
        strlen(with_ns) < sizeof condition->name && metric_find(with_ns, &condition->metric))
        strcpy(condition->name, with_ns);
    else if (!metric_find(condition->name, &condition->metric)) {
        char keys[CONDITION_MAX / 2 + 128];
        metric_keys(keys, sizeof keys);
        return refuse(error, "no metric '%s'; allowed: finding ID, %s", condition->name, keys);
    }
    while (condition->relation < RELATIONS && strncmp(at, relations[condition->relation].sign,
                                                  strlen(relations[condition->relation].sign)))
        condition->relation++;
    if (condition->relation == RELATIONS)
        return refuse(error, "'%s' needs one of >, >=, <, <=, ==, != and a value", condition->name);
    at = skip_blanks(at + strlen(relations[condition->relation].sign));
    if (!compares && (*at == '+' || *at == '-'))
        return refuse(error, "a value has no sign: a report compares nothing with an earlier one");
    return read_value(condition, at, error);
}

/* --- whether a condition holds --- */

static bool finding_holds(
    const struct condition *condition, const struct report *report, char reason[CONDITION_MAX])
{
    const struct table *findings = report_find(report, "findings");
    for (size_t row = 0; findings && row < findings->row_count; row++) {
        const struct finding finding = finding_at(report, row);
        if (strcmp(finding.id, condition->name)) continue;
        snprintf(reason, CONDITION_MAX, "%s%s%s", finding.title, *finding.gain ? ": " : "",
            finding.gain);
        return true;
    }
    return false;
}

/* Returns the metric's value in the unit of the condition's value. */
static double value_of(const struct condition *condition, const struct report *report)
{
    const double value = metric_value(report, condition->name);
    return condition->metric == UNIT_SHARE && condition->unit == UNIT_NS
               ? value * metric_value(report, "gpu_span_ns")
               : value;
}

static bool is_so(const struct condition *condition, double value)
{
    const int is = value < condition->value ? BELOW : value > condition->value ? ABOVE : EQUAL;
    return relations[condition->relation].holds & is;
}

static bool change_holds(const struct condition *condition, const struct report *before,
    const struct report *report, char reason[CONDITION_MAX])
{
    const double from = value_of(condition, before), to = value_of(condition, report);
    const enum unit unit = condition->metric == UNIT_SHARE ? condition->unit : condition->metric;
    if (isnan(from) || isnan(to)) {
        snprintf(reason, CONDITION_MAX, "%s is not known of %s", condition->name,
            isnan(from) ? "the runs before" : "the runs after");
        return true;
    }
    const double change = condition->unit != UNIT_SHARE ? to - from
                          : to == from                  ? 0
                          : from > 0                    ? to / from - 1
                                                        : INFINITY;
    const bool share = condition->unit == UNIT_SHARE, counted = !share && unit == UNIT_COUNT;
    const char *shown = SHOWN(share     ? UNIT_CHANGE_SHARE
                              : counted ? UNIT_COUNT
                                        : UNIT_CHANGE_NS,
        change);
    char behind[SHOWN_MAX + 8] = "";
    if (isfinite(change))
        snprintf(behind, sizeof behind, " (%s%s)", counted && change > 0 ? "+" : "", shown);
    snprintf(reason, CONDITION_MAX, "%s was %s and is %s%s", condition->name, SHOWN(unit, from),
        SHOWN(unit, to), behind);
    return is_so(condition, change);
}

static bool condition_holds(const struct condition *condition, const struct report *before,
    const struct report *report, char reason[CONDITION_MAX])
{
    if (condition->finding)
        return !(before && finding_holds(condition, before, reason)) &&
               finding_holds(condition, report, reason);
    if (condition->change) return change_holds(condition, before, report, reason);
    const double value = value_of(condition, report);
    if (isnan(value)) {
        snprintf(reason, CONDITION_MAX, "%s is not known of this run", condition->name);
        return true;
    }
    snprintf(reason, CONDITION_MAX, "%s is %s", condition->name, SHOWN(condition->unit, value));
    return is_so(condition, value);
}

/* --- several conditions --- */

int conditions_add(
    struct conditions *conditions, const char *command, const char *text, bool compares)
{
    char error[CONDITION_MAX];
    struct condition condition;
    const bool read = condition_read(&condition, text, compares, error);
    array_add(conditions->rows, conditions->count, conditions->capacity, condition);
    if (read) return STATUS_OK;
    return complain(command, "--fail-if='%.100s': %s", text, error);
}

int conditions_judge(const struct conditions *conditions, const char *command,
    const struct report *before, const struct report *report)
{
    int status = STATUS_OK;
    char reason[CONDITION_MAX];
    for (size_t i = 0; i < conditions->count; i++) {
        if (!condition_holds(&conditions->rows[i], before, report, reason)) continue;
        complain(command, "--fail-if='%.100s' holds: %s", conditions->rows[i].text, reason);
        status = STATUS_CONDITION;
    }
    return status;
}

void conditions_free(struct conditions *conditions)
{
    free(conditions->rows);
    *conditions = (struct conditions){0};
}
