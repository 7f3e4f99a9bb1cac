/* The merged file: written under a temporary name in the same folder, and renamed once it is
 * whole. */
#ifndef CS_MERGE_OUT_H
#define CS_MERGE_OUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <zlib.h>

#include "shim/base/claim.h"

struct out {
    const char *command; /* the command's name, for complaints */
    const char *path;
    bool raw; /* bytes go into the file as they are, even if its name ends in .gz */
    int fd;   /* a second descriptor of `file`, for fsync() before the rename */
    struct cs_claim claim;
    char temporary[PATH_MAX + 32];
    bool packets; /* out_close() converts the text to packets (convert/rows.h) */
    gzFile file;
    bool failed;
    int error; /* errno of the write that failed */
};

/* The kinds of what a caller puts. ROWS: rows as text, which become the format that the file's name
 * asks for. TEXT: text that stays as it is, or is compressed if the name ends in .gz. BYTES: bytes
 * that go into the file as they are. */
enum out_of { OUT_OF_ROWS, OUT_OF_TEXT, OUT_OF_BYTES };
/* Claims the path, which may be none of `inputs`. Returns false after a complaint. */
bool out_open(struct out *out, const char *command, const char *path, enum out_of of,
    char *const *inputs, size_t count);
void out_put(void *out, const char *text, size_t length);
/* Returns why a claim was refused. `length`: how many bytes of the text to show; the rest advises
 * CUSTREAM_FORCE=on. */
const char *out_refusal(const struct cs_claim *claim, int *length);
/* Gives the file its name, or removes it if not `good`. Returns whether the file has its name. */
bool out_close(struct out *out, bool good);

#endif
