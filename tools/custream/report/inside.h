/* Declarations that the files of report/ share. */
#ifndef CS_REPORT_INSIDE_H
#define CS_REPORT_INSIDE_H

#include "tools/custream/model/steps.h"
#include "tools/custream/report/report.h"

/* Returns why a table that needs all work's times is empty: "Absent: ..."; NULL: the times are
 * there. */
const char *sample_note(struct report *report, const struct run *run);

/* A section reads the model and adds its tables. */
typedef void section(struct report *report, const struct model *of);
section section_run, section_idle, section_host, section_streams, section_work, section_calls,
    section_ranges, section_steps, section_findings;

/* Adds the tables "steady" and "computing". `ranges`: the steps that the ranges named `range` tell;
 * zeros: no ranges tell steps, so the work has to tell them. */
void section_steady(
    struct report *report, const struct model *of, const struct repeats *ranges, const char *range);

/* The time of a run before something, and the calls that the host was in meanwhile. */
struct before {
    double ns; /* counted from the first thing in the trace; NAN: earlier work may be missing */
    /* the name of the calls that took longest, all threads summed; 0: no call was made */
    text call;
    double times, call_ns;
    double no_call_ns; /* ns in which no thread was in a call; NAN: calls are missing */
};
struct before before_of(const struct run *run, int64_t first);

/* Adds the table "what_if": what the run would take with each of these changes. False: one of the
 * changes cannot be made; the message has been printed in `command`'s name. */
bool section_what_if(struct report *report, const struct model *of, const char *command,
    const char *const *changes, size_t count);

/* Adds the table "critical_path": what the run's longest path goes through, the longest first. */
void section_critical_path(struct report *report, const struct model *of);

/* --- metrics --- */

/* Makes the table "metrics": one number for each question that a condition may ask. All other
 * tables must be made already. */
void metrics_make(struct report *report, const struct model *of);

/* Finds a metric's unit; false: `key` is no metric's. Shares are of the devices' spans. */
bool metric_find(const char *key, enum unit *unit);
/* Writes the metrics' keys, with ", " between them. */
void metric_keys(char *keys, size_t size);
/* Returns a metric's value; NAN: not known for this run. */
double metric_value(const struct report *report, const char *key);

/* --- findings --- */

/*
 * Findings: a report's pieces of advice, one rule each. findings.c has the list of rules, prices
 * what they find, and makes the table "findings". rules_*.c have the rules, by theme.
 *
 * Most rules are experiments: the run is played again without what was found, and the finding's
 * gain is how much shorter it is then (model/replay.h). Two findings may gain the same time, so
 * gains do not add up. A rule that lacks data finds nothing.
 */
/* The thing that a finding is about. */
struct subject {
    enum { PLACE_WORDS, PLACE_DEVICE, PLACE_THREAD, PLACE_STREAM } kind;
    uint32_t number;   /* index of the device, thread or stream */
    const char *words; /* PLACE_WORDS: its name */
};
#define OF(kind, number) ((struct subject){PLACE_##kind, number, NULL})
#define OF_WORDS(words)  ((struct subject){PLACE_WORDS, NONE, words})

/* Something that a rule found. Its texts are the report's, or static. */
struct find {
    const struct rule *rule;
    const char *place; /* a name; "": none */
    double low, high;  /* the gain in ns; NAN: not known */
    uint64_t times;
    const char *evidence;
};

/* The list to which rules add what they find. */
struct findings {
    const struct model *of;
    struct report *report; /* owns the texts */
    struct replay *replay; /* NULL: the run cannot be played again, so no experiment is made */
    struct steady steady;
    double worth;            /* a gain below this many ns is not worth a finding */
    const struct rule *rule; /* the rule that looks now */
    struct find *rows;
    size_t count, capacity;
    uint64_t minor; /* a bit for each rule that found something not worth a finding */
};

/* How a rule finds its subject: by an experiment (PRICED), by other facts about GPU work (ANYWAY),
 * or by calls, in part or alone. Only finds of PRICED have a gain. */
enum shows { PRICED, ANYWAY, PARTLY_IN_CALLS, IN_CALLS };

typedef void looker(struct findings *to);
struct rule {
    const char *id, *title;
    looker *look; /* NULL: another rule's looker finds this, too */
    enum shows shows;
    bool last; /* the rule looks behind all others, as it asks whether they have found something */
    const char *remedy;
    struct {
        const char *words;   /* as --what-if has them; NULL: there is no experiment */
        bool narrow;         /* only the calls of the find's thread or stream are changed */
        const char *further; /* an experiment that takes the remedy as far as it can go; NULL */
    } experiment;
};
extern const struct rule rules[];
extern const size_t rule_count;

/* The extent of what was found. Times are in ns; 0: the rule does not say. */
struct extent {
    uint64_t times;
    double waited; /* how long the host waited there: a further experiment may gain as much */
    double most;   /* the most that a find of a rule without an experiment can gain */
};
#define TIMES(number) ((struct extent){.times = (number), .waited = 0, .most = 0})

/* Says which rule looks from now on: for a looker of several rules. */
void rule_is(struct findings *to, const char *id);

/* Adds a find of the rule that looks now, with its evidence. Of a find that is not worth a finding
 * only to->minor tells. */
void finding(struct findings *to, struct subject place, struct extent extent, const char *format,
    ...) __attribute__((format(printf, 4, 5)));

/* Return names for evidence. A stream's name has its GPU, if there are several. */
const char *find_stream(struct findings *to, uint32_t stream);
const char *find_device(struct findings *to, uint32_t device);
const char *find_thread(struct findings *to, uint32_t thread);

/* The rules, in rules_*.c by theme. */
looker look_legacy, look_blocking, look_hardware_queues, look_host_functions, look_event_waits,
    look_synchronisation, look_blocking_copies, look_pageable, look_allocations, look_launches,
    look_objects, look_spinning, look_failed, look_priorities, look_copy_engines, look_own_code,
    look_outside, look_silence, look_shared_streams, look_small_kernels, look_events,
    look_stream_waits, look_copies, look_full, look_host, look_locks;

/* --- what printers share --- */

enum { SUMMARY_MAX = 1024 };
/* Write sentence `number`, from 0, which may be empty; false: there are no more. first_line(): how
 * long the run was, how much of it GPUs computed, what costs most, what the trace lacks.
 * run_line(): calls, streams and devices of the run. */
bool first_line(const struct report *report, size_t number, char line[SUMMARY_MAX]);
bool run_line(const struct report *report, size_t number, char line[SUMMARY_MAX]);
/* Returns command `number`, from 0, that says more about this trace; NULL: there are no more.
 * *what: what the command says. The caller frees the command. */
char *next_command(const struct print *print, size_t number, const char **what);

/* A row of the table "findings", as text and page show it. */
struct finding {
    const char *id, *title, *place, *evidence, *remedy; /* "": none */
    char more[40];                                      /* the command that says more */
    char gain[128]; /* "about 3.205 ms, 10.2 % of the run (12 times)" */
};
struct finding finding_at(const struct report *report, size_t row);

/* Returns the heading above the findings, or the sentence that there are none. */
const char *findings_heading(const struct report *report);

/* Whether text, or the page, shows the table in words, not as a table. */
bool is_told(const struct table *table, bool page);

/* Writes the lanes of all devices as HTML; nothing if no GPU worked. */
void lanes_print(FILE *file, const struct model *of);
extern const char page_style[], page_script[];
/* Writes a text so that it can stand in an element or in a quoted attribute. */
void html_put(FILE *file, const char *text);

#endif
