/* How a report is printed. Every printer writes all of it to an open file; whoever opened that looks for errors of writing. */
#ifndef CS_REPORT_PRINT_H
#define CS_REPORT_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/custream/report/section.h"

/* Raised when a reader of the JSON would have to change. New tables and columns are no change. */
enum { REPORT_VERSION = 1 };

/* What is printed. */
struct print {
    const struct report *report;
    const struct analysis *of;      /* the HTML page draws its lanes */
    char *const *files;             /* that were read */
    int file_count;
    const char *const *sections;    /* text: these tables alone, by key */
    int section_count;              /* 0: all */
    bool brief;                     /* text: what comes before the tables, alone */
    int columns;                    /* text: of the terminal */
    bool color;                     /* text */
};

typedef void printer(FILE *file, const struct print *print);
printer print_text, print_json, print_csv, print_html;

/* --- what printers share --- */

enum { SUMMARY_MAX = 1024 };
/* The run and its devices in sentences, one a number from 0; false: no more. */
bool summary_line(const struct report *report, size_t number, char line[SUMMARY_MAX]);

/* One of the table "findings", as text and page show it. */
struct finding {
    const char *id, *title, *place, *evidence, *remedy, *page; /* "" where there is none */
    char cost[128];                                             /* "at most 3.205 ms, 10.2 % of the GPU's time (12 times)" */
};
struct finding finding_at(const struct report *report, size_t row);

/* What stands above the findings, or that there are none. */
const char *findings_heading(const struct report *report);

/* Whether text and page show it in words, not as a table. */
bool is_told(const struct table *table);

/* A table as text, with its title; a heading of the same kind. */
void text_table_put(FILE *file, const struct print *print, const struct table *table);
void text_heading_put(FILE *file, const struct print *print, const char *heading);
/* What was running, in words; nothing where nobody asks that of the trace. */
void running_put(FILE *file, const struct print *print);
/* All tables as members of an object. */
void json_tables_put(FILE *file, const struct report *report);

/* The lanes of all devices as HTML: when each was idle and why, and what ran on each stream. Nothing where no GPU did work. */
void lanes_print(FILE *file, const struct analysis *of);
extern const char page_style[], page_script[];
/* For an element's text or an attribute in quotes. */
void html_put(FILE *file, const char *text);

#endif
