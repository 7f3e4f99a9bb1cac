/* The calls of the host by name. */
#include <math.h>

#include "tools/custream/model/table.h"
#include "tools/custream/report/inside.h"

static const struct column call_columns[] = {
    {"call", "call", UNIT_TEXT, COLUMN_NAMES},
    {"times", "times", UNIT_COUNT, 0},
    {"failed", "failed", UNIT_COUNT, 0},
    {"total_ns", "total", UNIT_NS, 0},
    {"mean_ns", "mean", UNIT_NS, 0},
    {"longest_ns", "longest", UNIT_NS, 0},
};

enum { ROWS_SHOWN = 20, CALL_FAILED = 0 };

void section_calls(struct report *report, const struct model *of)
{
    const struct run *run = &of->run;
    const text not_ready = text_find(&run->texts, "CUDA_ERROR_NOT_READY"); /* a query's answer, and no failure */
    struct table *table = TABLE_NEW(report, "calls", "The calls", call_columns);
    struct tallies tallies = {0};
    for (size_t c = 0; c < run->call_count; c++) {
        const struct call *call = &run->calls[c];
        struct tally *tally = tally_of(&tallies, call->name);
        tally_add(tally, call->end - call->begin);
        tally->sum[CALL_FAILED] += call->result && !(call->result == not_ready && call_kind(call) == CS_KIND_QUERY);
    }
    tallies_sort(&tallies);
    for (size_t i = 0; i < tallies.count; i++) {
        const struct tally *tally = &tallies.rows[i];
        TABLE_PUT(table, call_columns, CELL_TEXT(text_in(run, (text)tally->key)), CELL_NUMBER(tally->times), CELL_NUMBER(tally->sum[CALL_FAILED]),
                  CELL_NUMBER(tally->total), CELL_NUMBER(tally_mean(tally)), CELL_NUMBER(tally->longest));
    }
    table->shown = ROWS_SHOWN;
    tallies_free(&tallies);
}
