/* From files to a report: what `custream report` prints and `custream diff` compares. */
#ifndef CS_REPORT_MAKE_H
#define CS_REPORT_MAKE_H

#include "tools/custream/report/section.h"

/* A report, and all that it was made of: its texts are the run's. Never moved. */
struct made {
    struct run run;
    struct hold *holds;
    struct idles idles;
    struct overlap overlap;
    struct analysis of;
    struct report report;
};

/* Of the parts of one run. False: a file cannot be read, which has been said in `command`'s name, and there is nothing to free. */
bool made_make(struct made *made, const char *command, char *const *files, int file_count);
void made_free(struct made *made);

#endif
