#include "tools/custream/report/inside.h"

#include "shim/base/append.h"
#include "tools/custream/model/views.h"
#include "tools/custream/model/what_if.h"

/* A metric is the sum of a table's column. A share is this sum divided by the devices' spans. */
static const struct metric {
    const char *key;
    enum unit unit;
    const char *table, *columns[2]; /* columns[1]: a column to add; NULL */
} metrics[] = {
    {"gpu_busy", UNIT_SHARE, "devices", {"busy_ns"}},
    {"gpu_idle", UNIT_SHARE, "devices", {"idle_ns"}},
    {"gpu_span_ns", UNIT_NS, "devices", {"span_ns"}},
    {"gpu_busy_ns", UNIT_NS, "devices", {"busy_ns"}}, {"wall_ns", UNIT_NS, "run", {"wall_ns"}},
    {"kernels", UNIT_COUNT, "kernels", {"times"}}, {"copies", UNIT_COUNT, "copies", {"times"}},
    {"calls", UNIT_COUNT, "run", {"calls"}},
    {"lost", UNIT_COUNT, "run", {"lost_calls", "lost_works"}},
    {"default_stream_work", UNIT_COUNT, NULL, {NULL}}, /* counted on the legacy default streams */
};
enum { METRICS = sizeof metrics / sizeof *metrics };
static const char idle_prefix[] = "idle_"; /* one more metric for each cause: "idle_host" */

static const struct column columns[] = {
    {"key", "metric", UNIT_TEXT, COLUMN_NAMES, 0},
    {"unit", "unit", UNIT_TEXT, 0, 0},
    {"value", "value", UNIT_COUNT, 0, 0},
};

static double spans(const struct report *report)
{
    const double span = table_sum(report_find(report, "devices"), "span_ns");
    return span > 0 ? span : NAN;
}

static double metric_compute(
    const struct metric *metric, const struct report *report, const struct model *of)
{
    const bool of_gpu =
        !metric->table || strcmp(metric->table, "run"); /* the other tables are about GPU work */
    if (of_gpu && !run_has_times(&of->run)) return NAN;
    double works = 0;
    for (size_t s = 0; s < of->run.stream_count; s++)
        if (of->run.streams[s].origin == ORIGIN_LEGACY) works += of->run.streams[s].works;
    if (!metric->table) return works;
    if (!strcmp(metric->key, "lost") && parts_continue(&of->run))
        return NAN; /* the part that follows may have lost more */
    const struct table *table = report_find(report, metric->table);
    double sum = table_sum(table, metric->columns[0]);
    if (metric->columns[1]) sum += table_sum(table, metric->columns[1]);
    return metric->unit == UNIT_SHARE ? sum / spans(report) : sum;
}

static void metric_add(struct table *table, const char *key, enum unit unit, double value)
{
    static const char *const units[] = {
        [UNIT_COUNT] = "count", [UNIT_NS] = "ns", [UNIT_SHARE] = "share"};
    TABLE_PUT(table, columns, CELL(key), CELL(units[unit]), CELL(value));
}

void metrics_make(struct report *report, const struct model *of)
{
    struct table *table = TABLE_NEW(report, "metrics", "Metrics", columns);
    for (size_t m = 0; m < METRICS; m++)
        metric_add(table, metrics[m].key, metrics[m].unit, metric_compute(&metrics[m], report, of));
    const struct table *idle = report_find(report, "idle");
    for (int cause = 0; cause < CAUSES; cause++) {
        double sum = idle ? 0 : NAN;
        for (size_t row = 0; idle && row < idle->row_count; row++)
            if (!strcmp(table_text(idle, row, "cause"), cause_info[cause].key))
                sum += table_number(idle, row, "idle_ns");
        metric_add(table, report_text(report, "%s%s", idle_prefix, cause_info[cause].key),
            UNIT_SHARE, sum / spans(report));
    }
}

/* Reads "calls(NAME)", the metric of how often one call was made. False: the key is another. */
static bool call_read(const char *key, char name[64])
{
    const size_t length = strlen(key);
    if (strncmp(key, "calls(", 6) || key[length - 1] != ')' || length - 7 >= 64) return false;
    snprintf(name, 64, "%.*s", (int)length - 7, key + 6);
    return *name;
}

/* The calls that a trace can have: the driver's, and in other tools' traces the runtime's. */
static const char *const driver_calls[] = {
#define CALL(name, ...) #name,
#include "shim/calls/calls.def"
#undef CALL
    NULL,
};
static const char *const runtime_calls[] = {
#define RUNTIME(name, ...) #name,
#include "shim/calls/runtime.def"
#undef RUNTIME
    NULL,
};

static bool is_a_call(const char *const *calls, const char *name)
{
    while (*calls && !call_is_named(name, *calls)) calls++;
    return *calls;
}

/* Returns 0 for a call that was never made: a gate may forbid this call. NAN: a trace like this one
 * never has such a call, so a gate that forbids it would always pass. */
static double calls_named(const struct report *report, const char *name)
{
    const struct table *calls = report_find(report, "calls");
    double times = 0;
    bool found = false, runtime = false;
    for (size_t row = 0; calls && row < calls->row_count; row++) {
        const char *call = table_text(calls, row, "call");
        runtime |= !strncmp(call, "cuda", 4);
        if (!call_is_named(name, call)) continue;
        times += table_number(calls, row, "times");
        found = true;
    }
    if (found || is_a_call(driver_calls, name)) return times;
    return runtime && is_a_call(runtime_calls, name) ? 0 : NAN;
}

bool metric_find(const char *key, enum unit *unit)
{
    char name[64];
    if (call_read(key, name)) {
        *unit = UNIT_COUNT;
        return true;
    }
    const size_t prefix = sizeof idle_prefix - 1;
    *unit = UNIT_SHARE;
    for (int cause = 0; cause < CAUSES; cause++)
        if (!strncmp(key, idle_prefix, prefix) && !strcmp(key + prefix, cause_info[cause].key))
            return true;
    for (size_t m = 0; m < METRICS; m++)
        if (!strcmp(key, metrics[m].key)) {
            *unit = metrics[m].unit;
            return true;
        }
    return false;
}

void metric_keys(char *keys, size_t size)
{
    size_t n = 0;
    for (size_t m = 0; m < METRICS; m++)
        n = cs_append(keys, size, n, "%s%s", m ? ", " : "", metrics[m].key);
    n = cs_append(keys, size, n, ", calls(NAME)");
    for (int cause = 0; cause < CAUSES; cause++)
        n = cs_append(keys, size, n, ", %s%s", idle_prefix, cause_info[cause].key);
}

double metric_value(const struct report *report, const char *key)
{
    const struct table *table = report_find(report, "metrics");
    char name[64];
    if (call_read(key, name)) return calls_named(report, name);
    for (size_t row = 0; table && row < table->row_count; row++)
        if (!strcmp(table_text(table, row, "key"), key)) return table_number(table, row, "value");
    return NAN;
}
