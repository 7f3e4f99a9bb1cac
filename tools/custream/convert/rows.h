/* A whole trace in one of the two formats, from either. */
#ifndef CS_CONVERT_ROWS_H
#define CS_CONVERT_ROWS_H

#include "tools/custream/merge/source.h"

enum {
    ROWS_PACKETS = 1, /* Perfetto's format. Without it, JSON */
    ROWS_WHOLE = 2,   /* each row of a trace of ours says all of it (merge/shapes.h) */
};

/* SOURCE_CUT: what is before the cut is written, with an end. SOURCE_BROKEN: `error` says why; what was written is no trace. */
enum source_end rows_convert(const char *from, unsigned how, void (*put)(void *of, const char *bytes, size_t n), void *of, char error[256]);

#endif
