/* What every file of the C API begins with: statuses, and how they pass on. */
#ifndef CS_API_STATUS_H
#define CS_API_STATUS_H

#include "custream.h"
#include "shim/base/compiler.h"

typedef custream_status_t status;

/* A function's first statement, and how errors pass on. */
#define TRY(expression)                                                                                                                              \
    do {                                                                                                                                             \
        status tried_ = (expression);                                                                                                                \
        if (tried_ != CUSTREAM_SUCCESS) return tried_;                                                                                               \
    } while (0)
#define CHECK(condition, otherwise)                                                                                                                  \
    do {                                                                                                                                             \
        if (!(condition)) return otherwise;                                                                                                          \
    } while (0)
#define NEED(pointer) CHECK(pointer, CUSTREAM_INVALID_VALUE)

#endif
