#include "tools/custream/inspect/api.h"

#include <stdlib.h>
#include <string.h>

#include "shim/calls/runtime.h"

/* Names are taken as texts at once: cuda.h has macros of the same names. */
#define ROWS_ONE(name, level)  {name, level, STREAM_UNSAID},
#define ROWS_PTDS(name, level) {name, level, STREAM_LEGACY}, {name "_ptds", level, STREAM_PER_THREAD},
#define ROWS_PTSZ(name, level) {name, level, STREAM_LEGACY}, {name "_ptsz", level, STREAM_PER_THREAD},

static struct api_call calls[] = {
#define CALL(name, sibling, ...) ROWS_##sibling(#name, API_DRIVER)
#include "shim/calls/calls.def"
#undef CALL
#define RUNTIME(name, sibling, ...) ROWS_##sibling(#name, API_RUNTIME)
#include "shim/calls/runtime.def"
#undef RUNTIME
};
enum { CALLS = sizeof calls / sizeof *calls };

static int by_name(const void *a, const void *b) { return strcmp(((const struct api_call *)a)->name, ((const struct api_call *)b)->name); }

const struct api_call *api_find(const char *name)
{
    static bool sorted;
    const struct api_call wanted = {.name = name};
    if (strncmp(name, "cu", 2) && strncmp(name, "__cu", 4)) return NULL;
    if (!sorted) qsort(calls, CALLS, sizeof *calls, by_name);
    sorted = true;
    return bsearch(&wanted, calls, CALLS, sizeof *calls, by_name);
}
