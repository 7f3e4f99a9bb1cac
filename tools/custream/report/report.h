/* The part of `custream report` for other commands: reports, their forms, and conditions. */
#ifndef CS_REPORT_REPORT_H
#define CS_REPORT_REPORT_H

#include "tools/custream/model/table.h"

/* A report and the model that it was made of. The model owns the texts of the report's names. A
 * struct made must not be moved. */
struct made {
    struct model model;
    struct report report;
};

/* The value of column "whole" for another tool's file. */
#define WHOLE_NOT_SAID "the file does not say"

/* Makes a report of the parts of one run. False: a file cannot be read; the message has been
 * printed in `command`'s name, and there is nothing to free. */
bool made_make(struct made *made, const char *command, char *const *files, int file_count);
void made_free(struct made *made);

/* Adds the tables "running...": what was running when a process did not end by itself. */
void section_running(struct report *report, const struct run *run);

/* --- how a report is printed --- */

/* The version of the JSON form. New tables and columns do not raise it. */
enum { REPORT_VERSION = 1 };

/* A report and how to print it. */
struct print {
    const struct report *report;
    const struct model *of; /* the model: HTML draws its lanes, JSON tells its base time */
    char *const *files;     /* the files that were read */
    int file_count;
    const char *const *sections; /* text: the keys of the tables to print */
    int section_count;           /* 0: all tables */
    bool brief;                  /* text: print only what comes before the tables */
    int columns;                 /* text: the terminal's width */
    bool color;                  /* text: print colours */
};

typedef void printer(FILE *file, const struct print *print);
printer print_text, print_json, print_csv, print_html;

/* Write a table as text with its title, or only a heading of the same kind. */
void text_table_put(FILE *file, const struct print *print, const struct table *table);
void text_heading_put(FILE *file, const struct print *print, const char *heading);
/* Writes in words what was running; nothing if that is not asked of the trace. */
void running_put(FILE *file, const struct print *print);
/* Writes all tables as members of a JSON object. */
void json_tables_put(FILE *file, const struct report *report);

/* --- where each form goes --- */

/* The forms of a report. Standard output gets text unless another form takes it. */
enum form { FORM_TEXT, FORM_JSON, FORM_CSV, FORM_HTML, FORMS };

struct output {
    const char *command;   /* the name that messages begin with: "custream report" */
    const char *to[FORMS]; /* the file of each form; NULL: not wanted; "-": standard output */
    bool no_color;
};

/* Asks for one more form, with the option's value. Returns a status, as the next two functions
 * do. */
int output_add(struct output *output, enum form form, const char *to);
/* Checks what needs all options and files. Text takes standard output if no other form does. */
int output_judge(struct output *output, char *const *files, int file_count);
/* Prints each form that is wanted. Stops at the first form that cannot be written. */
int output_print(const struct output *output, printer *const printers[FORMS], struct print *print);

/* --- conditions --- */

/* Conditions of `--fail-if`: "METRIC RELATION VALUE", as "idle_host > 20%", or "finding CS101". If
 * two reports are compared, a value with a sign is the change of the metric since the earlier
 * report: "gpu_busy > +5%" is relative to the earlier value, "wall > +10ms" is a difference. */
enum { CONDITION_MAX = 512 }; /* a message's bytes, at most */

struct conditions {
    struct condition *rows;
    size_t count, capacity;
};

/* Read a condition, and judge all conditions. Both return a status, and print in `command`'s name
 * what is wrong, or which condition holds. `compares`: a value may have a sign.
 *
 * `before`: the earlier report; NULL: none. A finding that `before` has as well does not hold.
 *
 * A condition on a metric whose value is not known holds: what could not be measured has not been
 * shown to be good. */
int conditions_add(
    struct conditions *conditions, const char *command, const char *text, bool compares);
int conditions_judge(const struct conditions *conditions, const char *command,
    const struct report *before, const struct report *report);
void conditions_free(struct conditions *conditions);

#endif
