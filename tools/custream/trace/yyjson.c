/* The JSON parser yyjson. Its source comes from a package on PyPI (tools/headers.txt). The command
 * only reads, and whole values. */
#define YYJSON_DISABLE_WRITER 1
#define YYJSON_DISABLE_INCR_READER 1
#include <yyjson.c>
