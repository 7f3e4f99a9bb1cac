/* The merged file: written beside its place, and put there once it is whole. */
#ifndef CS_MERGE_OUT_H
#define CS_MERGE_OUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <zlib.h>

#include "shim/base/claim.h"

struct out {
    const char *command; /* whose complaints these are */
    const char *path;
    bool raw; /* bytes go into the file as they are, whatever its name */
    int fd;   /* of the file, too: to have it on the disk before it gets its name */
    struct cs_claim claim;
    char temporary[PATH_MAX + 32];
    bool packets; /* what is put becomes them when all of it is there (convert/rows.h) */
    gzFile file;
    bool failed;
    int error; /* errno of that */
};

/* False: the complaint was printed. Takes a file as the library does, and nothing of `inputs`. */
bool out_open(struct out *out, const char *path, char *const *inputs, size_t count);
/* The same for another command, which puts what the file is to hold. */
bool out_open_as_is(
    const char *command, struct out *out, const char *path, char *const *inputs, size_t count);
/* The same, of bytes that are packed already; the file may be one of the inputs. */
bool out_open_raw(struct out *out, const char *command, const char *path);
void out_put(void *out, const char *text, size_t length);
/* What a claim was refused for, without advice that this command does not take; `length` of it. */
const char *out_refusal(const struct cs_claim *claim, int *length);
/* `good`: it is whole. Otherwise nothing is left of it. */
bool out_close(struct out *out, bool good);

#endif
