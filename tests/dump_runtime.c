/* Prints every row of the table of the runtime's functions as one JSON object a line, each column
 * as it is written (tests/cases/test_runtime_table.py). */
#include <stdio.h>

#include <cuda_runtime_api.h>

int main(void)
{
    printf("{\"version\":%d}\n", CUDART_VERSION);
#define RUNTIME(name, sibling, versions, caller, parameters, arguments) \
    printf("{\"name\":\"%s\",\"sibling\":\"%s\",\"versions\":\"%s\",\"caller\":\"%s\",\"parameters\":\"%s\",\"arguments\":\"%s\"}\n", #name, #sibling, \
           #versions, #caller, #parameters, #arguments);
#include "shim/calls/runtime.def"
#undef RUNTIME
    return 0;
}
