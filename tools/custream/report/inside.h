/* What the files of report/ share. */
#ifndef CS_REPORT_INSIDE_H
#define CS_REPORT_INSIDE_H

#include "tools/custream/report/report.h"

/* --- sections: each reads the model and adds its tables --- */

/* Why a table is empty that needs all work: "Absent: ..."; NULL where all work has times, or none.
 */
const char *sample_note(struct report *report, const struct run *run);

void section_run(struct report *report, const struct model *of);     /* "run", "devices" */
void section_idle(struct report *report, const struct model *of);    /* "idle", "idle_host" */
void section_overlap(struct report *report, const struct model *of); /* "serialized" */
void section_host(struct report *report, const struct model *of);    /* "host_waits" */
void section_streams(struct report *report, const struct model *of); /* "streams" */
void section_work(
    struct report *report, const struct model *of); /* "kernels", "copies", "graphs" */
void section_calls(struct report *report, const struct model *of);    /* "calls" */
void section_ranges(struct report *report, const struct model *of);   /* "ranges" */
void section_steps(struct report *report, const struct model *of);    /* "steps" */
void section_findings(struct report *report, const struct model *of); /* "findings" */

struct step_reader {
    const struct run *run;
    const struct idles *idles;
    size_t *device_idles; /* by device: its first row in idles; behind the last device's, where they
                             end */
};

struct step_reader step_reader_make(const struct run *run, const struct idles *idles);
void step_reader_free(struct step_reader *reader);

/*
 * The kernel, copy, call or cause of idle time that took the most more in ranges[slowest] than on
 * average in the `count` ranges, all of one thread; NULL if nothing did, or the range took hardly
 * longer than the others. A call that waits is named only where nothing else makes up for half of
 * what the range took more.
 */
const char *step_difference(const struct step_reader *reader, struct report *report,
    const uint32_t *ranges, uint32_t count, uint32_t slowest);

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

/* How much of what a rule looks for shows in the calls alone. */
enum in_calls { CALLS_NONE, CALLS_PART, CALLS_ALL };

struct rule {
    const char *id, *title;
    void (*look)(struct findings *to);
    bool costless; /* it is said whatever it costs */
    enum in_calls in_calls;
    const char *remedy;
};
extern const struct rule rules[];
extern const size_t rule_count;

/* One find of the rule that looks. Left out if it cost less than it takes to be worth a change, on
 * that device (NONE: on none). */
void finding(struct findings *to, uint32_t device, const char *place, double cost, uint64_t times,
    const char *evidence);

/* Texts for evidence: "1.234 ms"; a stream's name, with its GPU where there are several; a thread's
 * name. */
const char *find_time(struct findings *to, double ns);
const char *find_stream(struct findings *to, uint32_t stream);
const char *find_thread(struct findings *to, uint32_t thread);

/* The rules, by file. */
void look_legacy(struct findings *to); /* rules_order.c */
void look_blocking(struct findings *to);
void look_hardware_queues(struct findings *to);
void look_host_functions(struct findings *to);
void look_stale_waits(struct findings *to); /* rules_events.c */
void look_idle_waits(struct findings *to);
void look_synchronisation(struct findings *to); /* rules_host.c */
void look_blocking_copies(struct findings *to);
void look_pageable(struct findings *to);
void look_allocations(struct findings *to);
void look_launches(struct findings *to); /* rules_launch.c */
void look_objects(struct findings *to);  /* rules_calls.c */
void look_spinning(struct findings *to);
void look_failed(struct findings *to);
void look_priorities(struct findings *to); /* rules_streams.c */
void look_copy_engines(struct findings *to);

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
