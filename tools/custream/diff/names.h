/* Makes keys for the rows of a report. A row has the same key in all runs of a program: threads and
 * streams go by name, and streams of the same name are numbered in the order of their first
 * work. */
#ifndef CS_DIFF_NAMES_H
#define CS_DIFF_NAMES_H

#include "tools/custream/model/model.h"
#include "tools/custream/model/table.h"
#include "tools/custream/trace/numbers.h"

enum { NAME_MAX_BYTES = 16384 }; /* the size of a key or label; longer ones are cut */

/* The streams of one run. */
struct names {
    struct texts texts;
    /* the name that a stream has in all runs, by its name in the report */
    struct numbers known_as;
};

/* Makes the names of the run's streams. `report`: the run's report, which keeps texts made here. */
void names_make(struct names *names, struct report *report, const struct run *run);
void names_free(struct names *names);

/* Copies `text` without the words that are numbers: "main (17)" becomes "main". */
void name_without_numbers(char out[NAME_MAX_BYTES], const char *text);

/* Makes the row's key, by which its row in another run is found. */
void names_key(
    const struct names *names, const struct table *table, size_t row, char out[NAME_MAX_BYTES]);
/* Makes the row's name for people: without the device, and without the numbers of threads. */
void names_label(const struct table *table, size_t row, char out[NAME_MAX_BYTES]);

#endif
