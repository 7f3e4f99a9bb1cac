/* The tables that are compared. */
#include "tools/custream/diff/compare.h"

const struct subject subjects[] = {
    {"kernels", "kernel", LIST_CHANGED, .steady = true, .value = "total_ns", .times = "times", .gpu = true},
    {"copies", "copy", LIST_CHANGED, .steady = true, .value = "total_ns", .times = "times", .gpu = true},
    {"graphs", "graph", LIST_CHANGED, .steady = true, .value = "total_ns", .times = "times", .gpu = true},
    {"idle", "idle", LIST_CHANGED, .label = "why", .value = "idle_ns", .times = "times", .gpu = true},
    {"idle_host", "host", LIST_HOST, .value = "idle_ns", .times = "times", .gpu = true},
    {"streams", "stream", LIST_FOLLOWS, .steady = true, .value = "busy_ns", .times = "works", .gpu = true},
    {"ranges", "range", LIST_FOLLOWS, .value = "total_ns", .times = "times"},
    {"steps", "step", LIST_FOLLOWS, .value = "mean_ns", .times = "times", .mean = true},
    {"host_waits", "wait", LIST_FOLLOWS, .value = "blocked_ns", .times = "times", .gpu = true},
    {"calls", "call", LIST_FOLLOWS, .value = "total_ns", .times = "times"},
    {"metrics", "metric", LIST_METRICS, .value = "value"},
    {"findings", "finding", LIST_FINDINGS, .value = "cost_ns", .times = "times", .gpu = true},
};
const size_t subject_count = sizeof subjects / sizeof *subjects;
