/* What a row of a report is about, the same in all runs of a program: threads and streams go by
 * name, streams of one name by which was used first. */
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

/* `text` without its words that are numbers: "main (17)" is "main". */
void name_without_numbers(char out[NAME_MAX_BYTES], const char *text);

/* The row's key: the same in all runs for what is the same. */
void names_key(
    const struct names *names, const struct table *table, size_t row, char out[NAME_MAX_BYTES]);
/* The row as people read it, without its device; a thread has no number. */
void names_label(const struct table *table, size_t row, char out[NAME_MAX_BYTES]);

#endif
