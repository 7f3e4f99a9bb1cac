/* Table "findings": what the rules found, with what it costs and what to do. */
#include <ctype.h>
#include <stdlib.h>

#include "tools/custream/report/inside.h"

static const struct column columns[] = {
    {"id", "id", UNIT_TEXT, COLUMN_NAMES},          {"title", "finding", UNIT_TEXT, 0},
    {"stream", "where", UNIT_TEXT, COLUMN_NAMES},   {"cost_ns", "costs at most", UNIT_NS, 0},
    {"times", "times", UNIT_COUNT, 0},  {"evidence", "evidence", UNIT_TEXT, 0},
    {"remedy", "remedy", UNIT_TEXT, 0}, {"page", "page", UNIT_TEXT, 0},
};
enum { ID, TITLE, STREAM, COST, TIMES, EVIDENCE, REMEDY, PAGE, COLUMNS };

/* The heading of the page, as links name it. */
static const char *page_of(struct report *report, const char *id)
{
    char anchor[16] = {0};
    for (size_t i = 0; id[i] && i < sizeof anchor - 1; i++) anchor[i] = (char)tolower((unsigned char)id[i]);
    return report_text(report, "docs/findings.md#%s", anchor);
}

/* "CS113 and CS115" */
static const char *rules_in_calls(struct report *report, enum in_calls in_calls)
{
    const char *list = "";
    size_t left = 0;
    for (size_t i = 0; i < rule_count; i++) left += rules[i].in_calls == in_calls;
    for (size_t i = 0; i < rule_count; i++)
        if (rules[i].in_calls == in_calls) list = report_text(report, "%s%s%s", list, rules[i].id, --left > 1 ? ", " : left ? " and " : "");
    return list;
}

static const char *nothing_found(struct report *report, const struct run *run)
{
    if (run_sample(run)) return "The rules that need no GPU times found nothing to change; the tables say the rest.";
    if (run_has_times(run)) return "No rule found anything to change; the tables say the rest.";
    return report_text(report, "Without GPU times only %s could be judged, and %s in part: they found nothing to change. The tables say the rest.",
                       rules_in_calls(report, CALLS_ALL), rules_in_calls(report, CALLS_PART));
}

void section_findings(struct report *report, const struct model *of)
{
    struct findings found;
    findings_make(&found, report, of);
    struct table *table = report_table(report, "findings", "What to change", columns, COLUMNS);
    table->note = "Costs are upper bounds. Two findings may cost the same time: costs do not add up.";
    table->shown = 20;
    table->none = nothing_found(report, &of->run);
    for (size_t i = 0; i < found.count; i++) {
        const struct find *find = &found.rows[i];
        struct cell *row = table_row(table);
        row[ID].text = find->rule->id;
        row[TITLE].text = find->rule->title;
        row[STREAM].text = find->place;
        row[COST].number = find->cost;
        row[TIMES].number = (double)find->times;
        row[EVIDENCE].text = find->evidence;
        row[REMEDY].text = find->rule->remedy;
        row[PAGE].text = page_of(report, find->rule->id);
    }
    free(found.rows);
}
