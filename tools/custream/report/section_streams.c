/* Each stream: what it is, who made it, and how long it worked beside others. */
#include <math.h>
#include <stdlib.h>

#include "tools/custream/model/table.h"
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"

static const struct column stream_columns[] = {
    {"device", "GPU", UNIT_COUNT, COLUMN_NAMES},
    {"stream", "stream", UNIT_TEXT, COLUMN_NAMES | COLUMN_CUT_END},
    {"kind", "kind", UNIT_TEXT, 0},
    {"priority", "priority", UNIT_TEXT, 0},
    {"maker", "made by", UNIT_TEXT, 0},
    {"works", "work", UNIT_COUNT, 0},
    {"busy_ns", "busy", UNIT_NS, 0},
    {"alone_ns", "alone", UNIT_NS, 0},
    {"overlapped_ns", "beside others", UNIT_NS, 0},
};

static const char *kind_of(const struct stream *stream)
{
    if (!stream->known) return NULL;
    switch (stream->origin) {
    case ORIGIN_LEGACY: return "legacy";
    case ORIGIN_PER_THREAD: return "per-thread";
    case ORIGIN_CREATED: break;
    }
    return stream->non_blocking ? "non-blocking" : "blocking";
}

static const char *priority_of(struct report *report, const struct stream *stream)
{
    if (!stream->known) return NULL;
    if (stream->requested == stream->priority) return report_text(report, "%d", stream->priority);
    return report_text(report, "asked %d, given %d", stream->requested, stream->priority);
}

/* The library or program, or at least the call. */
static const char *maker_of(const struct run *run, const struct stream *stream)
{
    const text maker = stream->library ? stream->library : stream->created_by;
    return maker ? text_in(run, maker) : NULL;
}

static void stream_put(struct table *table, struct report *report, const struct run *run, uint32_t s, const struct stream_load *load)
{
    const struct stream *stream = &run->streams[s];
    TABLE_PUT(table, stream_columns, CELL_NUMBER(run->devices[stream->device].ordinal), CELL_TEXT(stream_label(report, run, s)), CELL_TEXT(kind_of(stream)),
              CELL_TEXT(priority_of(report, stream)), CELL_TEXT(maker_of(run, stream)), CELL_NUMBER(stream->works), CELL_NUMBER(load->busy),
              CELL_NUMBER(load->alone), CELL_NUMBER(load->busy - load->alone));
}

void section_streams(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    struct table *table = TABLE_NEW(report, "streams", "The streams", stream_columns);
    struct concurrency concurrency;
    struct tallies order = {0};
    concurrency_make(&concurrency, run);
    size_t unused = 0;
    for (uint32_t s = 0; s < run->stream_count; s++) {
        if (run->streams[s].works) tally_add(tally_of(&order, s), concurrency.streams[s].busy);
        else unused += run->streams[s].known;
    }
    if (run_sample(run)) table->note = sample_note(report, run);
    else if (unused) table->note = report_text(report, "Without work, and not listed: %zu.", unused);
    tallies_sort(&order);
    for (size_t i = 0; i < order.count; i++) {
        const uint32_t s = (uint32_t)order.rows[i].key;
        stream_put(table, report, run, s, &concurrency.streams[s]);
    }
    table->shown = 20;
    tallies_free(&order);
    concurrency_free(&concurrency);
}
