/* custream inspect, between its files. `tree` of a script: NULL. */
#ifndef CS_INSPECT_H
#define CS_INSPECT_H

#include "tools/custream/inspect/image.h"

/* libraries.c: where the loader would find a library (ld.so(8)), but for glibc-hwcaps. */

/* A program or library with all that it needs. */
struct tree {
    struct loaded {
        struct image image;
        char *name;       /* as the one that needs it says; NULL of the first */
        size_t needed_by; /* its place in `loaded` */
    } *loaded;            /* the first is what was asked for */
    size_t count, capacity;
    struct strings missing; /* libraries that are not found */
    struct strings refused; /* that are found and cannot be read: "PATH: why" */
    struct strings cache;   /* the loader's, "NAME\nPATH" */
};

/* False: error says why the first cannot be read. tree_free() is to be called in either case. */
bool tree_make(struct tree *tree, const char *path, char error[256]);
void tree_free(struct tree *tree);

/* verdict.c: what custream will see, and what to type. */

enum subject { SUBJECT_PROGRAM, SUBJECT_LIBRARY, SUBJECT_OBJECT, SUBJECT_SCRIPT };

struct verdict {
    enum subject subject;
    const char *path; /* as typed, or where PATH led */
    const char
        *obstacle; /* why nothing is seen: the rest of a sentence that begins with its name; NULL */
    char *interpreter;   /* of a script: the words behind "#!", or "python3" */
    struct strings sees; /* sentences */
    struct strings run;  /* command lines, the first is the one to type */
    const char *audit;   /* one of `run` that tells of per-thread default streams; NULL */
};

/* `tree` of a script: NULL. */
void verdict_make(struct verdict *verdict, const struct tree *tree);
void verdict_free(struct verdict *verdict);

/* How the code in the file comes to CUDA: sentences. */
void reach_of(const struct tree *tree, size_t place, struct strings *ways);
/* "legacy", "per-thread", "both", as its calls mean; NULL: not known. */
const char *default_stream_of(const struct image *image);
/* Calls of it are not known: it is stripped, and the runtime linked in. */
bool calls_hidden(const struct image *image);

/* print_text.c, print_json.c: what it says, for people and for programs. */

enum {
    INSPECT_VERSION = 1
}; /* of the JSON: grows when a member goes away or means something else */

extern const char *const subject_name[]; /* by enum subject */
extern const char *const use_name[USES];
extern const char *const level_name[API_LEVELS];

void inspect_print(const struct verdict *verdict, const struct tree *tree);
void inspect_write(const struct verdict *verdict, const struct tree *tree);

#endif
