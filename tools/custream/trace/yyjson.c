/* The parser, as a package from PyPI has it (tools/headers.txt). */
#include <yyjson.c>
