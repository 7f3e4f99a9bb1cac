/* custream inspect: what the sources in this folder declare for each other. For a script, which has
 * no tree, verdict_make() and inspect_show() get NULL. */
#ifndef CS_INSPECT_H
#define CS_INSPECT_H

#include "tools/custream/inspect/image.h"

/* libraries.c: finds libraries where the loader would (ld.so(8)), except in glibc-hwcaps. */

/* A program or library with all libraries that it needs. */
struct tree {
    struct loaded {
        struct image image;
        char *name; /* the name by which another file needs this one (DT_NEEDED); NULL for the first
                       file */
        size_t needed_by; /* the place of that other file in `loaded` */
    } *loaded;            /* the first is the file that the user named */
    size_t count, capacity;
    struct strings missing; /* libraries that were not found */
    struct strings refused; /* libraries that were found and cannot be read: "PATH: why" */
    struct strings cache;   /* the entries of the loader's cache: "NAME\nPATH" */
};

/* Returns false if the file cannot be read: error says why. Needs tree_free() in either case. */
bool tree_make(struct tree *tree, const char *path, char error[256]);
void tree_free(struct tree *tree);

/* verdict.c: decides what custream will see, and what to type. */

/* An image_kind, or a script. */
enum subject {
    SUBJECT_PROGRAM = IMAGE_PROGRAM,
    SUBJECT_LIBRARY = IMAGE_LIBRARY,
    SUBJECT_OBJECT = IMAGE_OBJECT,
    SUBJECT_SCRIPT
};

struct verdict {
    enum subject subject;
    const char *path; /* as typed, or as found on PATH */
    /* why nothing is seen: the rest of a sentence that begins with the path; NULL: no obstacle */
    const char *obstacle;
    char *interpreter;   /* for a script: the words behind "#!", or "python3" */
    struct strings sees; /* the calls and work that custream will see, one phrase each */
    struct strings run;  /* command lines; the first is to be typed */
    const char *audit;   /* the command line in `run` that has --default-stream=audit; NULL: none */
};

void verdict_make(struct verdict *verdict, const struct tree *tree);
void verdict_free(struct verdict *verdict);

/* Adds to `ways` how the code of the file tree->loaded[place] reaches CUDA, one phrase each. */
void reach_of(const struct tree *tree, size_t place, struct strings *ways);
/* Returns the default stream of the file's calls: "legacy", "per-thread", "both"; NULL: not
 * known. */
const char *default_stream_of(const struct image *image);
/* Whether the calls are hidden: no section headers, or stripped with a CUDA runtime linked in. */
bool calls_hidden(const struct image *image);

/* print.c: prints the result for people, or as JSON. */
void inspect_show(const struct verdict *verdict, const struct tree *tree, bool json);

#endif
