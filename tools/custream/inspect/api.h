/* The calls of CUDA that custream knows, by name, from the tables that the library is made of. */
#ifndef CS_INSPECT_API_H
#define CS_INSPECT_API_H

#include <stdbool.h>

enum api_level { API_DRIVER, API_RUNTIME, API_LEVELS };

/* What the name says of the default stream that it means. */
enum api_stream { STREAM_UNSAID /* there is one form of it */, STREAM_LEGACY, STREAM_PER_THREAD /* _ptds, _ptsz */ };

struct api_call {
    const char *name;
    enum api_level level;
    enum api_stream stream;
};

/* NULL: custream knows no such call. */
const struct api_call *api_find(const char *name);

#endif
