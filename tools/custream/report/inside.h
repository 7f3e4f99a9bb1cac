/* Declarations that the files of report/ share. */
#ifndef CS_REPORT_INSIDE_H
#define CS_REPORT_INSIDE_H

#include "tools/custream/report/report.h"

/* Returns why a table that needs all work's times is empty: "Absent: ..."; NULL: it is not. */
const char *sample_note(struct report *report, const struct run *run);

/* A section reads the model and adds its tables. */
typedef void section(struct report *report, const struct model *of);
section section_run, section_idle, section_overlap, section_host, section_streams, section_work,
    section_calls, section_ranges, section_steps, section_findings;

/* --- metrics --- */

/* The table "metrics": one number for each question that a condition may ask. */
/* Makes this table. All other tables must be made already. */
void metrics_make(struct report *report, const struct model *of);

/* Returns a metric's unit; false: it is no metric. Shares are of the devices' spans. */
bool metric_find(const char *key, enum unit *unit);
/* Writes the metrics' keys, with ", " between them. */
void metric_keys(char *keys, size_t size);
/* Returns a metric's value; NAN: not known for this run. */
double metric_value(const struct report *report, const char *key);

/* --- findings --- */

/*
 * Findings: a report's pieces of advice, one rule each. findings.c has the table of rules, and
 * makes the table of what was found; rules_*.c look for it, by theme.
 *
 * A rule that lacks data finds nothing. A finding's cost is the idle or serialized time that would
 * go, at most: two findings' costs may be the same time, so they do not add up.
 */
/* Something that a rule found. Its texts are the report's, or static. */
struct find {
    const struct rule *rule;
    const char *place; /* a stream's or thread's name; "": none */
    double cost;       /* ns; NAN: not known */
    uint64_t times;
    const char *evidence;
};

/* The list to which rules add what they find. */
struct findings {
    const struct model *of;
    struct report *report;   /* owns the texts */
    const struct rule *rule; /* the rule that looks now */
    struct find *rows;
    size_t count, capacity;
};

/* The ways in which rules find their subject: by lost time (IN_COSTS), by other facts about GPU
 * work (ANYWAY), or by calls, in part or alone. Only finds of IN_COSTS must have a cost. */
enum shows { IN_COSTS, ANYWAY, PARTLY_IN_CALLS, IN_CALLS };

typedef void looker(struct findings *to);
struct rule {
    const char *id, *title;
    looker *look;
    enum shows shows;
    const char *remedy;
};
extern const struct rule rules[];
extern const size_t rule_count;

/* Adds a find of the rule that looks now, with its evidence. For a rule of IN_COSTS, `device` is
 * the device that lost the time, and a find that cost too little of that device's time is left out.
 * For other rules it is a device or NONE. */
void finding(struct findings *to, uint32_t device, const char *place, double cost, uint64_t times,
    const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Return names for evidence. A stream's name has its GPU, if there are several. */
const char *find_stream(struct findings *to, uint32_t stream);
const char *find_device(struct findings *to, uint32_t device);
const char *find_thread(struct findings *to, uint32_t thread);

/* The rules, in rules_*.c by theme. */
looker look_legacy, look_blocking, look_hardware_queues, look_host_functions, look_stale_waits,
    look_idle_waits, look_synchronisation, look_blocking_copies, look_pageable, look_allocations,
    look_launches, look_objects, look_spinning, look_failed, look_priorities, look_copy_engines;

/* --- what printers share --- */

enum { SUMMARY_MAX = 1024 };
/* Writes sentence `number`, from 0, about the run and its devices; false: there are no more. */
bool summary_line(const struct report *report, size_t number, char line[SUMMARY_MAX]);

/* A row of the table "findings", as text and page show it. */
struct finding {
    const char *id, *title, *place, *evidence, *remedy, *page; /* "": none */
    char cost[128]; /* "at most 3.205 ms, 10.2 % of the GPU's time (12 times)" */
};
struct finding finding_at(const struct report *report, size_t row);

/* Returns the heading above the findings, or the sentence that there are none. */
const char *findings_heading(const struct report *report);

/* Whether text and page show the table in words, not as a table. */
bool is_told(const struct table *table);

/* Writes the lanes of all devices as HTML; nothing if no GPU worked. */
void lanes_print(FILE *file, const struct model *of);
extern const char page_style[], page_script[];
/* Writes a text so that it can stand in an element or in a quoted attribute. */
void html_put(FILE *file, const char *text);

#endif
