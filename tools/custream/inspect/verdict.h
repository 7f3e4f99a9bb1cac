/* What follows from what stands in the files: what custream will see, and what to type. */
#ifndef CS_INSPECT_VERDICT_H
#define CS_INSPECT_VERDICT_H

#include "tools/custream/inspect/libraries.h"

enum subject { SUBJECT_PROGRAM, SUBJECT_LIBRARY, SUBJECT_OBJECT, SUBJECT_SCRIPT };

struct verdict {
    enum subject subject;
    const char *path;        /* as typed, or where PATH led */
    const char *obstacle;    /* why nothing is seen: the rest of a sentence that begins with its name; NULL */
    char *interpreter;       /* of a script: the words behind "#!", or "python3" */
    struct strings sees;     /* sentences */
    struct strings run;      /* command lines, the first is the one to type */
    const char *audit;       /* the command line that tells whether per-thread default streams would be safe; one of `run`; NULL */
};

/* `tree` of a script: NULL. */
void verdict_make(struct verdict *verdict, const struct tree *tree);
void verdict_free(struct verdict *verdict);

/* How the code in the file comes to CUDA: sentences. */
void reach_of(const struct tree *tree, size_t place, struct strings *ways);
/* Which default stream its calls mean: "legacy", "per-thread", "both"; NULL: no call tells, or the file does not. */
const char *default_stream_of(const struct image *image);
/* Calls of it are not known: it is stripped, and the runtime linked in. */
bool calls_hidden(const struct image *image);

#endif
