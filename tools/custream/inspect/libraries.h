/*
 * Where the loader would find a library (ld.so(8)), without running anything: DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the loader's cache, the default
 * folders. Of folders with code for newer processors (glibc-hwcaps) it knows nothing.
 */
#ifndef CS_INSPECT_LIBRARIES_H
#define CS_INSPECT_LIBRARIES_H

#include "tools/custream/inspect/image.h"

/* A program or library with all that it needs. */
struct tree {
    struct loaded {
        struct image image;
        char *name;         /* as the one that needs it says; NULL of the first */
        size_t needed_by;   /* its place in `loaded` */
    } *loaded;              /* the first is what was asked for */
    size_t count, capacity;
    struct strings missing; /* libraries that are not found */
    struct strings refused; /* that are found and cannot be read: "PATH: why" */
    struct strings cache;   /* the loader's, "NAME\nPATH" */
};

/* False: error says why the first cannot be read. tree_free() is to be called in either case. */
bool tree_make(struct tree *tree, const char *path, char error[256]);
void tree_free(struct tree *tree);

#endif
