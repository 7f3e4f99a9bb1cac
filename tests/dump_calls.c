/*
 * Prints every row of the call table as one JSON object a line, each column as it is written in the
 * table.
 *
 * tests/cases/test_calltable.py compiles this against several cuda.h and compares what it prints
 * with what it reads in the header itself.
 */
#include <stdio.h>

#include "shim/calls/cuda_api.h"

static void print_string(const char *key, const char *text, const char *end)
{
    printf("\"%s\":\"", key);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar(*text);
    }
    printf("\"%s", end);
}

int main(void)
{
    printf("{\"cuda_version\":%d}\n", CUDA_VERSION);
#define CALL(name, sibling, kind, how, stream, effect, parameters, arguments, ...) \
    putchar('{'); \
    print_string("name", #name, ","); \
    print_string("sibling", #sibling, ","); \
    print_string("kind", #kind, ","); \
    print_string("how", #how, ","); \
    print_string("stream", #stream, ","); \
    print_string("effect", #effect, ","); \
    print_string("parameters", #parameters, ","); \
    print_string("arguments", #arguments, ","); \
    print_string("values", "" #__VA_ARGS__, "}\n");
#include "shim/calls/calls.def"
#undef CALL
    return 0;
}
