/*
 * Prints what kind of hook the calls of each row of the call table meet, as a JSON object a line;
 * -1: none.
 *
 * tests/cases/test_calltable.py compiles this against several cuda.h and compares what it prints
 * with what the calls' names promise.
 */
#include <stdio.h>

#include "shim/calls/how_words.h"
#include "shim/wrap/effects.h"

int main(void)
{
#define CALL(name, sibling, kind, how, stream, effect, ...) \
    printf("{\"name\":\"%s\",\"hook\":%d}\n", #name, CS_HOOKED(kind, how, effect));
#include "shim/calls/calls.def"
#undef CALL
    return 0;
}
