/* Where each form of a report goes. */
#ifndef CS_REPORT_OUTPUT_H
#define CS_REPORT_OUTPUT_H

#include "tools/custream/report/print.h"
#include "tools/custream/show.h"

/* The forms of a report. Text is what standard output gets unless another form takes it. */
enum form { FORM_TEXT, FORM_JSON, FORM_CSV, FORM_HTML, FORMS };

struct output {
    const char *command;   /* "custream report": whose complaints these are */
    const char *to[FORMS]; /* NULL: not wanted; "-": standard output */
    bool no_color;
};

/* `to`: the option's value, NULL where it has none. All return a status. */
int output_add(struct output *output, enum form form, const char *to);
/* What takes all options and files to see. Text is wanted from here on, where nothing else takes standard output. */
int output_judge(struct output *output, char *const *files, int file_count);
/* Every form that is wanted, with columns and colours of `print` as standard output has them. The first that cannot be written ends it. */
int output_print(const struct output *output, printer *const printers[FORMS], struct print *print);

#endif
