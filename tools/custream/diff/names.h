/*
 * What a row of a report is about, so that rows of two runs can be found to be about the same
 * thing. Numbers of threads and streams differ between runs of one program: a thread is known by
 * its name, a stream by its name without the number and, of several with that name, by which was
 * used first.
 */
#ifndef CS_DIFF_NAMES_H
#define CS_DIFF_NAMES_H

#include "tools/custream/model/model.h"
#include "tools/custream/model/table.h"
#include "tools/custream/trace/numbers.h"

enum { NAME_MAX_BYTES = 16384 }; /* of a key or label; a longer one is cut */

/* The streams of one run. */
struct names {
    struct texts texts;
    struct numbers
        known_as; /* by a stream's name, as the report shows it: what it is called in all runs */
};

/* The report, of that run, gets the texts of names that it makes. */
void names_make(struct names *names, struct report *report, const struct run *run);
void names_free(struct names *names);

/* `text` without the words in it that are numbers: "python3 1191", "main (17)" and "stream 13 prio
 * -5" become "python3", "main" and "stream prio -5". */
void name_without_numbers(char out[NAME_MAX_BYTES], const char *text);

/* The row's key: the same in all runs for what is the same. */
void names_key(
    const struct names *names, const struct table *table, size_t row, char out[NAME_MAX_BYTES]);
/* The row as people read it, without its device; a thread has no number. */
void names_label(const struct table *table, size_t row, char out[NAME_MAX_BYTES]);

#endif
