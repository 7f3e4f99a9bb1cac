/* What the files of report/ share. */
#ifndef CS_REPORT_INSIDE_H
#define CS_REPORT_INSIDE_H

#include "tools/custream/report/report.h"

/* Why a table is empty that needs all work: "Absent: ..."; NULL where all work has times. */
const char *sample_note(struct report *report, const struct run *run);

/* A section reads the model and adds its tables. */
typedef void section(struct report *report, const struct model *of);
section section_run, section_idle, section_overlap, section_host, section_streams, section_work,
    section_calls, section_ranges, section_steps, section_findings;

/* --- metrics --- */

/* One number for each question that a condition may ask: the table "metrics", made from the
 * report's other tables. */
/* The last table of the report, once the others are made. */
void metrics_make(struct report *report, const struct model *of);

/* False: there is no such metric. Shares are of the time from the first to the last work of each
 * device. */
bool metric_find(const char *key, enum unit *unit);
/* Their keys, with ", " between them. */
void metric_keys(char *keys, size_t size);
/* NAN: not known of this run. */
double metric_value(const struct report *report, const char *key);

/* --- findings --- */

/*
 * Findings: what a report advises, one rule each. findings.c has the table of rules; rules_*.c
 * look, by theme; section_findings.c makes the table of what was found.
 *
 * A rule that cannot know says nothing. A cost is idle or serialized time that would go, at most:
 * costs of two findings may be the same time, and do not add up.
 */
/* Something that a rule found. Texts are the report's, or static. */
struct find {
    const struct rule *rule;
    const char *place; /* a stream or thread; "" */
    double cost;       /* ns; NAN: not known */
    uint64_t times;
    const char *evidence;
};

/* Where rules put what they find. */
struct findings {
    const struct model *of;
    struct report *report;   /* owns the texts */
    const struct rule *rule; /* that looks now */
    struct find *rows;
    size_t count, capacity;
};

/* Where it shows what a rule looks for. Only those of the first have to cost something. */
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

/* One find of the rule that looks, with its evidence. Left out if it cost less than it takes to be
 * worth a change, on that device (NONE: on none). */
void finding(struct findings *to, uint32_t device, const char *place, double cost, uint64_t times,
    const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Names for evidence; a stream's has its GPU where there are several. */
const char *find_stream(struct findings *to, uint32_t stream);
const char *find_device(struct findings *to, uint32_t device);
const char *find_thread(struct findings *to, uint32_t thread);

/* The rules, in rules_*.c by theme. */
looker look_legacy, look_blocking, look_hardware_queues, look_host_functions, look_stale_waits,
    look_idle_waits, look_synchronisation, look_blocking_copies, look_pageable, look_allocations,
    look_launches, look_objects, look_spinning, look_failed, look_priorities, look_copy_engines;

/* --- what printers share --- */

enum { SUMMARY_MAX = 1024 };
/* The run and its devices in sentences, one a number from 0; false: no more. */
bool summary_line(const struct report *report, size_t number, char line[SUMMARY_MAX]);

/* One of the table "findings", as text and page show it. */
struct finding {
    const char *id, *title, *place, *evidence, *remedy, *page; /* "" where there is none */
    char cost[128]; /* "at most 3.205 ms, 10.2 % of the GPU's time (12 times)" */
};
struct finding finding_at(const struct report *report, size_t row);

/* What stands above the findings, or that there are none. */
const char *findings_heading(const struct report *report);

/* Whether text and page show it in words, not as a table. */
bool is_told(const struct table *table);

/* The lanes of all devices as HTML: when each was idle and why, and what ran on each stream.
 * Nothing where no GPU did work. */
void lanes_print(FILE *file, const struct model *of);
extern const char page_style[], page_script[];
/* For an element's text or an attribute in quotes. */
void html_put(FILE *file, const char *text);

#endif
