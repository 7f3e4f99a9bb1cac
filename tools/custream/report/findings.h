/*
 * Findings: what a report advises, one rule each. findings.c has the table of rules; rules_*.c look, by theme; section_findings.c makes the table of
 * what was found.
 *
 * A rule that cannot know says nothing. A cost is idle or serialized time that would go, at most: costs of two findings may be the same time, and do
 * not add up.
 */
#ifndef CS_REPORT_FINDINGS_H
#define CS_REPORT_FINDINGS_H

#include "tools/custream/report/section.h"

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
    const struct analysis *of;
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

/* By all rules, the most expensive first; those without a cost come last. The caller frees the rows. */
void findings_make(struct findings *findings, struct report *report, const struct analysis *of);

/* One find of the rule that looks. Left out if it cost less than it takes to be worth a change, on that device (NONE: on none). */
void finding(struct findings *to, uint32_t device, const char *place, double cost, uint64_t times, const char *evidence);

/* Texts for evidence: "1.234 ms"; a stream's name, with its GPU where there are several; a thread's name. */
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

#endif
