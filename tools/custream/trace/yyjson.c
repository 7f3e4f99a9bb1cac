/* The JSON parser yyjson. Its source comes from a package on PyPI (tools/headers.txt). */
#include <yyjson.c>
