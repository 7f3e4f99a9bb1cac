/* The merged trace, from a plan: header, names, the rows of one file after the other, trailer. */
#ifndef CS_MERGE_WRITE_H
#define CS_MERGE_WRITE_H

#include "tools/custream/merge/out.h"
#include "tools/custream/merge/plan.h"

/* header.c */
void header_write(struct out *out, const struct plan *plan);
void names_write(struct out *out, const struct plan *plan);
void trailer_write(struct out *out, const struct plan *plan);

/* rows.c; false: the complaint was printed. */
bool rows_write(struct out *out, struct plan *plan);

#endif
