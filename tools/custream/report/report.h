/* What other commands take of `custream report`: a report made of files, its forms, and conditions
 * on it. */
#ifndef CS_REPORT_REPORT_H
#define CS_REPORT_REPORT_H

#include "tools/custream/model/table.h"

/* A report, and all that it was made of: its texts are the run's. Never moved. */
struct made {
    struct model model;
    struct report report;
};

/* Column "whole" of a file of another tool. */
#define WHOLE_NOT_SAID "the file does not say"

/* Of the parts of one run. False: a file cannot be read, which has been said in `command`'s name,
 * and there is nothing to free. */
bool made_make(struct made *made, const char *command, char *const *files, int file_count);
void made_free(struct made *made);

/* What was running, of a run whose process did not end by itself: "running", "running_streams",
 * "running_threads". */
void section_running(struct report *report, const struct run *run);

/* --- how it is printed --- */

/* Raised when a reader of the JSON would have to change. New tables and columns are no change. */
enum { REPORT_VERSION = 1 };

/* What is printed. */
struct print {
    const struct report *report;
    const struct model *of; /* the HTML page draws its lanes */
    char *const *files;     /* that were read */
    int file_count;
    const char *const *sections; /* text: these tables alone, by key */
    int section_count;           /* 0: all */
    bool brief;                  /* text: what comes before the tables, alone */
    int columns;                 /* text: of the terminal */
    bool color;                  /* text */
};

typedef void printer(FILE *file, const struct print *print);
printer print_text, print_json, print_csv, print_html;

/* A table as text, with its title; a heading of the same kind. */
void text_table_put(FILE *file, const struct print *print, const struct table *table);
void text_heading_put(FILE *file, const struct print *print, const char *heading);
/* What was running, in words; nothing where nobody asks that of the trace. */
void running_put(FILE *file, const struct print *print);
/* All tables as members of an object. */
void json_tables_put(FILE *file, const struct report *report);

/* --- where each form goes --- */

/* The forms of a report. Text is what standard output gets unless another form takes it. */
enum form { FORM_TEXT, FORM_JSON, FORM_CSV, FORM_HTML, FORMS };

struct output {
    const char *command;   /* "custream report": whose complaints these are */
    const char *to[FORMS]; /* NULL: not wanted; "-": standard output */
    bool no_color;
};

/* `to`: the option's value, NULL where it has none. All return a status. */
int output_add(struct output *output, enum form form, const char *to);
/* What takes all options and files to see. Text is wanted from here on, where nothing else takes
 * standard output. */
int output_judge(struct output *output, char *const *files, int file_count);
/* Every form that is wanted, with columns and colours of `print` as standard output has them. The
 * first that cannot be written ends it. */
int output_print(const struct output *output, printer *const printers[FORMS], struct print *print);

/* --- conditions --- */

/*
 * Conditions of `--fail-if`: "METRIC RELATION VALUE", as "idle_host > 20%", or "finding CS101".
 * Where two reports are compared, a value with a sign is how much the metric differs from the
 * earlier one: "gpu_busy > +5%" of that one's value, "wall > +10ms" more.
 */
enum { CONDITION_MAX = 512 }; /* bytes of a message */

struct conditions {
    struct condition *rows;
    size_t count, capacity;
};

/*
 * Both return a status, and say in `command`'s name what is wrong, or what holds. `compares`: a
 * value may have a sign. `before` is the earlier report, NULL: there is none. A condition holds too
 * where the metric is not known: what could not be measured has not been shown to be good. A
 * finding that `before` has too is no reason.
 */
int conditions_add(
    struct conditions *conditions, const char *command, const char *text, bool compares);
int conditions_judge(const struct conditions *conditions, const char *command,
    const struct report *before, const struct report *report);
void conditions_free(struct conditions *conditions);

#endif
