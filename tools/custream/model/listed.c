#include "tools/custream/model/listed.h"

#include <math.h>

static struct fact listed(const struct run *run, const char *list, unsigned n, const char *member)
{
    char path[64];
    snprintf(path, sizeof path, "totals.%s.%u.%s", list, n, member);
    const struct fact *fact = run_fact(run, path);
    return (struct fact){
        .value = fact ? fact->value : 0, .number = fact && !fact->value ? fact->number : NAN};
}

double listed_number(const struct run *run, const char *list, unsigned n, const char *member)
{
    return listed(run, list, n, member).number;
}

static const char *listed_text(
    const struct run *run, const char *list, unsigned n, const char *member)
{
    const text value = listed(run, list, n, member).value;
    return value ? text_in(run, value) : NULL;
}

uint32_t listed_stream(const struct run *run, const char *list, unsigned n)
{
    const double device = listed_number(run, list, n, "device"),
                 lane = listed_number(run, list, n, "stream");
    for (uint32_t s = 0; s < run->stream_count; s++)
        if (run->streams[s].lane == lane && run->devices[run->streams[s].device].ordinal == device)
            return s;
    return NONE;
}

static const struct cs_call_info *call_named(const char *name)
{
    for (uint32_t i = 1; name && i < CS_CALL_COUNT; i++)
        if (!strcmp(cs_call_info[i].name, name)) return &cs_call_info[i];
    return &cs_call_info[0];
}

struct inside *inside_read(const struct run *run, size_t *count)
{
    struct inside *threads = NULL;
    size_t found = 0, capacity = 0;
    double tid;
    for (unsigned n = 0; isfinite(tid = listed_number(run, "inside", n, "thread")); n++) {
        const struct fact all = listed(run, "inside", n, "all");
        const char *call = listed_text(run, "inside", n, "call");
        array_add(threads, found, capacity,
            (struct inside){.name = listed_text(run, "inside", n, "name"),
                .call = call,
                .function = listed_text(run, "inside", n, "function"),
                .info = call_named(call),
                .tid = tid,
                .since_us = listed_number(run, "inside", n, "since_us"),
                .device = listed_number(run, "inside", n, "device"),
                .event = listed_number(run, "inside", n, "event"),
                .stream = listed_stream(run, "inside", n),
                .all = all.value || isfinite(all.number)});
    }
    *count = found;
    return threads;
}
